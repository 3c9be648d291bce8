"""Notebooks as Markdown pages, for the site."""

from __future__ import annotations

import json
from typing import Any


def as_markdown(notebook: str) -> str:
    """Return a notebook's cells as Markdown: code in fences, its printed results below."""
    return "\n\n".join(part for cell in json.loads(notebook)["cells"] for part in _parts(cell))


def _parts(cell: dict[str, Any]) -> list[str]:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [text]
    printed = [_printed(output) for output in cell["outputs"]]
    return [_fence("python", text), *(_fence("text", one) for one in printed if one)]


def _printed(output: dict[str, Any]) -> str:
    lines = output.get("text") or output.get("data", {}).get("text/plain", [])
    return "".join(lines).rstrip()


def _fence(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"
