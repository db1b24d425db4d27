import pathlib


def pytest_collection_modifyitems(items):
    """Marks all of this folder as slow: studies and benchmarks, on which no agent depends."""
    folder = pathlib.Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(folder):
            item.add_marker("slow")
