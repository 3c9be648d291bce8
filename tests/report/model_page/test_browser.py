"""The page of a model in a real browser: it predicts and edits as Python does."""

from __future__ import annotations

import base64
import json
import re
import time

import numpy as np
import pandas as pd
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.actions.pointer_input import PointerInput
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from dprepro.additive import editing
from dprepro.additive.file import file_text, load_model, model_from_json
from dprepro.estimators.contract import ledger_of
from dprepro.report.model_page import model_page
from tests.report.accessible import violations
from tests.report.browsing import errors, show, visible
from tests.report.model_page.models import (
    N_AGES,
    categorical,
    model,
    of_classes,
    of_counts,
    paired,
    regression,
    values,
)
from tests.report.model_page.test_content import hostile

AGE, VISITS = 1, 2
CHOOSE = """
arguments[0].value = arguments[1];
arguments[0].dispatchEvent(new Event("change"));
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory, browser):
    path = tmp_path_factory.mktemp("shown")
    behaviour = {"behavior": "allow", "downloadPath": str(path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    return path


@pytest.fixture
def opened(browser, folder):
    """A function that opens the page of a model."""

    def start(made=None, width=1280, **how):
        show(browser, width, **how)
        path = folder / "page.html"
        path.write_text(model_page(made or model(), "a model"), encoding="utf-8")
        errors(browser)
        browser.get(path.as_uri())
        return browser

    return start


def downloaded(page, folder):
    """Press the button and return the path of the file that it saves."""
    path = folder / "model-edited.json"
    path.unlink(missing_ok=True)
    page.execute_script("arguments[0].click()", page.find_element(By.ID, "download"))
    for _ in range(500):
        # The browser makes the file before it writes to it.
        if path.exists() and path.read_bytes().rstrip().endswith(b"}"):
            return path
        time.sleep(0.01)
    raise AssertionError("nothing was saved")


def tool(page, name):
    return page.find_element(By.CSS_SELECTOR, f"[data-tool={name}]")


def open_function(page, name):
    page.find_element(By.CSS_SELECTOR, f'[data-feature="{name}"]').click()


def bins(page):
    return page.find_elements(By.CSS_SELECTOR, "#large .hit")


def type_in(page, k, text):
    field = page.find_element(By.ID, f"value-{k}")
    field.clear()
    field.send_keys(text)


def choose_range(page, first, last):
    for name, place in (("to", last), ("from", first)):
        page.execute_script(CHOOSE, tool(page, name), str(place))


def number(page, selector):
    return float(page.find_element(By.CSS_SELECTOR, selector).get_attribute("value"))


def whole(made, k):
    """The function of a feature in units of 2^-28."""
    return np.ldexp(made.shape_functions_[k], 28)


def test_it_shows_all_functions_by_importance_and_loads_nothing(opened):
    page = opened()
    assert errors(page) == []
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    names = [card.get_attribute("data-feature") for card in visible(page, ".card")]
    assert names == ["age", "city", "visits"]
    assert "years" in page.find_element(By.CSS_SELECTOR, ".card").text
    assert len(visible(page, ".card path.band")) == 2  # of both numbers; city has whiskers
    assert len(page.find_elements(By.CSS_SELECTOR, ".card circle.point")) == 1  # age is missing
    assert len(page.find_elements(By.CSS_SELECTOR, ".card .bar-of")) == 5


def test_a_band_that_the_frame_cuts_ends_in_an_arrow(opened):
    made = values()
    made["features"][0]["values"] = [10**7, -(10**7), 0, 0, 0]
    cut = ".card[data-feature=city] .whisker.cut"
    for noise, arrows in ((10**6, 0), (10**9, 5)):
        made["features"][0]["noise"] = 5 * [noise]
        page = opened(model_from_json(made))
        assert len(page.find_elements(By.CSS_SELECTOR, cut)) == arrows
    for path in page.find_elements(By.CSS_SELECTOR, cut):
        left, tip = re.findall(r"[\d.]+ [\d.]+", path.get_attribute("d"))[:2]
        assert float(left.split()[1]) > float(tip.split()[1])  # the upper one points up


@pytest.mark.parametrize("is_alike", [False, True])
def test_functions_have_one_scale_where_it_is_readable(opened, is_alike):
    """A fifth of it for half of the functions: of three, age alone is large."""
    made = values()
    if is_alike:
        made["features"][0]["values"] = [10**8, -(10**8), 10**7, 0, 0]
    page = opened(model_from_json(made))
    script = """
    const texts = (card) => [...card.querySelectorAll("text")].map((text) => text.textContent);
    return [...document.querySelectorAll(".card")].map(
      (card) => texts(card).find((text) => /^[−0-9.]+$/.test(text))
    );
    """
    said = page.find_element(By.ID, "scale-rule")
    for is_one in (is_alike, not is_alike):
        assert page.find_element(By.ID, "scale").is_selected() == is_one
        assert (len(set(page.execute_script(script))) == 1) == is_one
        assert bool(said.text) == (is_one == is_alike)
        page.find_element(By.ID, "scale").click()


def test_importance_has_a_unit(opened):
    for made, unit in ((values(), "log odds"), (regression(), "rent")):
        page = opened(model_from_json(made))
        texts = [e.text for e in page.find_elements(By.CSS_SELECTOR, ".importance")]
        assert len(texts) == 3
        assert all(re.fullmatch(rf"importance \S+ {unit}", text) for text in texts)


@pytest.mark.parametrize(
    "made",
    [values(), regression(), of_counts(), paired()],
    ids=["binary", "regression", "counts", "pairs"],
)
def test_a_typed_in_row_is_predicted_as_in_python(opened, made):
    python = model_from_json(made)
    page = opened(python)
    rows = [("other", "", "0.25"), ("Bonn", "1000", "-7")]  # a number on a cut lies above it
    for city, age, visits in rows:
        Select(page.find_element(By.ID, "value-0")).select_by_visible_text(
            "any other" if city == "other" else city
        )
        type_in(page, AGE, age)
        type_in(page, VISITS, visits)
        row = pd.DataFrame(
            {"city": [city], "age": [float(age or "nan")], "visits": [float(visits)]}
        )
        parts = python.contributions(row)[0]
        shown = page.execute_script(
            "return [...document.querySelectorAll('#parts data')].map((data) => Number(data.value))"
        )
        order = np.argsort(-np.abs(parts), kind="stable")
        np.testing.assert_allclose(shown[0], python.intercept_, rtol=0, atol=1e-12)
        np.testing.assert_allclose(shown[1:-1], parts[order], rtol=0, atol=1e-12)
        if made["task"] == "regression":
            assert abs(number(page, "#prediction") - python.predict(row)[0]) < 1e-9
        else:
            assert abs(number(page, "#score") - python.decision_function(row)[0]) < 1e-9
            assert abs(number(page, "#prediction") - python.predict_proba(row)[0, 1]) < 1e-9
    assert "outside 18 to 90" in page.find_element(By.ID, "note-1").text
    assert ("clipped" in page.find_element(By.ID, "result").text) == (made["task"] != "binary")


def test_functions_of_counts_say_what_they_multiply_by(opened, folder):
    python = model_from_json(of_counts())
    page = opened(python)
    Select(page.find_element(By.ID, "value-0")).select_by_visible_text("Ulm")
    type_in(page, AGE, "30")
    type_in(page, VISITS, "0")
    row = pd.DataFrame({"city": ["Ulm"], "age": [30.0], "visits": [0.0]})
    parts, count = python.contributions(row)[0], python.predict(row)[0]
    assert abs(number(page, "#score") - np.log(count)) < 1e-12
    result = page.find_element(By.ID, "result").text.split("\n")
    assert result == [f"{count:.4g}", "visits", f"logarithm +{np.log(count):.3g}"]
    cells = {
        name.split(" = ")[0]: line.find_elements(By.TAG_NAME, "td")[1].text
        for name, line in in_table(page, "parts").items()
    }
    assert cells == {
        "intercept": f"{np.exp(python.intercept_):.4g}",
        "city": f"times {np.exp(parts[0]):.3g}",
        "age": f"times {np.exp(parts[1]):.3g}",
        "visits": "times 1",
        "sum": f"{count:.4g}",
    }
    open_function(page, "age")
    assert f"give visits = {count:.4g}." in page.find_element(By.ID, "row-now").text
    choose_range(page, 2, 2)
    tool(page, "value").clear()
    tool(page, "value").send_keys("0.3")
    tool(page, "set").click()
    assert re.match(r"30\.2 to \S+: \+0\.3 ± \S+ \(times 1\.35\), ", tool(page, "readout").text)
    said = bins(page)[2].get_attribute("aria-valuetext")
    assert said == "+0.3 logarithm of visits, times 1.35"
    tool(page, "close").click()
    type_in(page, AGE, "31")
    edited = load_model(downloaded(page, folder))
    assert abs(number(page, "#prediction") - edited.predict(row.assign(age=31.0))[0]) < 1e-9
    assert errors(page) == []


def shown_functions(page):
    """How many functions the pictures show, by feature."""
    looked = {"age": "path.function", "visits": "path.function", "city": ".bar-of"}
    return {
        name: len(page.find_elements(By.CSS_SELECTOR, f".card[data-feature={name}] {what}"))
        for name, what in looked.items()
    }


def in_table(page, table):
    """The cells of a table's body, by the text of the head of the row."""
    rows = page.find_elements(By.CSS_SELECTOR, f"#{table} tbody tr")
    return {row.find_element(By.TAG_NAME, "th").text: row for row in rows}


