"""The page of the report in a real browser."""

from __future__ import annotations

import csv
import io
import json

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.report.accessible import violations
from tests.report.browsing import choose, column, errors, opened, show, visible
from tests.report.journals import records, spread, write
from tests.report.page.pages import ENVIRONMENT, hostile_journals, write_page


def head(page, sheet, title):
    (found,) = (
        button
        for button in page.find_elements(By.CSS_SELECTOR, f"#{sheet} thead button")
        if button.text == title
    )
    return found


def test_it_loads_nothing_says_nothing_and_does_not_jump(page):
    assert errors(page) == []
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    shifts = page.execute_async_script(
        """
        const done = arguments[0];
        const seen = [];
        new PerformanceObserver((list) => seen.push(...list.getEntries()))
          .observe({ type: "layout-shift", buffered: true });
        setTimeout(() => done(seen.map((shift) => shift.value)), 300);
        """
    )
    # A reader sees nothing of a thousandth; 0.1 counts as good.
    assert sum(shifts) < 1e-3


def test_columns_sort_by_number_both_ways_with_gaps_last(page):
    measured = 6
    before = column(page, "all-cells", measured)
    button = head(page, "all-cells", "Measured")
    for state, is_descending in (("ascending", False), ("descending", True)):
        button.click()
        after = column(page, "all-cells", measured)
        numbers = [float(text.split()[0]) for text in after if text]
        assert numbers == sorted(numbers, reverse=is_descending)
        assert len(numbers) > 5
        assert after[len(numbers) :] == [""] * (len(before) - len(numbers))
        assert sorted(after) == sorted(before)
        assert button.find_element(By.XPATH, "..").get_attribute("aria-sort") == state


def test_columns_sort_by_keyboard_and_the_focus_shows(page):
    button = head(page, "all-cells", "ε")
    page.execute_script("arguments[0].focus({focusVisible: true})", button)
    assert (
        page.execute_script("return getComputedStyle(arguments[0]).outlineStyle", button) != "none"
    )
    page.switch_to.active_element.send_keys(Keys.ENTER)
    levels = column(page, "all-cells", 2)
    private = [float(text) for text in levels if text != "Non-Private"]
    assert private == sorted(private)
    assert "Non-Private" not in levels[: len(private)]
    assert page.switch_to.active_element == button
    head(page, "all-cells", "Verdict").send_keys(Keys.SPACE)
    states = [text.lstrip("≈↑↓?…·× ") for text in column(page, "all-cells", 3)]
    assert states == sorted(states)


def test_filters_choose_rows_tables_and_columns(page):
    output = page.find_element(By.CSS_SELECTOR, ".filters output")
    total = len(column(page, "all-cells", 0))
    assert output.text == f"{total} of {total} cells: {total - 1} printed, 1 ours"

    page.execute_script("document.querySelectorAll('#figures details').forEach(d => d.open = true)")
    choose(page, "dataset", "adult")
    assert set(column(page, "all-cells", 0)) == {"adult"}
    assert {e.get_attribute("data-dataset") for e in visible(page, ".layout tbody")} == {"adult"}
    figures = {e.get_attribute("data-dataset") for e in visible(page, "figure")}
    assert figures == {"adult", None}  # those of whole documents stay

    assert [e.text.split()[0] for e in visible(page, ".group-of > summary")] == ["dp-ebm-2021"]
    choose(page, "method", "dp-ebm-gdp-2021")
    heads = [e.text for e in visible(page, ".layout thead th")]
    assert heads == ["ε", "DPEBM-GDP (2021 code)"]
    rows = column(page, "all-cells", 4)
    assert output.text == f"{len(rows)} of {total} cells: {len(rows)} printed, 0 ours"

    choose(page, "verdict", "worse")
    assert column(page, "all-cells", 7) == ["-0.1870"]
    assert [row.text.split()[0] for row in visible(page, ".layout tr:has(td)")] == ["2"]
    assert output.text == f"1 of {total} cells: 1 printed, 0 ours"

    choose(page, "dataset", "prices")
    assert visible(page, ".layout table") == []
    assert len(visible(page, ".empty")) > 1

    page.find_element(By.CSS_SELECTOR, ".filters button").click()
    assert len(column(page, "all-cells", 0)) == total
    assert visible(page, ".empty") == []
    assert errors(page) == []


