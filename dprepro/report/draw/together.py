"""One picture of several, from their files: what was drawn once is not drawn again."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

from dprepro.report.draw.files import DPI, PNG
from dprepro.report.draw.style import POINTS_PER_INCH

_HEAD = re.compile(r'.*?<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"[^>]*>', re.DOTALL)
_METADATA = re.compile("<metadata>.*?</metadata>", re.DOTALL)
_IDENTIFIER = re.compile(r'(\bid="|href="#|url\(#)')
_WHOLE = """<?xml version="1.0" encoding="utf-8" standalone="no"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" version="1.1" \
width="{0:g}pt" height="{1:g}pt" viewBox="0 0 {0:g} {1:g}">
<rect width="100%" height="100%" fill="white"/>
"""
_PART = '<svg x="{0:g}" y="{1:g}" width="{2:g}" height="{3:g}" viewBox="0 0 {2:g} {3:g}">'
_GAP = 0.12  # inches between rows


def put_together(
    files: Sequence[bytes], keys: bytes, ending: str, below: float, widest: float
) -> bytes:
    """Return a picture of pictures in rows, all of one format, ``png`` or ``svg``.

    Parameters
    ----------
    files
        Of the pictures, without a strip at their lower edge that is `below` inches high.
    keys
        Of the picture that stands below all in place of these strips.
    widest
        The inches that a row may take.
    """
    return (_png if ending == "png" else _svg)([*files, keys], below, widest)


def _places(
    sizes: Sequence[tuple[float, float]], widest: float, gap: float
) -> tuple[list[tuple[float, float]], tuple[float, float]]:
    """Return the left upper corner of each picture, and the size of all; the last has its row."""
    places: list[tuple[float, float]] = []
    across, down, row, width = 0.0, 0.0, 0.0, 0.0
    for number, (wide, high) in enumerate(sizes):
        if places and (across + wide > widest or number == len(sizes) - 1):
            across, down, row = 0.0, down + row + gap, 0.0
        places.append((across, down))
        across, row = across + wide, max(row, high)
        width = max(width, across)
    return places, (width, down + row)


def _png(files: Sequence[bytes], below: float, widest: float) -> bytes:
    from PIL import Image

    pictures = [Image.open(io.BytesIO(file)) for file in files]
    cut = [round(below * DPI)] * (len(files) - 1) + [0]
    sizes = [(p.width, p.height - low) for p, low in zip(pictures, cut, strict=True)]
    places, whole = _places(sizes, widest * DPI, _GAP * DPI)
    paper = Image.new("RGB", (round(whole[0]), round(whole[1])), "white")
    for picture, place, size in zip(pictures, places, sizes, strict=True):
        paper.paste(picture.crop((0, 0, *size)), (round(place[0]), round(place[1])))
    file = io.BytesIO()
    paper.save(file, "png", dpi=(DPI, DPI), **PNG)
    return file.getvalue()


def _svg(files: Sequence[bytes], below: float, widest: float) -> bytes:
    texts = [_METADATA.sub("", file.decode()) for file in files]
    heads = [_HEAD.match(text) for text in texts]
    assert all(heads), "matplotlib begins an SVG file with its size"
    cut = [below * POINTS_PER_INCH] * (len(files) - 1) + [0.0]
    sizes = [(float(h[1]), float(h[2]) - low) for h, low in zip(heads, cut, strict=True) if h]
    places, whole = _places(sizes, widest * POINTS_PER_INCH, _GAP * POINTS_PER_INCH)
    parts = [_WHOLE.format(*whole)]
    for number, (text, head) in enumerate(zip(texts, heads, strict=True)):
        # Identifiers of one picture must not be those of another.
        body = _IDENTIFIER.sub(rf"\g<1>p{number}-", text[head.end() :] if head else "")
        parts.append(_PART.format(*places[number], *sizes[number]) + body)
    return ("".join(parts) + "</svg>\n").encode()
