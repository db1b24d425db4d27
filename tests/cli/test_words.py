from log_dqn.cli import words


def test_a_table_in_markdown():
    rows = [["a|b", "c", "d"], ["x\ny", "1", ""]]
    expected = ["| a\\|b | c | d |", "| --- | ---: | ---: |", "| 'x\\ny' | 1 |  |"]
    assert words.markdown(rows, "---:").splitlines() == expected
    assert words.markdown(rows).splitlines()[1] == "| --- | --- | --- |"
