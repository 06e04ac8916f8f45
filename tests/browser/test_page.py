"""The report in headless Chromium: it loads without complaint, sorts, filters, shows values and fits the screen."""

from __future__ import annotations

import shutil

import pytest

from pagnn_bench.analysis.report.page import write_report
from pagnn_bench.analysis.tables.results import load_results
from pagnn_bench.records.store import Store
from tests.fabricate import like_the_paper, make_cell, save_trials

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not installed"),
]

LONG = "a label of a method that is rather long " * 3


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    """The address of a report with two types, own methods, timings and curves."""
    store = Store(tmp_path_factory.mktemp("results"))
    for method in ("mf", "pagnn_m", "pagnn_n"):
        for missing in ("type1", "type2"):
            for rate in (0.1, 0.9):
                cell = make_cell(method, missing=missing, rate=rate)
                save_trials(store, cell, like_the_paper(cell), masks=range(3), seeds=range(2))
        save_trials(store, make_cell(method, protocol="timing"), lambda m, s: 70.0, [0], range(2), stack=1)
    save_trials(store, make_cell("mine", method_={"label": LONG}), lambda m, s: 99.0, [0], [0])
    save_trials(store, make_cell(protocol="convergence"), lambda m, s: 70.0, [0], [0], epochs=30, curve=True)
    folder = tmp_path_factory.mktemp("report")
    return write_report(load_results(store), "paper", folder).as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"):
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def loaded(browser, page):
    resize(browser, 1400)
    load(browser, page)
    return browser


def load(browser, page: str) -> None:
    """Open the page and wait until its script has run; a busy machine may be in the middle of reading it."""
    browser.get("about:blank")
    browser.get(page)
    done = "return document.readyState === 'complete' && document.getElementById('shown').textContent !== ''"
    WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(done))


def resize(browser, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def column(browser, number: int) -> list[str]:
    """The visible texts of a column of the large table."""
    script = """
        return [...document.querySelectorAll("#all tbody tr")].filter((row) => !row.hidden)
            .map((row) => row.cells[arguments[0]].textContent.trim())"""
    return browser.execute_script(script, number)


def click(browser, selector: str) -> None:
    browser.execute_script("document.querySelector(arguments[0]).click()", selector)


def test_it_loads_without_complaint_and_without_requests(loaded):
    assert loaded.title == "PaGNN benchmark: results"
    assert loaded.get_log("browser") == []
    asked = loaded.execute_script(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    )
    assert [name for name in asked if not name.startswith("data:")] == []


def test_a_click_on_a_heading_sorts_and_another_one_turns_it_round(loaded):
    click(loaded, "#only-run")  # show the paper's entries that were not run, too
    click(loaded, "#all th:nth-child(6)")  # ours
    values = [float(text) for text in column(loaded, 5) if text]
    assert values == sorted(values)
    assert column(loaded, 5)[-1] == ""  # what was not run comes last
    click(loaded, "#all th:nth-child(6)")
    values = [float(text) for text in column(loaded, 5) if text]
    assert values == sorted(values, reverse=True)
    assert values[0] == 99.0
    assert column(loaded, 5)[-1] == ""
    click(loaded, "#all th:nth-child(1)")
    assert column(loaded, 0) == sorted(column(loaded, 0), key=str.lower)


def test_filters_go_together(loaded):
    total = loaded.execute_script("return document.querySelectorAll('#all tbody tr').length")
    assert "" not in column(loaded, 5)  # only what was run is shown at first
    click(loaded, "#only-run")
    assert len(column(loaded, 0)) == total
    script = """
        const [number, value] = arguments;
        const select = document.querySelector(`select[data-column="${number}"]`);
        select.value = value;
        select.dispatchEvent(new Event("input", { bubbles: true }))"""
    loaded.execute_script(script, 0, "PaGNN-N")
    loaded.execute_script(script, 3, "0.9")
    assert set(column(loaded, 0)) == {"PaGNN-N"}
    assert set(column(loaded, 3)) == {"0.9"}
    click(loaded, "#only-run")
    assert set(column(loaded, 1)) == {"Cora"}
    shown = loaded.execute_script("return document.getElementById('shown').textContent")
    assert shown == f"2 of {total} rows"


def test_the_theme_changes_colours_and_is_remembered(loaded, page):
    def background() -> str:
        return loaded.execute_script("return getComputedStyle(document.body).backgroundColor")

    before = background()
    click(loaded, "#theme")
    after = background()
    assert before != after
    load(loaded, page)
    assert background() == after
    click(loaded, "#theme")
    assert background() == before


def test_a_mark_shows_its_value(loaded):
    script = """
        const mark = document.querySelector("#figure-accuracy [data-tip]");
        mark.scrollIntoView({ block: "center", behavior: "instant" });
        mark.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
        const tip = document.getElementById("tooltip");
        return [tip.hidden, tip.textContent, mark.dataset.tip, tip.getBoundingClientRect().left >= 0]"""
    hidden, shown, expected, inside = loaded.execute_script(script)
    assert not hidden
    assert shown == expected
    assert shown.startswith("MF, rate 0.1:")
    assert inside


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen(loaded, page, width, theme):
    resize(loaded, width)
    load(loaded, page)
    loaded.execute_script("setTheme(arguments[0])", theme)
    loaded.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert loaded.execute_script("return document.documentElement.scrollWidth") <= width
    smallest = loaded.execute_script(
        "return Math.min(...[...document.querySelectorAll('.panel svg')].map((svg) => svg.clientWidth))"
    )
    assert smallest > 240


def test_downloads_hold_what_they_say(loaded):
    script = """
        const link = document.querySelector("a[download='results.csv']");
        return atob(link.href.split(",")[1])"""
    assert loaded.execute_script(script).startswith("method,data,missing,rate,protocol,mean")
