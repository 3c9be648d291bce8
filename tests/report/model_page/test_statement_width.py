"""The statement of a release in windows of all widths and on paper: no word is cut or broken."""

from __future__ import annotations

import base64
import re

import pytest

from dprepro.data.card_parts import Deployment
from dprepro.release.statement import PublicFeature, Statement, state
from dprepro.release.statement_pages import as_html
from tests.release.models import model, publisher
from tests.report.accessible import violations
from tests.report.browsing import show

LONGEST = 24
"""Letters of a word that has to stay whole; a checksum has 64."""

# A word is what stands between blanks; a part of it may begin a new line behind a hyphen.
BROKEN = """
const found = [];
for (const cell of document.querySelectorAll("th, td, p, li, h1, h2")) {
  if (!cell.checkVisibility() || cell.closest("thead") && arguments[1]) continue;
  const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode()); ) {
    for (const word of node.data.matchAll(/[^\\s-]+/g)) {
      if (word[0].length > arguments[0]) continue;
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
      if (tops.size > 1) found.push(word[0]);
    }
  }
}
return found;
"""
TOO_WIDE = """
return [document.documentElement, ...document.querySelectorAll(".wide")]
  .filter((box) => box.scrollWidth > box.clientWidth)
  .map((box) => box.getAttribute("aria-label") || "the page");
"""


def stated() -> Statement:
    """Return a statement with long names, and all that a card can say."""
    told = Deployment(
        curators=["Clinic of Exampleton"], intended_use="Planning of beds", region="Exampleland",
        contact="privacy@clinic.example", until="end of 2027",
        justification="Chosen by the board.",
    )  # fmt: skip
    found = state(model(), b"the file", publisher(deployment=told, unit_title="person", rows=40))
    long = PublicFeature(
        name="number_of_visits_before", kind="numeric", bounds=(0, 52), may_be_missing=False
    )
    data = found.data.model_copy(update={"features": [*found.data.features, long]})
    return found.model_copy(update={"data": data})


@pytest.fixture
def page(browser, tmp_path):
    place = tmp_path / "statement.html"
    place.write_text(as_html(stated()), encoding="utf-8")
    browser.get(place.as_uri())
    yield browser
    show(browser)


@pytest.mark.parametrize(
    ("width", "media"), [(1400, ""), (800, ""), (721, ""), (390, ""), (688, "print")]
)
def test_no_word_is_broken_and_nothing_is_cut_off(page, width, media):
    """At 1400 pixels narrow columns were broken letter by letter."""
    show(page, width=width, media=media)
    assert page.execute_script(BROKEN, LONGEST, width < 600) == []
    assert page.execute_script(TOO_WIDE) == []


def test_a_broken_word_would_be_found(page):
    show(page, width=1400)
    page.execute_script(
        "document.querySelectorAll('th').forEach(cell => cell.style.overflowWrap = 'anywhere');"
        "document.querySelectorAll('table.pairs th').forEach(cell => cell.style.width = '1%')"
    )
    assert page.execute_script(BROKEN, LONGEST, False)


def test_a_telephone_has_the_head_of_a_column_beside_each_cell(page):
    show(page, width=390)
    first = page.execute_script(
        "return getComputedStyle(document.querySelector('td[data-head]'), '::before').content"
    )
    assert "Value" in first


def test_the_first_part_fits_on_one_sheet_and_the_rest_begins_on_another(page):
    """Of A4, without its margins: 688 by 1017 pixels. Two sheets were allowed for it."""
    printed = page.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    sheets = len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed["data"])))
    show(page, width=688, media="print")
    heights = page.execute_script(
        "return ['.first', 'main'].map(s => document.querySelector(s).offsetHeight)"
    )
    assert heights[0] + 60 <= 1017
    assert sheets >= 2 + (heights[1] - heights[0]) // 1017


def test_the_statement_can_be_read_in_the_dark_and_by_all(page):
    assert violations(page, ((390, "light"), (1400, "dark"))) == []