def numbers(row):
    return [float(data.get_attribute("value")) for data in row.find_elements(By.TAG_NAME, "data")]


@pytest.mark.parametrize("classes", [3, 10, 14])
def test_several_classes_are_drawn_beside_each_other(opened, classes):
    page = opened(model_from_json(of_classes(classes)))
    assert errors(page) == []
    drawn = min(classes, 10)
    assert shown_functions(page) == {"age": drawn, "visits": drawn, "city": 5 * drawn}
    keys = [key.text for key in visible(page, "#class-keys > span")]
    assert keys == [f"rank {c}" for c in range(classes - drawn, classes)]
    looks = page.execute_script(
        "return [...document.querySelectorAll('[data-feature=age] path.function')].map((line) =>"
        " [getComputedStyle(line).stroke, getComputedStyle(line).strokeDasharray].join())"
    )
    assert len(set(looks)) == drawn
    assert visible(page, ".card path.band") == []
    assert visible(page, ".of-bands") == []
    offered = Select(page.find_element(By.ID, "class"))
    first = offered.first_selected_option.text
    assert first == ("all" if classes <= 10 else "the 10 with the largest intercepts")
    offered.select_by_visible_text("rank 1")
    assert shown_functions(page) == {"age": 1, "visits": 1, "city": 5}
    assert len(visible(page, ".card path.band")) == 2
    assert [key.text for key in visible(page, "#class-keys > span")] == ["rank 1"]
    assert not visible(page, "#edits, a[href='#edits'], #unsaved")
    assert errors(page) == []


