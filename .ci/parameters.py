"""Give each parameter of the reference its own type and default.

numpydoc allows several names in one entry (`epsilon, delta : float`). griffe shows the type and the
default of the first for all of them, so such an entry is repeated here for every name.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

ENTRY = re.compile(
    r"^(?P<names>\w+(?:,\s\w+)+)(?P<kind> : .*)?\n(?P<text>(?:(?:    .*)?\n)*(?:    .*)(?=\n|\Z))",
    re.MULTILINE,
)


def split_entries(text: str) -> str:
    """Return a docstring in which no entry has more than one name."""
    return ENTRY.sub(_repeat, text)


def _repeat(entry: re.Match[str]) -> str:
    kind, text = entry["kind"] or "", entry["text"].rstrip()
    return "\n".join(f"{name}{kind}\n{text}" for name in re.split(r",\s", entry["names"]))


class OneNameEach(griffe.Extension):
    """Splits the entries of every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = split_entries(obj.docstring.value)