def test_what_differs_stands_first_and_counts_lead_to_their_cells(page):
    assert column(page, "differing", 0) == ["↓ worse"]
    assert column(page, "all-cells", 3)[0] == "↓ worse"
    (link,) = (e for e in visible(page, ".counts a") if e.text == "1 worse")
    link.click()
    assert column(page, "all-cells", 3) == ["↓ worse"]
    assert "paper=dp-ebm-2021&verdict=worse" in page.current_url
    assert page.current_url.endswith("#cells")


def test_the_verdict_can_be_seen_without_scrolling(page):
    for width in (800, 1400):
        show(page, width)
        edges = """
        const box = document.querySelector("#cells .scroll").getBoundingClientRect();
        const cell = document.querySelector("#all-cells tbody .tone").getBoundingClientRect();
        return [cell.right, box.right];
        """
        verdict, box = page.execute_script(edges)
        assert verdict < box


def test_a_deviation_leads_to_its_reason(page):
    link = page.find_element(By.CSS_SELECTOR, ".layout a.worse")
    link.send_keys(Keys.ENTER)
    target = page.execute_script("return document.querySelector(':target').textContent")
    assert "dp-ebm-gdp-2021 on adult" in target
    assert "No reason known yet." in target


def test_the_first_tab_skips_to_the_results(page):
    page.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    skip = page.switch_to.active_element
    assert skip.text == "Skip to the results"
    assert skip.rect["y"] >= 0
    skip.send_keys(Keys.ENTER)
    assert page.execute_script("return document.activeElement.id") == "main"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_of_figures_stands_out(page, scheme):
    """axe-core, below, looks at all other text."""
    show(page, scheme=scheme)
    script = """
    const style = (selector) => getComputedStyle(document.querySelector(selector));
    return [style("body").backgroundColor, style("figure text").fill];
    """
    paper, ink = map(luminance, page.execute_script(script))
    assert (paper < 0.1) is (scheme == "dark")
    light, dark = max(paper, ink) + 0.05, min(paper, ink) + 0.05
    assert light / dark > 4.5


def luminance(colour):
    """Return the relative luminance of ``rgb(...)``, as the accessibility guidelines define it."""
    levels = [float(part) / 255 for part in colour.split("(")[1].strip(")").split(",")[:3]]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in levels]
    return sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_filters_and_sort_stand_in_the_address(page, address):
    choose(page, "dataset", "adult")
    head(page, "all-cells", "Measured").click()
    head(page, "all-cells", "Measured").click()
    link = page.current_url
    before = column(page, "all-cells", 6)
    assert link == f"{address}?dataset=adult&sort=all-cells.6.descending"
    page.get("about:blank")
    opened(page, link)
    assert column(page, "all-cells", 6) == before
    assert set(column(page, "all-cells", 0)) == {"adult"}
    opened(page, f"{address}?dataset=none-such&sort=nothing.99.up")
    assert errors(page) == []
    assert len(set(column(page, "all-cells", 0))) > 1


def test_a_number_leads_to_its_runs(page):
    choose(page, "dataset", "prices")
    link = next(e for e in visible(page, ".layout a.runs") if e.text.startswith("4321"))
    choose(page, "dataset", "adult")
    page.execute_script("arguments[0].click()", link)
    (detail,) = visible(page, ".detail")
    for text in ("Config\ntwo", "Machines\nM1", "0: 43", "9: 43"):
        assert text in detail.text
    assert detail.find_element(By.CSS_SELECTOR, "code").text == (
        "dprepro run two.yaml --method mine --epsilon 1 --results again"
    )
    button = page.execute_script("return arguments[0].previousElementSibling", detail)
    button = button.find_element(By.CSS_SELECTOR, "button")
    assert button.get_attribute("aria-expanded") == "true"
    button.send_keys(Keys.ENTER)
    assert visible(page, ".detail") == []