def test_the_scale_is_chosen_anew_for_a_class(opened):
    """Of the last class two of three functions are small beside the third."""
    made = of_classes(3)
    for feature, size in zip(made["features"], (1, 1, 100), strict=True):
        feature["values"] = [
            [10**7, 10**7 * (-1) ** b, size * 10**7] for b, _ in enumerate(feature["values"])
        ]
        feature["noise"] = None
    page = opened(model_from_json(made))
    said, chosen = page.find_element(By.ID, "scale-rule"), Select(page.find_element(By.ID, "class"))
    for name, is_one in (("rank 2", False), ("rank 1", True), ("rank 2", False)):
        chosen.select_by_visible_text(name)
        assert page.find_element(By.ID, "scale").is_selected() == is_one
        assert ("They have one scale" in said.text) == is_one


def test_of_several_classes_a_typed_in_row_is_predicted_as_in_python(opened):
    python = model_from_json(of_classes(4))
    page = opened(python)
    rows = [("any other", "", "0.25"), ("Bonn", "44", "0.1")]
    for city, age, visits in rows:
        Select(page.find_element(By.ID, "value-0")).select_by_visible_text(city)
        type_in(page, AGE, age)
        type_in(page, VISITS, visits)
        row = pd.DataFrame(
            {"city": [city], "age": [float(age or "nan")], "visits": [float(visits)]}
        )
        chances, sums = python.predict_proba(row)[0], python.decision_function(row)[0]
        found = in_table(page, "chances")
        assert list(found) == [f"rank {c}" for c in np.argsort(-sums)]
        expected = zip(chances, sums, python.intercept_, strict=True)
        for name, all_of_class in zip(python.class_names, expected, strict=True):
            np.testing.assert_allclose(numbers(found[name]), all_of_class, rtol=0, atol=1e-12)
        likeliest = f"rank {chances.argmax()}"
        assert f"{likeliest}, the likeliest class" in page.find_element(By.ID, "result").text
        for chosen in (likeliest, "rank 0"):
            Select(page.find_element(By.ID, "class")).select_by_visible_text(chosen)
            c = python.class_names.index(chosen)
            assert abs(number(page, "#prediction") - chances[c]) < 1e-12
            parts = np.sort(python.contributions(row)[0, :, c])
            shown = np.concatenate([numbers(row) for row in in_table(page, "parts").values()])
            assert abs(shown[0] - python.intercept_[c]) < 1e-12
            np.testing.assert_allclose(np.sort(shown[1:-1]), parts, rtol=0, atol=1e-12)
        Select(page.find_element(By.ID, "class")).select_by_index(0)


