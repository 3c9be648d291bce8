"""What a Markdown page holds that can be run: its blocks and the commands within its sentences."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "README.md",
    "PRIVACY.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md")),
    *sorted(
        f"docs/{folder}/{p.name}"
        for folder in ("api", "evidence", "formats")
        for p in (ROOT / "docs" / folder).glob("*.md")
    ),
)
README_AND_MORE = (
    "README.md",
    "docs/own-data.md",
    "docs/own-method.md",
    "docs/own-paper.md",
    "docs/scale.md",
)
"""Pages that share a clone, so that kernels are compiled once for all of them."""


@dataclass(frozen=True)
class Block:
    """One block of code: its page, first line (from 1), language ("" if none) and text."""

    page: str
    line: int
    language: str
    text: str

    @property
    def name(self) -> str:
        """The file that the first line names (`# mine.yaml`), or ""."""
        found = re.match(r"# (\S+\.(?:ya?ml|py|mk))\b", self.text)
        return found[1] if found else ""


def blocks(page: str, text: str | None = None) -> list[Block]:
    """Return the blocks of a page, fenced and indented, in order."""
    return list(_blocks(page, (ROOT / page).read_text(encoding="utf-8") if text is None else text))


@functools.cache
def _blocks(page: str, text: str) -> tuple[Block, ...]:
    return tuple(
        Block(page, token.map[0] + 1, token.info.strip(), token.content)
        for token in MarkdownIt().parse(text)
        if token.type in {"fence", "code_block"} and token.map
    )


def inline_commands(page: str, text: str | None = None) -> list[str]:
    """Return the `dprepro ...` and `pytest ...` commands with arguments in a page's sentences."""
    source = (ROOT / page).read_text(encoding="utf-8") if text is None else text
    parser = MarkdownIt().enable("table")
    spans = [
        " ".join(child.content.split())
        for token in parser.parse(source)
        for child in token.children or ()
        if child.type == "code_inline"
    ]
    return [span for span in spans if re.match(r"(dprepro|pytest) [a-z]", span)]


def commands(text: str) -> list[str]:
    """Return the commands of a shell block: lines joined at backslashes, without comments."""
    joined = re.sub(r"\\\n\s*", "", text)
    bare = (re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines())
    return [command for command in bare if command]


def missing_lines(stated: str, output: str) -> list[str]:
    """Return the stated lines that the output lacks, in the stated order.

    Lines are compared word by word; a line `...` and an empty one stand for any number of lines.
    Numbers may differ by one in their last printed digit, as machines differ.
    """
    rest = output.splitlines()
    missing = []
    for line in stated.splitlines():
        if line.strip() in {"", "..."}:
            continue
        found = next((i for i, printed in enumerate(rest) if same(line, printed)), None)
        if found is None:
            missing.append(line)
        else:
            rest = rest[found + 1 :]
    return missing


NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


def same(stated: str, printed: str) -> bool:
    """Say whether two lines have the same words, and numbers that round alike."""
    if shape(stated) != shape(printed):
        return False
    numbers = zip(NUMBER.findall(stated), NUMBER.findall(printed), strict=True)
    return all(_close(ours, theirs) for ours, theirs in numbers)


def shape(line: str) -> str:
    """Return a line with one blank between words, one dash for a rule, and its numbers masked."""
    return NUMBER.sub("0", re.sub("─+", "─", " ".join(line.split())))


def _close(stated: str, printed: str) -> bool:
    if "." not in stated:
        return stated == printed
    decimals = len(stated.split(".")[1])
    ours, theirs = (float(text.replace(",", "")) for text in (stated, printed))
    return "." in printed and abs(ours - theirs) < 1.5 * 10.0**-decimals
