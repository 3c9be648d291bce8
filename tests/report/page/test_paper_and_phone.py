"""The page of the report on paper and on a narrow screen."""

import base64

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from tests.report.browsing import choose, column, errors, opened, show, visible


def test_all_is_there_when_the_page_has_loaded(browser, address):
    """Programs that print without a window print then."""
    show(browser)
    browser.get("about:blank")
    browser.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument",
        {
            "source": "addEventListener('load', () => { window.atLoad ="
            " document.querySelectorAll('#all-cells tbody tr').length; });"
        },
    )
    browser.get(address)
    assert browser.execute_script("return window.atLoad") > 20
    assert browser.execute_script("return document.querySelectorAll('iframe').length") == 0
    assert errors(browser) == []


def test_paper_gets_what_is_open_and_all_of_it_on_demand(page, address):
    script = """
    const list = document.querySelector("#cells .fold");
    const inList = document.querySelector("#all-cells tbody");
    for (let k = 0; k < 200; k++) inList.append(inList.rows[0].cloneNode(true));
    window.dispatchEvent(new Event("beforeprint"));
    const closed = [...document.querySelectorAll(".fold:not([open])")];
    const contents = closed.map((fold) => fold.querySelector(".scroll")).filter((e) => e);
    const note = document.querySelector(".on-paper");
    const found = [list.open, contents.length, contents.filter((e) => e.checkVisibility()).length,
      note.checkVisibility(), document.querySelectorAll("[data-figure]:empty").length];
    window.dispatchEvent(new Event("afterprint"));
    return [...found, list.open];
    """
    show(page, media="print")
    is_listed, closed, shown, is_noted, missing, is_listed_after = page.execute_script(script)
    assert (is_listed, is_listed_after, is_noted) == (False, True, True)
    assert closed > 3
    assert shown == 0
    assert missing > 0

    opened(page, f"{address}?open=all")  # what the button does, for who prints without a window
    assert page.execute_script(script) == [True, 0, 0, False, 0, True]
    show(page)
    page.find_element(By.NAME, "unfold").click()
    assert page.execute_script("return document.querySelector('.fold[open]')") is None
    assert page.execute_script("return location.search") == ""


def test_filters_and_the_heading_of_the_section_stay_on_top(page):
    """Neither covers the other, nor what a link leads to; a low window and paper have neither."""
    seen = """
    const [name] = arguments;
    const heading = document.querySelector(`${name} h2`).getBoundingClientRect();
    const filters = document.querySelector(".filters").getBoundingClientRect();
    const at = document.elementFromPoint(heading.left + 30, heading.top + heading.height / 2);
    return [at?.closest(name) !== null && at?.tagName === "H2", heading.top, heading.bottom,
      Math.max(0, filters.top <= 0 ? filters.bottom : 0)];
    """
    into = "scrollBy(0, document.querySelector(arguments[0]).getBoundingClientRect().bottom - 300)"
    for width, height in ((1400, 700), (800, 700), (390, 844)):
        show(page, width, height)
        for name in ("#summary", "#cells", "#privacy"):
            page.execute_script(into, name)
            is_seen, top, _, filters = page.execute_script(seen, name)
            assert (is_seen, round(top)) == (True, round(filters)), (width, name)
        page.execute_script("location.hash = ''")
        page.find_element(By.CSS_SELECTOR, "nav a[href='#tables']").click()
        _, top, _, filters = page.execute_script(seen, "#tables")
        assert round(filters) <= round(top) < filters + 30
        page.execute_script("location.hash = 'deviation-1'")
        target = page.execute_script(
            "return document.querySelector(':target').getBoundingClientRect().top"
        )
        assert target >= page.execute_script(seen, "#deviations")[2]
    position = "return getComputedStyle(document.querySelector('#cells h2')).position"
    show(page, 844, 390)
    assert page.execute_script(position) == "static"
    show(page, media="print")
    assert page.execute_script(position) == "static"