def test_a_bin_of_several_classes_is_read_and_not_changed(opened):
    python = model_from_json(of_classes(3))
    page = opened(python)
    open_function(page, "age")
    bins(page)[0].send_keys(Keys.ARROW_RIGHT)
    bins(page)[1].send_keys(Keys.ARROW_UP)
    assert page.find_element(By.ID, "no-edits").get_attribute("hidden") is None
    found, values_of = in_table(page, "by-class"), python.shape_functions_[AGE][1]
    assert list(found) == ["rank 0", "rank 1", "rank 2"]
    assert [numbers(row)[0] for row in found.values()] == values_of.tolist()
    noise = [float(row.find_elements(By.TAG_NAME, "td")[1].text) for row in found.values()]
    np.testing.assert_allclose(noise, 2 * python.shape_noise_[AGE][1], rtol=0.05)
    label = bins(page)[1].get_attribute("aria-label")
    assert re.fullmatch(r"24\.1 to \S+: rank 0 \S+, rank 1 \S+, rank 2 \S+", label)
    assert bins(page)[1].get_attribute("role") == "img"
    tools = ["set", "value", "level", "line", "rise", "fall", "back", "undo", "redo", "why"]
    assert not [name for name in tools if tool(page, name).is_displayed()]
    assert errors(page) == []


def test_without_edits_the_download_is_the_file(opened, folder):
    for made in (values(), of_counts(), paired()):
        page = opened(model_from_json(made))
        assert downloaded(page, folder).read_text(encoding="utf-8") == file_text(
            json.loads(json.dumps(made))
        )


def test_a_drag_moves_a_bin_and_the_downloaded_model_predicts_so(opened, folder):
    page = opened()
    open_function(page, "age")
    ActionChains(page).drag_and_drop_by_offset(bins(page)[4], 0, -60).perform()
    tool(page, "why").send_keys("too few \N{GRINNING FACE} rows")
    assert "age: set bin 4 to" in tool(page, "status").text
    tool(page, "close").click()
    type_in(page, AGE, "45")
    score = number(page, "#score")
    assert visible(page, "#as-released")
    assert visible(page, "#unsaved")
    path = downloaded(page, folder)
    assert not visible(page, "#unsaved")
    edited, original = load_model(path), model()
    (edit,) = edited.edits_
    moved = whole(edited, AGE) - whole(original, AGE)
    assert moved[4] > 10**6
    assert np.flatnonzero(moved).tolist() == [4]
    assert edit.detail.endswith("; why: too few \N{GRINNING FACE} rows")
    assert ledger_of(edited).post_processing == [str(edit)]
    row = pd.DataFrame({"city": ["Ulm"], "age": [45.0], "visits": [0.0]})
    assert edited.bins_[AGE].encode(row["age"])[0] == 4
    assert abs(edited.decision_function(row)[0] - score) < 1e-9
    editing.undo(edited)
    np.testing.assert_array_equal(whole(edited, AGE), whole(original, AGE))


