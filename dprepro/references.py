"""BibTeX entries of the papers, datasets and software that this package builds on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from dprepro.text import latex, one_line

FILE = Path(__file__).with_name("references.bib")

# An entry begins at "@kind{key," and ends at a brace in the first column.
_ENTRY = re.compile(r"^@\w+\{([^,\s]+),\n.*?^\}$", re.MULTILINE | re.DOTALL)


@cache
def references() -> dict[str, str]:
    """Return the text of every entry by its key, in the order of the file."""
    text = FILE.read_text(encoding="utf-8")
    return {found.group(1): found.group() for found in _ENTRY.finditer(text)}


def entry(kind: str, key: str, fields: Iterable[tuple[str, str]]) -> str:
    """Return a BibTeX entry of these fields, less the empty ones; plain text is escaped."""
    said = ",\n".join(f"  {name} = {{{_escaped(name, text)}}}" for name, text in fields if text)
    return f"@{kind}{{{key},\n{said}\n}}"


def _escaped(name: str, text: str) -> str:
    if name == "url":
        return one_line(text).replace("{", "%7B").replace("}", "%7D")
    return latex(text)
