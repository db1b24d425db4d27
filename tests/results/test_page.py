"""The report's page, opened from disk in a headless Chromium."""

import json
import shutil

import pytest

from log_dqn.results import pictures, report
from tests.results import synthetic

pytestmark = pytest.mark.slow
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")
AGENT = 'log_dqn <b>&amp;"x" onerror=alert(1)'
GAMES = ["Pong", "Alien", "DoubleDunk", "Carnival"]  # No human scores for Carnival.


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    for index, game in enumerate(GAMES):
        for seed in range(2):
            returns = synthetic.curve(game, 60, 0.5 + index, seed)
            synthetic.write_log(folder / "runs" / AGENT / game / str(seed), returns, episodes=2)
    agents = {"DQN": 1.0, "C51": 1, "Rainbow": 1.5, "IQN": 2}
    source = synthetic.write_baselines(folder / "published", GAMES, agents, num_iterations=60)
    compared, _ = synthetic.compare(source, folder / "runs", repetitions=20)
    report.write(compared, folder / "report", "python compare.py")
    return (folder / "report" / "report.html").as_uri()


@pytest.fixture(scope="module", params=[(1280, 900), (390, 844)], ids=["desktop", "phone"])
def browser(request, page):
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("chromium and chromedriver are not installed")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    width, height = request.param
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    metrics = {"width": width, "height": height, "pixelRatio": 1}
    options.add_experimental_option("mobileEmulation", {"deviceMetrics": metrics})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.get(page)
    yield driver
    driver.quit()


def column(browser, index):
    return browser.execute_script(
        "return [...document.querySelector('table.sortable').tBodies[0].rows]"
        ".map((row) => row.cells[arguments[0]].dataset.value)",
        index,
    )


def click(browser, index):
    heads = browser.find_elements("css selector", "table.sortable th button")
    browser.execute_script("arguments[0].scrollIntoView({inline: 'center'})", heads[index])
    heads[index].click()
    return browser.execute_script(
        "return document.querySelectorAll('table.sortable th')[arguments[0]].ariaSort", index
    )


def test_every_image_loads(browser):
    images = browser.execute_script(
        "return [...document.images].map((i) => [i.src.slice(0, 15), i.complete, i.naturalWidth])"
    )
    assert len(images) == len(pictures.PICTURES) - 1  # All but that of discount factors.
    assert all(i[0] == "data:image/png;" and i[1] and i[2] > 500 for i in images)


def test_table_sorts(browser):
    assert column(browser, 0) == sorted(GAMES)
    assert click(browser, 0) == "ascending"
    assert column(browser, 0) == sorted(GAMES)
    assert click(browser, 0) == "descending"
    assert column(browser, 0) == sorted(GAMES, reverse=True)
    # Relative: numbers as numbers, greatest first; what is missing stays at the end.
    for direction in ("descending", "ascending"):
        assert click(browser, 1) == direction
        *values, last = column(browser, 1)
        numbers = [float(value) for value in values]
        assert last == "" and len(numbers) == 3
        assert numbers == sorted(numbers, reverse=direction == "descending")
        assert column(browser, 0)[-1] == "Carnival"
    assert numbers[0] < 0 < numbers[-1]


def test_the_page_is_no_wider_than_the_screen(browser):
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_what_goes_on_beyond_the_edge_says_so(browser):
    """Figures and tables that scroll fade out at the edge and have a hint, until their end."""
    found = browser.execute_script(
        "return [...document.querySelectorAll('.wide')].map((wide) => [wide.scrollWidth > "
        "wide.clientWidth + 1, wide.nextElementSibling.offsetHeight > 0, "
        "getComputedStyle(wide).maskImage !== 'none'])"
    )
    assert all(scrolls == hinted == faded for scrolls, hinted, faded in found)
    narrow = browser.execute_script("return innerWidth < 600")
    assert sum(scrolls for scrolls, _, _ in found) >= (len(found) - 2 if narrow else 0)
    ends = browser.execute_async_script(
        "const done = arguments[0]; const wides = [...document.querySelectorAll('.wide')];"
        "wides.forEach((wide) => { wide.scrollLeft = wide.scrollWidth; });"
        "setTimeout(() => { const masks = wides.map((wide) => getComputedStyle(wide).maskImage);"
        "wides.forEach((wide) => { wide.scrollLeft = 0; }); done(masks); }, 300)"
    )
    assert set(ends) == {"none"}


def test_images_say_what_is_seen(browser):
    texts = browser.execute_script("return [...document.images].map((image) => image.alt)")
    assert all(any(character.isdigit() for character in text) for text in texts[:-1])
    assert texts[0].startswith(f"Bars of {AGENT}, 2 seeds relative to DQN")


def test_names_are_text(browser):
    assert AGENT in browser.find_element("css selector", "h1").text
    assert browser.find_elements("css selector", "h1 b") == []


def test_no_errors_and_no_requests(browser, page):
    assert browser.get_log("browser") == []
    asked = [
        message["params"]["request"]["url"]
        for entry in browser.get_log("performance")
        if (message := json.loads(entry["message"])["message"])["method"]
        == "Network.requestWillBeSent"
    ]
    assert page in asked
    assert [url for url in asked if url != page and not url.startswith("data:")] == []
