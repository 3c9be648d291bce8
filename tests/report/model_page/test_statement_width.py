"""The statement of a release on a telephone and on paper."""

from dprepro.release.statement import as_html, state
from tests.release.models import model, publisher
from tests.report.browsing import show


def test_no_table_of_a_statement_is_cut_off_on_a_telephone(browser, tmp_path):
    """The mechanisms pushed the page sideways: scale, uses and epsilon were cut off."""
    place = tmp_path / "statement.html"
    place.write_text(as_html(state(model(), b"the file", publisher())), encoding="utf-8")
    show(browser, width=390)
    browser.get(place.as_uri())
    widths = browser.execute_script(
        "return [document.documentElement, ...document.querySelectorAll('.wide')]"
        ".map(e => [e.scrollWidth, e.clientWidth])"
    )
    assert len(widths) == 4
    assert all(needed <= given for needed, given in widths)
    first = browser.execute_script(
        "return getComputedStyle(document.querySelector('.wide td'), '::before').content"
    )
    assert "Answer" in first
    show(browser)
