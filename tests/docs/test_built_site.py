"""The built site works from the folder, in a browser, without a server and without a network."""

from __future__ import annotations

import json
import shutil

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from dprepro.release.json_schemas import SCHEMAS, json_schema
from tests.docs.pages import ROOT
from tests.report.accessible import violations
from tests.report.browsing import show
from tests.report.conftest import browser  # noqa: F401 - a fixture

pytestmark = pytest.mark.site

BUILT = ROOT / "out" / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A copy of the built folder at another place, as somebody who was sent it has it."""
    assert BUILT.is_dir(), "`make docs` builds it"
    return shutil.copytree(BUILT, tmp_path_factory.mktemp("sent") / "site")


def test_a_word_is_found_and_nothing_comes_from_elsewhere(site, browser):  # noqa: F811
    browser.get((site / "docs" / "tutorial.html").as_uri())
    browser.execute_script("document.querySelector('label[for=__search]').click()")
    field = browser.find_element(By.CSS_SELECTOR, "input.md-search__input")
    wait = WebDriverWait(browser, 20)
    wait.until(lambda _: field.is_displayed())
    field.send_keys("canary")

    def found(_):
        links = browser.find_elements(By.CSS_SELECTOR, ".md-search-result__link")
        return [link.get_attribute("href") for link in links]

    links = wait.until(found)
    assert any("audit" in link or "glossary" in link for link in links), links
    assert all(link.startswith(site.as_uri()) for link in links)
    loaded = browser.execute_script(
        "return performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    assert [name for name in loaded if not name.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.parametrize("page", ["tutorial", "notebook", "gallery", "formats/config"])
def test_a_page_is_shown_with_its_pictures(site, browser, page):  # noqa: F811
    browser.get((site / "docs" / f"{page}.html").as_uri())
    assert browser.find_element(By.CSS_SELECTOR, "article h1").text
    widths = browser.execute_script(
        "return [...document.querySelectorAll('article img')].map(picture => picture.naturalWidth)"
    )
    assert 0 not in widths
    assert bool(widths) == (page == "gallery")
    log = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert log == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_follow_the_guidelines_of_accessibility(site, browser, scheme):  # noqa: F811
    """The theme lets no key of Safari scroll code and tables; other browsers do by themselves."""
    for page in ("docs/tutorial", "docs/api/data"):
        show(browser, scheme=scheme)
        browser.get((site / f"{page}.html").as_uri())
        # The theme keeps the first scheme that it was shown in.
        browser.execute_script("localStorage.clear()")
        browser.refresh()
        found = violations(browser, [(1400, scheme)])
        assert [broken for broken in found if broken[2] != "scrollable-region-focusable"] == []


def test_the_site_has_the_schemas(site):
    for name in SCHEMAS:
        text = (site / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8")
        assert json.loads(text) == json.loads(json.dumps(json_schema(name)))
