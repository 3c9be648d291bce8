"""A page in a browser, made once for all tests."""

import pytest

from tests.report.browsing import opened, show
from tests.report.page.pages import journals, write_page


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    folder = journals(tmp_path_factory.mktemp("results"))
    write_page(folder, folder / "report.html")
    return (folder / "report.html").as_uri()


@pytest.fixture
def page(browser, address):
    show(browser)
    return opened(browser, address)
