"""Rows and figures as data that the page's script unpacks: a tenth of their size as HTML."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Sequence
from typing import Any

from dprepro.report.layout.pictures import FigureGroup
from dprepro.report.page.origins import Origins
from dprepro.report.page.sheets import Cell, Row, Sheet
from dprepro.text import legible


def pack(sheets: Iterable[Sheet], figures: Sequence[FigureGroup], origins: Origins) -> str:
    """Return sheets, with the runs behind their rows, and figures as base64 of gzipped JSON.

    The JSON has ``sheets``, by name a list of rows, and ``figures``, a list of SVG elements in the
    order of the page. A row has ``cells`` ([text, key, tone, link]), ``filters`` (paper, dataset,
    method, verdict) and ``runs`` (see `Origins.of`). The same content gives the same text.
    """
    content = {
        "sheets": {sheet.name: [_row(row, origins) for row in sheet.rows] for sheet in sheets},
        "figures": [str(figure.svg) for group in figures for figure in group.figures],
    }
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _row(row: Row, origins: Origins) -> dict[str, Any]:
    return {
        "cells": [_cell(cell) for cell in row.cells],
        "filters": [_text(v) for v in (row.paper, row.dataset, row.method, row.verdict)],
        "runs": _legible(origins.of(row.result, row.metric)),
    }


def _cell(cell: Cell) -> list[str | None]:
    return [_text(cell.text), _text(cell.key), cell.tone, cell.link]


def _text(text: str | None) -> str | None:
    return None if text is None else legible(text)


def _legible(found: Any) -> Any:
    if isinstance(found, str):
        return legible(found)
    if isinstance(found, list):
        return [_legible(part) for part in found]
    if isinstance(found, dict):
        return {key: _legible(value) for key, value in found.items()}
    return found