def test_paper_has_all_figures_and_no_table_that_is_wider_than_a_sheet(page):
    heads = page.execute_script(
        """
        const table = document.querySelector(".layout table");
        const row = table.tHead.rows[0];
        const wide = [...row.cells].slice(1);
        for (let k = 0; k < 12; k++) {
          row.append(wide[0].cloneNode(true));
          for (const line of [...table.tBodies].flatMap((body) => [...body.rows]))
            if (line.cells.length > 1) line.append(line.cells[1].cloneNode(true));
        }
        const total = row.cells.length;
        document.querySelector("[name=unfold]").click();
        window.dispatchEvent(new Event("beforeprint"));
        const made = [...document.querySelectorAll(".part")];
        const parts = made.filter((part) => part.checkVisibility());
        const counts = parts.map((part) => part.tHead.rows[0].cells.length);
        const bodies = parts.map((part) => part.querySelector("tr:has(td)").cells.length);
        const empty = document.querySelectorAll("[data-figure]:empty").length;
        const isHidden = table.hidden;
        window.dispatchEvent(new Event("afterprint"));
        const left = document.querySelectorAll(".part").length;
        return [total, counts, bodies, empty, isHidden, table.hidden, left];
        """
    )
    total, counts, bodies, empty, hidden, hidden_after, parts_after = heads
    assert sum(count - 1 for count in counts) == total - 1
    assert max(counts) <= 10
    assert bodies == counts
    assert (empty, hidden, hidden_after, parts_after) == (0, True, False, 0)


def test_a_phone_has_one_list_to_sort_by(page):
    show(page, 390, 844)
    assert visible(page, "#all-cells thead button") == []
    choice = Select(page.find_element(By.CSS_SELECTOR, "#cells .sort-by select"))
    choice.select_by_visible_text("Measured ↓")
    numbers = [float(text.split()[0]) for text in column(page, "all-cells", 6) if text]
    assert numbers == sorted(numbers, reverse=True)
    assert "sort=all-cells.6.descending" in page.current_url


def test_figures_fit_a_phone_and_their_text_can_be_read(page):
    show(page, 390, 844)
    sizes, hidden = page.execute_script(
        """
        document.querySelector("[name=unfold]").click();
        const sizes = [...document.querySelectorAll("figure svg text")].map((text) => {
          const svg = text.ownerSVGElement;
          const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
          return parseFloat(getComputedStyle(text).fontSize) * scale;
        });
        const boxes = [...document.querySelectorAll("figure .scroll")];
        return [sizes, boxes.map((box) => box.scrollWidth - box.clientWidth)];
        """
    )
    assert min(sizes) > 8
    assert max(hidden) <= 0
    assert page.execute_script("return document.documentElement.scrollWidth") == 390


def test_on_a_phone_numbers_come_first(page):
    show(page, 390, 844)
    choose(page, "verdict", "worse")
    (row,) = visible(page, "#all-cells tbody tr")
    cells = sorted(row.find_elements(By.TAG_NAME, "td"), key=lambda e: (e.rect["y"], e.rect["x"]))
    shown = [cell.get_attribute("data-title") for cell in cells if cell.is_displayed()]
    assert shown[:2] == ["Published", "Measured"]


def test_no_number_of_a_list_is_off_a_phone(page):
    show(page, 390, 844)
    page.find_element(By.NAME, "unfold").click()
    off = page.execute_script(
        """
        const fields = [...document.querySelectorAll(".sheet tbody td")]
          .filter((field) => field.checkVisibility());
        const isTitled = (field) => field.dataset.title;
        return [fields.length, fields.filter((f) => f.getBoundingClientRect().right > 391).length,
          fields.filter((f) => !isTitled(f)).length];
        """
    )
    assert off[0] > 100
    assert off[1:] == [0, 0]


def test_a_phone_scrolls_tables_and_not_the_page(page):
    show(page, 390, 844)
    width = "return document.documentElement.scrollWidth"
    assert page.execute_script(width) == 390
    choose(page, "dataset", "adult")
    assert page.execute_script(width) == 390


def test_paper_gets_the_whole_page_and_no_controls(page):
    show(page, scheme="dark", media="print")
    assert visible(page, ".filters, nav, .skip") == []
    assert page.execute_script("return getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
    box = page.find_element(By.CSS_SELECTOR, "#cells .scroll")
    assert page.execute_script("return getComputedStyle(arguments[0]).overflow", box) == "visible"
    show(page)
    pdf = page.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"]
    assert base64.b64decode(pdf).startswith(b"%PDF")