def test_a_cell_of_a_pair_is_chosen_and_set_and_the_downloaded_model_predicts_so(opened, folder):
    page = opened(model_from_json(paired()))
    figure = page.find_element(By.CSS_SELECTOR, '[data-pair="age & visits"]')
    cells = figure.find_elements(By.CSS_SELECTOR, ".cell")
    assert [("lost" in cell.get_attribute("class")) for cell in cells] == [True] + [False] * 7
    cells[5].click()
    said = figure.find_element(By.CSS_SELECTOR, "[role=status]")
    assert "many" in said.text
    value = figure.find_element(By.CSS_SELECTOR, "input")
    value.clear()
    value.send_keys("0.75")
    figure.find_element(By.CSS_SELECTOR, "button").click()
    assert "(edited)" in said.text
    type_in(page, AGE, "80")
    type_in(page, VISITS, "0.9")
    score = number(page, "#score")
    edited, original = load_model(downloaded(page, folder)), model_from_json(paired())
    (edit,) = edited.edits_
    assert edit.feature == "age & visits"
    moved = (edited.pairs_[1].values != original.pairs_[1].values).ravel()
    assert np.flatnonzero(moved).tolist() == [5]
    assert edited.pairs_[1].values[2, 1] == 0.75
    city = page.execute_script("return row[0]")
    row = pd.DataFrame({"city": [city], "age": [80.0], "visits": [0.9]})
    assert abs(edited.decision_function(row)[0] - score) < 1e-9
    assert edited.contributions(row)[0, 4] == 0.75
    page.find_element(By.CSS_SELECTOR, "[data-history=undo]").click()
    assert "(edited)" not in said.text
    assert number(page, "#score") == pytest.approx(original.decision_function(row)[0], abs=1e-9)


