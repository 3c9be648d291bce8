"""Matplotlib figures as SVG that belongs to a page: its fonts, its colours, light and dark."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import cache
from xml.etree import ElementTree

import matplotlib
from markupsafe import Markup
from matplotlib.figure import Figure

from dprepro.report.draw.files import lay_out
from dprepro.text import legible

_NAMESPACE = re.compile(r"\{[^}]*\}")
_REFERENCE = re.compile(r"#([^)]*)")
_GREY = re.compile(r"#([0-9a-f]{2})\1\1\b")
_FAMILY = re.compile(r"font-family: [^;]*(; )?")
_FONT = re.compile(r"font: [^;]*?([\d.]+px)[^;]*")
_LONG = re.compile(r"-?\d+\.\d{2,}")
_GEOMETRY = ("d", "x", "y", "width", "height")


def inline(figure: Figure, prefix: str, label: str) -> Markup:
    """Return a figure as an ``<svg>`` element to stand in HTML.

    Greys become the page's own (CSS variables ``--g0``, paper, to ``--g100``, ink, in steps of
    ten); text stays text, in the page's font. The same figure gives the same bytes.

    Parameters
    ----------
    prefix
        Begins every identifier; must differ between the figures of a page.
    label
        What a reader who cannot see it is told.
    """
    text = io.StringIO()
    lay_out(figure)
    with matplotlib.rc_context({"svg.hashsalt": "dprepro", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(legible(text.getvalue()))
    for parent in list(root.iter()):
        for child in list(parent):
            if _plain(child.tag) in ("metadata", "style"):  # the style would be the whole page's
                parent.remove(child)
    names = _referenced(root, prefix)
    for element in root.iter():
        _adapt(element, names)
    box = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update({"viewBox": box, "role": "img", "aria-label": legible(label)})
    _unwrap(root)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def draw_inline(draw: Callable[[], Figure], prefix: str, label: str) -> Markup:
    """Return what `inline` does of the figure that `draw` returns: for another process."""
    return inline(draw(), prefix, label)


def _referenced(root: ElementTree.Element, prefix: str) -> dict[str, str]:
    """Return new names for the identifiers that something refers to."""
    found: dict[str, None] = {}
    for element in root.iter():
        for name, value in element.attrib.items():
            if _plain(name) in ("href", "clip-path"):
                found.update(dict.fromkeys(_REFERENCE.findall(value)))
    return {old: f"{prefix}{number}" for number, old in enumerate(found)}


def _unwrap(element: ElementTree.Element) -> None:
    """Put the children of groups that say nothing in the groups' places."""
    children = []
    for child in element:
        _unwrap(child)
        children += list(child) if child.tag == "g" and not child.attrib else [child]
    element[:] = children


def _adapt(element: ElementTree.Element, names: dict[str, str]) -> None:
    element.tag = _plain(element.tag)
    given = dict(element.attrib)
    element.attrib.clear()
    for name, value in given.items():
        name = _plain(name)
        if name == "id" and value not in names:
            continue
        element.set(name, _value(name, value, names))
    if element.tag not in ("text", "tspan"):
        element.text = None
    element.tail = None


def _value(name: str, value: str, names: dict[str, str]) -> str:
    if name == "id":
        return names[value]
    if name in ("href", "clip-path"):
        return _REFERENCE.sub(lambda match: "#" + names[match[1]], value)
    if name in _GEOMETRY:
        return _LONG.sub(lambda match: f"{float(match[0]):.1f}", " ".join(value.split()))
    return _style(value) if name == "style" else value


def _style(style: str) -> str:
    style = _FONT.sub(r"font-size: \1", _FAMILY.sub("", style))
    return _GREY.sub(lambda match: f"var(--g{_ink(int(match[1], 16))})", style)


def _ink(level: int) -> int:
    """Return the share of ink in a grey level of 0 to 255, in per cent, a multiple of ten."""
    return round(10 * (255 - level) / 255) * 10


@cache
def _plain(name: str) -> str:
    return _NAMESPACE.sub("", name)
