"""The page of a model reads well where there is little room."""

import pytest

from dprepro.additive.file import model_from_json
from dprepro.report.model_page import model_page
from tests.report.browsing import show
from tests.report.model_page.models import categorical, values

KINDS = ["Self-employed-not-incorporated", "Self-employed-incorporated", "Private"]


@pytest.fixture
def page(browser, tmp_path):
    return opened(browser, tmp_path)


def opened(browser, tmp_path, **city):
    """Open the page of a model; more about its first feature can be given."""
    content = values()
    content["features"][0] = categorical("city", KINDS, [0, 1, 2], ["(other)"]) | city
    path = tmp_path / "page.html"
    path.write_text(model_page(model_from_json(content), "a model"), encoding="utf-8")
    show(browser, 390, 844)
    browser.get(path.as_uri())
    return browser


def test_no_two_bins_have_the_same_name(page):
    names = page.execute_script(
        """
        const texts = document.querySelectorAll("[data-feature=city] svg text");
        return [...texts].map((text) => text.textContent).filter((text) => /^[SP]/.test(text));
        """
    )
    assert len(names) == len(set(names)) == len(KINDS)
    assert "Private" in names


def test_a_phone_shows_the_prediction_while_values_are_typed_in(page):
    top, field = page.execute_script(
        """
        const last = document.querySelector("#fields .field:last-child input");
        last.scrollIntoView({ block: "start" });
        const results = document.getElementById("result").getBoundingClientRect();
        return [results, last.getBoundingClientRect()];
        """
    )
    assert 0 <= top["top"] < 844
    assert top["bottom"] <= field["top"]


@pytest.mark.parametrize("more", [{}, {"ordered": True}])
def test_categories_stand_as_the_card_lists_them(browser, tmp_path, more):
    """Those of a card without `ordered` stood from the highest to the lowest: ages out of order."""
    ages = categorical("city", ["young", "middle", "old", "aged"], [0, 1, 2, 3], ["(other)"])
    ages["values"] = [40, 10, 30, 20, 99]
    page = opened(browser, tmp_path, **ages, **more)
    page.find_element("css selector", "[data-feature=city]").click()
    options = page.find_elements("css selector", "[data-tool=from] option")
    order = ["young", "middle", "old", "aged", "(other)"]
    assert [option.text for option in options] == order