def test_keys_move_bins_select_ranges_and_go_back(opened, folder):
    page = opened()
    page.find_element(By.CSS_SELECTOR, '[data-feature="age"]').send_keys(Keys.ENTER)
    at = page.switch_to.active_element
    assert (at.aria_role, at.accessible_name) == ("slider", "below 24.1")
    at.send_keys(Keys.ARROW_RIGHT)
    at = page.switch_to.active_element
    assert page.execute_script("return getComputedStyle(arguments[0]).stroke", at) != "none"
    before = float(at.get_attribute("aria-valuenow"))
    at.send_keys(Keys.ARROW_UP, Keys.ARROW_UP)
    step = (float(at.get_attribute("aria-valuenow")) - before) / 2
    at.send_keys(Keys.SHIFT, Keys.ARROW_DOWN)
    now = float(at.get_attribute("aria-valuenow"))
    np.testing.assert_allclose(now - before, -8 * step, rtol=1e-6)
    assert step > 0
    at.send_keys(Keys.SHIFT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    page.switch_to.active_element.send_keys(Keys.ARROW_UP)
    edited = load_model(downloaded(page, folder))
    assert [edit.detail.split(" by ")[0] for edit in edited.edits_] == [
        f"bin 1 to {now:.6g}",
        "from 24.1 to 42.1",
    ]
    moved = edited.shape_functions_[AGE] - model().shape_functions_[AGE]
    np.testing.assert_allclose(moved[1:4], [-7 * step, step, step], rtol=1e-6)
    assert not moved[[0, *range(4, N_AGES + 1)]].any()

    held = page.switch_to.active_element
    held.send_keys(Keys.CONTROL, "z")
    held.send_keys(Keys.CONTROL, "z")
    assert float(bins(page)[1].get_attribute("aria-valuenow")) == before
    assert load_model(downloaded(page, folder)).edits_ == []
    held.send_keys(Keys.CONTROL, "y")
    assert float(bins(page)[1].get_attribute("aria-valuenow")) == now
    held.send_keys(Keys.END)
    assert page.switch_to.active_element.accessible_name == "missing"
    page.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert visible(page, "dialog") == []
    assert page.switch_to.active_element.get_attribute("data-feature") == "age"


def test_tools_do_what_the_command_line_does_to_the_grid(opened, folder):
    page, python = opened(), model()
    edges = np.concatenate([[18.0], python.bins_[AGE].cuts, [90.0]])
    open_function(page, "age")
    for first, last, name, function in (
        (3, 5, "level", editing.level),
        (7, 9, "line", editing.interpolate),
        (0, 0, "line", editing.interpolate),
    ):
        choose_range(page, first, last)
        tool(page, name).click()
        function(python, "age", edges[first], edges[last + 1])
    for name, direction in (("rise", "increasing"), ("fall", "decreasing")):
        tool(page, name).click()
        editing.make_monotone(python, "age", direction)
        edited = load_model(downloaded(page, folder))
        assert [e.action for e in edited.edits_] == [
            "level", "interpolate", "interpolate", "monotone"
        ]  # fmt: skip
        assert [str(e) for e in edited.edits_] == [str(e) for e in python.edits_]
        for ours, theirs in zip(edited.edits_, python.edits_, strict=True):
            assert np.abs(np.subtract(ours.after, theirs.after)).max() <= 2.0**-28
        assert whole(edited, AGE)[-1] == whole(model(), AGE)[-1]  # missing values have no order
        tool(page, "undo").click()
        editing.undo(python)


def test_values_are_set_and_set_back_for_categories_too(opened, folder):
    page = opened()
    open_function(page, "city")
    names = [bin_.accessible_name for bin_ in bins(page)]
    assert names == ["Bonn", "Lyon", "Turin", "Ulm", "(other)"]  # as on the card, others last
    assert visible(page, "[data-tool=line], [data-tool=rise], [data-tool=fall]") == []
    choose_range(page, 0, 1)
    tool(page, "value").send_keys("0.5", Keys.ENTER)
    edited = load_model(downloaded(page, folder))
    assert edited.shape_functions_[0][[0, 1]].tolist() == [0.5, 0.5]
    assert edited.edits_[0].detail == "Bonn, Lyon to 0.5"
    tool(page, "back").click()
    edited = load_model(downloaded(page, folder))
    np.testing.assert_array_equal(whole(edited, 0), whole(model(), 0))
    assert len(edited.edits_) == 2


def test_the_next_function_can_be_opened_at_once(opened):
    page = opened()
    open_function(page, "age")
    page.execute_script(
        "document.querySelector('[data-tool=close]').click();"
        "document.querySelector('[data-feature=city]').click()"
    )
    bins(page)[0].send_keys(Keys.ARROW_UP)
    assert errors(page) == []
    assert "city: set" in page.find_element(By.ID, "edit-list").get_attribute("textContent")


def test_edits_of_the_file_can_be_undone(opened, folder):
    made = model()
    editing.set_value(made, "visits", "few", 0.25)
    page = opened(made)
    assert "visits: set few to 0.25" in page.find_element(By.ID, "edit-list").text
    assert len(visible(page, ".card .badge")) == 1
    page.find_element(By.CSS_SELECTOR, "[data-history=undo]").click()
    assert visible(page, ".card .badge") == []
    assert load_model(downloaded(page, folder)).edits_ == []


def test_a_phone_scrolls_no_page_sideways(opened):
    page = opened(width=360, height=740)
    width = "return [document.documentElement.scrollWidth, innerWidth]"
    assert page.execute_script(width) == [360, 360]
    open_function(page, "age")
    assert page.execute_script(width) == [360, 360]
    box = page.find_element(By.ID, "editor")
    assert page.execute_script("return arguments[0].scrollWidth <= 360", box)


def test_a_finger_drags_a_bin(opened):
    page = opened(width=360, height=740)
    open_function(page, "age")
    cell = bins(page)[5]
    before = float(cell.get_attribute("aria-valuenow"))
    finger = ActionBuilder(page, mouse=PointerInput("touch", "finger"))
    finger.pointer_action.move_to(cell).pointer_down().move_by(0, -15).move_by(0, -15).pointer_up()
    finger.perform()
    assert float(cell.get_attribute("aria-valuenow")) > before + 0.01
    assert len(page.find_elements(By.CSS_SELECTOR, "#edit-list li")) == 1


def test_paper_and_the_dark_have_colours_of_their_own(opened):
    page = opened(scheme="dark")
    script = "return getComputedStyle(document.querySelector('path.function')).stroke"
    assert page.execute_script(script) == "rgb(86, 180, 233)"
    show(page, scheme="dark", media="print")
    assert page.execute_script(script) == "rgb(0, 114, 178)"
    assert visible(page, ".buttons, nav, #scale") == []
    assert len(visible(page, ".card")) == 3


def test_a_model_of_fourteen_features_is_printed_on_two_sheets(opened):
    """Four sheets for ten features, and six for fourteen."""
    made = values()
    kinds = made["features"]
    made["features"] = [{**kinds[k % 3], "name": f"feature number {k}"} for k in range(14)]
    page = opened(model_from_json(made))
    printed = page.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    sheets = re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed["data"]))
    assert len(sheets) == 2
    width = page.execute_script("return document.querySelector('.card svg').clientWidth")
    assert width > 212, "drawn anew for the screen"


