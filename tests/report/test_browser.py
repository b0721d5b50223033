"""The page in a real browser, opened from disk; skipped where no browser is installed."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait
from sklearn.metrics import confusion_matrix

from timesliver import report

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (BROWSER and DRIVER), reason="needs the packages chromium and chromium-driver"
    ),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--window-size=1280,900",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(executable_path=DRIVER))
    yield driver
    driver.quit()


class Page:
    """What a reader can see and do."""

    def __init__(self, browser, path):
        self.browser = browser
        browser.get(path.as_uri())
        WebDriverWait(browser, 20).until(lambda _: self.all("#case[data-case]"))

    def __call__(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    @property
    def state(self):
        names = ("case", "target", "mode", "from", "to")
        return {name: self("#case").get_dom_attribute(f"data-{name}") for name in names}

    @property
    def listed(self):
        return [int(option.get_dom_attribute("data-case")) for option in self.all("#cases li")]

    @property
    def range(self):
        return int(self.state["from"]), int(self.state["to"])

    @property
    def tip(self):
        names = ("time", "channel", "value", "for", "against", "net")
        return {name: self("#tip").get_dom_attribute(f"data-{name}") for name in names}

    def picture(self, selector):
        return self.browser.execute_script(
            "return document.querySelector(arguments[0]).toDataURL()", f"{selector} canvas"
        )

    def press(self, *keys):
        ActionChains(self.browser).send_keys(*keys).perform()

    def choose(self, selector, text):
        Select(self(selector)).select_by_visible_text(text)

    def pointer(self, selector):
        area = self(f"{selector} .area")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", area)
        return area, ActionChains(self.browser, duration=50)


@pytest.fixture
def page(browser, tmp_path):
    """Write a page, open it, and look for complaints of the browser at the end."""

    def opened(*args, **kwargs):
        return Page(browser, report.write(tmp_path / "page.html", *args, **kwargs))

    yield opened
    assert browser.get_log("browser") == []


def channel(number):
    return f"[data-kind=channel][data-channel='{number}']"


def test_list_and_filters(page, explanations):
    found, y = explanations()
    predicted = found[0].classes[found[0].probabilities.argmax(axis=1)]
    shown = page(found, y=y)
    assert shown.listed == list(range(12))
    assert shown("#count").text == "12 cases"
    row = shown("#cases li[data-case='3']")
    assert row.text.split()[:3] == ["3", y[3], predicted[3]]
    assert "wrong" in row.get_dom_attribute("class")

    shown("#only-mistakes").click()
    assert shown.listed == np.flatnonzero(y != predicted).tolist() == [3, 7, 11]
    assert shown("#count").text == "3 of 12 cases"
    assert shown.state["case"] == "3"
    shown("#clear").click()
    assert len(shown.listed) == 12

    shown.choose("#filter-true", "walk")
    shown.choose("#filter-predicted", "walk")
    both = (y == "walk") & (predicted == "walk")
    assert shown.listed == np.flatnonzero(both).tolist()
    shown("#clear").click()
    shown("#search").send_keys("run 1")
    with_one = [i for i in range(12) if "run" in (y[i], predicted[i]) and "1" in str(i)]
    assert shown.listed == with_one != []
    shown("#clear").click()
    shown.choose("#sort", "least certain first")
    assert shown.listed == np.argsort(found[0].probabilities.max(axis=1)).tolist()


def test_keys_move_between_cases(page, explanations):
    found, y = explanations()
    shown = page(found, y=y)
    assert shown.state["case"] == "0"
    shown.press(Keys.ARROW_DOWN)
    assert shown.state["case"] == "1"
    assert shown("#case-title").text == "Case 1"
    shown.press("j", "j", "k")
    assert shown.state["case"] == "2"
    shown.press(Keys.ARROW_UP, Keys.ARROW_UP, Keys.ARROW_UP)
    assert shown.state["case"] == "0"
    assert shown("#cases").get_dom_attribute("aria-activedescendant") == "case-0"
    assert shown("#cases li[aria-selected=true]").get_dom_attribute("data-case") == "0"
    shown.press("/")
    shown.press("jj")
    assert shown("#search").get_property("value") == "jj"
    assert shown.listed == []
    assert shown.state["case"] == "0"


def test_class_and_mode_change_what_is_drawn(page, explanations):
    found, y = explanations()
    shown = page(found, y=y)
    assert shown.state["target"] == "0"
    pictures = [shown.picture(channel(0)), shown.picture("[data-kind=heat]")]
    shown.choose("#target", "run")
    assert shown.state["target"] == "2"
    sum_ = report.sums.sum_as_text(found[2].base[0], found[2].net[0].sum(), found[2].logit[0])
    assert shown("#logit").text == "Base {} + evidence {} = logit {} of run".format(*sum_)
    changed = [shown.picture(channel(0)), shown.picture("[data-kind=heat]")]
    assert all(new != old for new, old in zip(changed, pictures, strict=True))
    shown(".bar[data-class='0']").click()
    assert shown.state["target"] == "0"
    assert shown.picture(channel(0)) == pictures[0]
    seen = {pictures[0]}
    for mode in ("for", "against", "net"):
        shown(f"#mode input[value={mode}]").click()
        assert shown.state["mode"] == mode
        seen.add(shown.picture(channel(0)))
    assert len(seen) == 4
    bars = {b.text.split()[0]: b.text.split()[1] for b in shown.all(".bar")}
    for k, label in enumerate(found[0].classes):
        assert float(bars[label]) == pytest.approx(100 * found[0].probabilities[0, k], abs=0.06)


def test_pointing_tells_the_values(page, explanations):
    found, y = explanations()
    found[0].series[0, 0, 40] = np.nan
    shown = page(found, y=y)
    peak = int(found[0].positive_by_channel[0, 0].argmax())
    for time in (peak, 40, 3):
        area, hand = shown.pointer(channel(0))
        inner = area.size["width"] - 64
        x = 54 + (time + 0.5) / 80 * inner - area.size["width"] / 2
        hand.move_to_element_with_offset(area, round(x), 0).perform()
        tip = shown.tip
        assert (tip["time"], tip["channel"]) == (str(time), "0")
        assert float(tip["for"]) == pytest.approx(
            found[0].positive_by_channel[0, 0, time], abs=1e-4
        )
        assert float(tip["against"]) == pytest.approx(0.01, abs=1e-4)
        assert float(tip["net"]) == pytest.approx(found[0].net[0, time] + 0.02, abs=1e-4)
        if time == 40:
            assert tip["value"] == ""
            assert "missing" in shown("#tip").text
        else:
            assert float(tip["value"]) == pytest.approx(found[0].series[0, 0, time], abs=1e-3)
    assert shown("#tip").is_displayed()


def test_the_cursor_moves_by_keys(page, explanations):
    found, y = explanations()
    shown = page(found, y=y)
    shown.browser.execute_script(f'document.querySelector("{channel(1)}").focus()')
    hold = ActionChains(shown.browser).key_down(Keys.SHIFT)
    hold.send_keys(*[Keys.ARROW_RIGHT] * 3).send_keys(Keys.ARROW_LEFT).key_up(Keys.SHIFT).perform()
    assert shown.tip["time"] == "41"
    assert float(shown.tip["value"]) == pytest.approx(found[0].series[0, 1, 41], abs=1e-3)
    assert shown("#readout").get_property("textContent").startswith("Channel 1, time 41, value")
    shown.press(Keys.ESCAPE)
    assert not shown("#tip").is_displayed()


def test_zoom(page, explanations):
    found, y = explanations()
    shown = page(found, y=y)
    assert shown.range == (0, 79)
    shown.press("+")
    assert shown.range == (20, 59)
    picture = shown.picture(channel(0))
    shown.press(Keys.ARROW_RIGHT)
    assert shown.range == (24, 63)
    assert shown.picture(channel(0)) != picture
    shown.press(Keys.ARROW_LEFT, "-")
    assert shown.range == (0, 79)
    shown("#zoom-in").click()
    shown("#zoom-in").click()
    assert shown.range == (30, 49)
    shown.press("0")
    assert shown.range == (0, 79)

    area, hand = shown.pointer(channel(0))
    left = 54 - area.size["width"] / 2
    inner = area.size["width"] - 64
    hand.move_to_element_with_offset(area, round(left + inner * 20.5 / 80), 0).click_and_hold()
    hand.move_by_offset(round(inner * 20 / 80), 0).release().perform()
    assert shown.range == (20, 40)
    shown.press(Keys.ARROW_DOWN)
    assert shown.range == (20, 40)
    ActionChains(shown.browser).double_click(shown(f"{channel(0)} .area")).perform()
    assert shown.range == (0, 79)


def test_confusion_matrix_filters(page, explanations):
    found, y = explanations()
    predicted = found[0].classes[found[0].probabilities.argmax(axis=1)]
    shown = page(found, y=y, settings={"n_bins": 20})
    labels = list(found[0].classes)
    counts = np.zeros((3, 3), int)
    for cell in shown.all("#confusion button"):
        at = int(cell.get_dom_attribute("data-true")), int(cell.get_dom_attribute("data-predicted"))
        counts[at] = int(cell.text.split()[0])
    np.testing.assert_array_equal(counts, confusion_matrix(y, predicted, labels=labels))
    assert shown("#accuracy").text == "75.0 %"
    wrong = shown("#confusion .wrong button")
    true, other = (int(wrong.get_dom_attribute(f"data-{part}")) for part in ("true", "predicted"))
    wrong.click()
    expected = np.flatnonzero((y == labels[true]) & (predicted == labels[other]))
    assert shown.listed == expected.tolist()
    assert shown("#settings").text == "n_bins 20"


def test_confusion_of_a_whole_test_set(page, explanations):
    found, _ = explanations(n_cases=2)
    rng = np.random.default_rng(1)
    y_true, y_pred = rng.choice(found[0].classes, (2, 500))
    shown = page(found, overall=(y_true, y_pred))
    cells = [int(cell.text.split()[0]) for cell in shown.all("#confusion button")]
    expected = confusion_matrix(y_true, y_pred, labels=found[0].classes)
    assert cells == expected.ravel().tolist()
    assert not shown.all("#only-mistakes")


def test_dark_mode(page, explanations):
    found, y = explanations()
    shown = page(found, y=y)
    before = shown("body").value_of_css_property("background-color"), shown.picture(channel(0))
    shown("#theme").click()
    assert shown("#theme").get_dom_attribute("aria-pressed") == "true"
    after = shown("body").value_of_css_property("background-color"), shown.picture(channel(0))
    assert before[0] != after[0]
    assert before[1] != after[1]
    shown("#theme").click()
    assert shown("body").value_of_css_property("background-color") == before[0]


def test_many_channels(page, explanations):
    found, y = explanations(n_cases=2, n_channels=40)
    shown = page(found, y=y)
    plots = shown.all("[data-kind=channel]")
    assert len(plots) == 6
    assert plots[0].get_dom_attribute("data-channel") == "0"
    assert not shown.all(channel(33))
    area, hand = shown.pointer("[data-kind=heat]")
    row = (area.size["height"] - 16) / 40
    y_offset = round(33.5 * row - area.size["height"] / 2)
    hand.move_to_element_with_offset(area, 30, y_offset).click().perform()
    assert shown.browser.switch_to.active_element.get_dom_attribute("data-channel") == "33"
    shown("#show-all").click()
    assert len(shown.all("[data-kind=channel]")) == 40


def test_thinned_series_say_so(page, explanations):
    found, y = explanations(n_cases=2, n_timepoints=5000)
    shown = page(found, y=y)
    assert "each column shows 3 of them" in shown("#thinned").text
    assert shown.range == (0, 4999)
    shown.press("+", "+")
    assert shown.range[1] - shown.range[0] < 1300
    area, hand = shown.pointer(channel(0))
    hand.move_to_element_with_offset(area, 0, 0).perform()
    first = int(shown.tip["time"])
    points = slice(first, first + 3)
    lowest = found[0].series[0, 0, points].min()
    assert float(shown.tip["value"]) == pytest.approx(lowest, abs=1e-3)
    assert f"{first}–{first + 2}" in shown("#tip").text


@pytest.mark.parametrize(
    "options", [{"with_series": False, "n_channels": 1}, {"with_probabilities": False}]
)
def test_less_is_given(page, explanations, options):
    found, _ = explanations(n_cases=1, **options)
    shown = page(found)
    assert shown.listed == [0]
    assert not shown.all("#confusion")
    area, hand = shown.pointer(channel(0))
    hand.move_to_element_with_offset(area, 0, 0).perform()
    assert shown("#tip").is_displayed()


def test_hostile_text_stays_text(page, explanations):
    hostile = "</script><script>document.title='taken'</script><img src=x onerror=alert(1)>\"'&é🙂"
    found, y = explanations(classes=(hostile, "b", "c"))
    shown = page(found, y=y, title=hostile, settings={hostile: hostile})
    assert shown.browser.title == hostile
    assert shown("h1").text == hostile
    assert shown("#settings th").text == hostile
    assert shown("#cases li[data-case='0'] .label").get_property("textContent") == hostile
    assert not shown.all("img")


def test_help(page, explanations):
    shown = page(*explanations()[:1])
    shown.press("?")
    assert shown("#help").is_displayed()
    shown.press("j")
    assert shown.state["case"] == "0"
    shown.press(Keys.ESCAPE)
    assert not shown("#help").is_displayed()


def test_narrow_screen_does_not_scroll_sideways(page, explanations, browser):
    found, y = explanations(classes=("x" * 110, "b", "c"), n_channels=40)
    size = browser.get_window_size()
    try:
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True},
        )
        shown = page(found, y=y)
        assert shown.browser.execute_script("return document.documentElement.scrollWidth") <= 400
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert browser.get_window_size() == size
