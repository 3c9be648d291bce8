"""Text that others wrote, on its way into pictures, pages and names of files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

# What no XML document may hold. Journals can.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# File systems take 255 bytes; a prefix, a digest and an ending need some.
_LONGEST_FILE_NAME = 100


def legible(text: str) -> str:
    """Return `text` with every character that XML forbids replaced by U+FFFD."""
    return _FORBIDDEN.sub("\ufffd", text)


def plain(text: str) -> str:
    """Return `text` so that matplotlib reads no formula into it and can write it as XML."""
    return legible(text).replace("$", r"\$")


def shortened(text: str, longest: int) -> str:
    """Return `text` as one line of at most `longest` characters, an ellipsis for what is cut."""
    line = " ".join(text[: 10 * longest].split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def file_names(texts: Iterable[str]) -> list[str]:
    """Return a name for each text that is safe in a path, short, and unlike the others.

    A text that is such a name stays as it is. Of any other, what can stay is followed by a digest,
    so that it keeps its name whatever stands beside it. Capital letters tell no two names apart, as
    they do not on every file system.
    """
    names: list[str] = []
    taken: set[str] = set()
    for text in texts:
        name = "".join(c if c.isalnum() or c in "-_." else "_" for c in text).lstrip(".")
        name = name.encode()[:_LONGEST_FILE_NAME].decode(errors="ignore")
        if name != text or name.casefold() in taken:
            digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
            name = f"{name}-{digest[:8]}"
        while name.casefold() in taken:
            name += "_"
        taken.add(name.casefold())
        names.append(name)
    return names
