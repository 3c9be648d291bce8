import re
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from dprepro.report.draw.svg import inline, legible


@pytest.fixture
def figure():
    made = Figure(figsize=(3, 2))
    axes = made.subplots()
    axes.plot([0, 1, 2], [0, 5, 1], color="#0072B2", marker="o", clip_on=True)
    axes.axhline(0.5, color="0.6")
    axes.set_title("a < b & c")
    return made


def test_identifiers_are_ours_and_every_reference_is_met(figure):
    svg = inline(figure, "p-", "a picture")
    names = re.findall(r' id="([^"]*)"', svg)
    assert len(names) == len(set(names)) > 0
    assert all(name.startswith("p-") for name in names)
    assert set(re.findall(r'(?:href="|url\()#([^")]*)', svg)) == set(names)
    assert "<clipPath" in svg


def test_greys_follow_the_page_and_colours_stay(figure):
    svg = inline(figure, "p-", "a picture")
    assert set(re.findall(r"#[0-9a-f]{6}", svg)) == {"#0072b2"}
    assert {"var(--g0)", "var(--g40)", "var(--g100)"} <= set(re.findall(r"var\(--g\d+\)", svg))


def test_it_brings_no_style_font_or_address_along(figure):
    svg = inline(figure, "p-", "a picture")
    for unwanted in ("<style", "font-family", "http", "<metadata", "xlink"):
        assert unwanted not in svg
    assert "a &lt; b &amp; c</text>" in svg


def test_powers_on_a_logarithmic_axis_keep_their_digits():
    made = Figure(figsize=(3, 2))
    made.subplots().semilogy([1, 2], [1e2, 1e3])
    root = ElementTree.fromstring(inline(made, "p-", "a picture"))
    labels = {"".join("".join(text.itertext()).split()) for text in root.iter("text")}
    assert {"102", "103"} <= labels


def test_readers_who_do_not_see_it_are_told(figure):
    root = ElementTree.fromstring(inline(figure, "p-", 'so "<it>" is'))
    assert (root.get("role"), root.get("aria-label")) == ("img", 'so "<it>" is')
    assert root.get("width") is None
    assert len(root.get("viewBox").split()) == 4


def test_the_same_figure_gives_the_same_text(figure):
    assert inline(figure, "p-", "a picture") == inline(figure, "p-", "a picture")


def test_what_no_document_may_hold_is_replaced():
    assert legible("a\x00b\x1bc\ud800d\tε\n😀\ufffe") == "a\ufffdb\ufffdc\ufffdd\tε\n😀\ufffd"
