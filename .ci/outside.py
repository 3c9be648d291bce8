"""What a built site would load from elsewhere; links that a reader can click are no such thing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

LOADED = {
    "audio": ("src",), "embed": ("src",), "iframe": ("src",), "image": ("href", "xlink:href"),
    "img": ("src", "srcset"), "input": ("src",), "object": ("data",), "script": ("src",),
    "source": ("src", "srcset"), "track": ("src",), "video": ("src", "poster"),
}  # fmt: skip
"""By tag, the attributes that name what a browser loads by itself; `link` is apart."""
FETCHED = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "manifest"}
"""What a `link` stands for that a browser loads, or gets ready to."""
ELSEWHERE = re.compile(r"\s*(?:https?:)?//", re.IGNORECASE)
IN_STYLE = re.compile(
    r"""(?:url\(\s*|@import\s+)["']?\s*((?:https?:)?//[^"')\s]+)""", re.IGNORECASE
)


def outside(site: Path) -> list[str]:
    """Return what pages and styles of a site load from elsewhere, as `page: address`."""
    found = []
    for path in sorted(site.rglob("*")):
        if path.suffix == ".html":
            addresses = list(of_page(path.read_text(encoding="utf-8")))
        elif path.suffix == ".css":
            addresses = IN_STYLE.findall(path.read_text(encoding="utf-8"))
        else:
            continue
        found += [f"{path.relative_to(site)}: {address}" for address in addresses]
    return found


def of_page(html: str) -> Iterator[str]:
    """Yield the addresses elsewhere that a page loads, its own styles included."""
    parser = _Page()
    parser.feed(html)
    yield from parser.found


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._is_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        names = LOADED.get(tag, ())
        if tag == "link" and FETCHED & set(given.get("rel", "").lower().split()):
            names = ("href",)
        self.found += [given[name] for name in names if ELSEWHERE.match(given.get(name, ""))]
        self.found += IN_STYLE.findall(given.get("style", ""))
        self._is_style = tag == "style"

    def handle_data(self, data: str) -> None:
        if self._is_style:
            self.found += IN_STYLE.findall(data)