def test_what_is_shown_can_be_saved(page):
    page.execute_script(
        "window.saved = [];"
        "URL.createObjectURL = (blob) => { window.saved.push(blob); return '#'; };"
    )
    choose(page, "verdict", "worse")
    for name in ("csv", "json"):
        page.find_element(By.NAME, name).click()
    table, objects = page.execute_async_script(
        "Promise.all(window.saved.map((blob) => blob.text())).then(arguments[0])"
    )
    (row,) = csv.DictReader(io.StringIO(table))
    (found,) = json.loads(objects)
    runs = found.pop("runs")
    assert row == found
    assert row["Difference"] == "-0.1870"
    assert len(runs["splits"]) == 25


def test_it_is_short_before_anything_is_unfolded_and_headings_stay(page):
    show(page, 1400)
    assert page.execute_script("return document.documentElement.scrollHeight") < 12_000
    top = page.execute_script(
        """
        const box = document.querySelector("#cells .scroll");
        box.scrollTop = 400;
        const head = box.querySelector("thead th").getBoundingClientRect();
        return head.top - box.getBoundingClientRect().top;
        """
    )
    assert abs(top) < 2


def test_it_follows_the_guidelines_of_accessibility(page):
    """Parts of a kind are alike: one of each will do, and two rows side by side."""
    page.execute_script(
        """
        document.querySelector("[name=unfold]").click();
        for (const details of document.querySelectorAll("details")) details.open = true;
        document.querySelectorAll("#cells .open")[0].click();
        const alike = "figure ~ figure, .layout ~ .layout, .deviation ~ .deviation, dl > div ~ div";
        for (const another of document.querySelectorAll(alike)) another.remove();
        for (const body of document.querySelectorAll("tbody")) {
          const seen = {};
          for (const row of [...body.rows]) {
            const kind = [row, ...row.querySelectorAll("[class]")].map((e) => e.className).join();
            seen[kind] = (seen[kind] ?? 0) + 1;
            if (seen[kind] > 1 && row.sectionRowIndex > 1) row.remove();
          }
        }
        """
    )
    assert visible(page, ".detail")
    assert violations(page) == []


def test_no_two_elements_have_one_name(page):
    ids = page.execute_script("return [...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))


def test_own_results_have_a_page_about_them(browser, tmp_path):
    mine = [*records(spread(0.7, 0.01, 3), "mine", 1.0, dataset="shop")]
    write(tmp_path, "mine", mine, ENVIRONMENT)
    text = write_page(tmp_path, tmp_path / "report.html")
    opened(browser, (tmp_path / "report.html").as_uri())
    assert browser.title == "Results: shop"
    assert "Results on shop" in browser.find_element(By.TAG_NAME, "h1").text
    assert column(browser, "all-cells", 0) == ["shop"]
    heads = [e.text for e in browser.find_elements(By.CSS_SELECTOR, "#all-cells thead th")]
    assert heads == ["Dataset", "Method", "ε", "Metric", "Measured"]  # no empty column
    assert "1 measured cell of 1 method." in browser.find_element(By.TAG_NAME, "header").text
    assert "dp-ebm-2021" not in text
    assert errors(browser) == []


def test_without_scripts_the_tables_are_there(browser, address):
    show(browser)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(address)
        assert visible(browser, ".filters") == []
        assert "no figures" in browser.find_element(By.TAG_NAME, "noscript").text
        for summary in browser.find_elements(By.CSS_SELECTOR, "#tables summary")[2:]:
            summary.click()
        printed = browser.find_elements(By.CSS_SELECTOR, ".layout .published")
        assert len(printed) > 20
        assert all(element.is_displayed() for element in printed)
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_hostile_text_runs_nothing(browser, tmp_path):
    write_page(hostile_journals(tmp_path), tmp_path / "report.html")
    opened(browser, (tmp_path / "report.html").as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    browser.execute_script("document.querySelectorAll('.open').forEach(b => b.click())")
    assert errors(browser) == []
    assert browser.execute_script("return window.hacked") is None
    assert browser.execute_script("return document.querySelectorAll('img, b[id]').length") == 0
    assert browser.execute_script("return document.scripts.length") == 1
    choose(browser, "method", "<script>window.hacked=1</script>")
    assert len(column(browser, "all-cells", 0)) == 1
    # Even if a text were taken for markup, the page's policy would not run it.
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 3';"
        "document.body.append(s);"
    )
    assert "Content Security Policy" in errors(browser)[0]
    assert browser.execute_script("return window.hacked") is None