def odd(units, number):
    """A model of extreme numbers: no counts, no range, no category, one bin."""
    made = values(units=units)
    city, age, visits = made["features"]
    city |= categorical("city", [], [], ["(other)"])
    age |= {"lower": -8e307, "upper": 8e307, "counts": [0] * (N_AGES + 1), "noise": [number] * 13}
    visits |= {"lower": 2.0, "upper": 2.0, "cuts": [], "labels": ["all"], "values": [number]}
    visits |= {"counts": [1], "noise": [0]}
    return model_from_json(made)


@pytest.mark.parametrize("power", [-1000, 900])
def test_odd_models_are_drawn_and_edited_without_an_error(opened, folder, power):
    units = {"functions": power, "intercept": power, "counts": 0}
    page = opened(odd(units, 2**29))
    for name in ("age", "city", "visits"):
        open_function(page, name)
        bins(page)[0].send_keys(Keys.ARROW_UP)
        tool(page, "close").click()
    assert errors(page) == []
    # All at once: the page may draw one anew between two questions.
    drawn = page.execute_script(
        "return [...document.querySelectorAll('svg')].map(svg => svg.outerHTML)"
    )
    assert len(drawn) > 3
    assert not [drawing for drawing in drawn if "NaN" in drawing]
    assert {edit.feature for edit in load_model(downloaded(page, folder)).edits_} == {
        "age", "city", "visits"
    }  # fmt: skip


@pytest.mark.parametrize(
    "made", [values(), of_counts(), paired()], ids=["features", "counts", "pairs"]
)
def test_page_and_editor_follow_the_guidelines_of_accessibility(opened, made):
    made = model_from_json(made)
    editing.set_value(made, "visits", "few", 0.25)
    page = opened(made)
    page.find_element(By.CSS_SELECTOR, ".ledger summary").click()
    assert violations(page) == []
    open_function(page, "age")
    choose_range(page, 3, 5)
    page.find_element(By.CSS_SELECTOR, ".help summary").click()
    assert violations(page, [(390, "light"), (1400, "dark")]) == []


def test_several_classes_follow_the_guidelines_of_accessibility(opened):
    page = opened(model_from_json(of_classes(7)))
    assert violations(page) == []
    open_function(page, "age")
    assert violations(page, [(390, "light"), (1400, "dark")]) == []
    show(page, 390)
    page.execute_script("document.getElementById('editor').close()")
    assert page.execute_script("return document.documentElement.scrollWidth") <= 390


def test_hostile_text_runs_nothing(opened):
    page = opened(model_from_json(hostile()))
    assert errors(page) == []
    assert page.execute_script("return window.hacked") is None
    assert page.execute_script("return document.querySelectorAll('img, b[id]').length") == 0
    assert page.execute_script("return document.scripts.length") == 2
    page.find_elements(By.CSS_SELECTOR, ".card")[1].click()
    bins(page)[0].send_keys(Keys.ARROW_UP)
    assert page.execute_script("return window.hacked") is None
    page.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 3';"
        "document.body.append(s);"
    )
    assert "Content Security Policy" in errors(page)[0]
    assert page.execute_script("return window.hacked") is None
