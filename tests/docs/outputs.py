"""Write the outputs that the pages state anew: `make docs-outputs`.

An empty block of `text` gets all that the commands before it print, to be cut by hand. In any other
the line of the same words gets the new numbers. A line whose words are gone is named, and stays.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.docs.pages import PAGES, ROOT, Block, blocks, shape
from tests.docs.session import Session


def renewed(stated: str, output: str) -> tuple[str, list[str]]:
    """Return the stated lines as the output has them now, and those it has no longer."""
    if not stated.strip():
        return "\n".join(line.rstrip() for line in output.strip("\n").splitlines()) + "\n", []
    rest, lines, lost = output.splitlines(), [], []
    for line in stated.splitlines():
        found = next((i for i, new in enumerate(rest) if shape(new) == shape(line)), None)
        if line.strip() in {"", "..."} or found is None:
            lines.append(line)
            lost += [line] if line.strip() not in {"", "..."} else []
        else:
            lines.append(rest[found].rstrip())
            rest = rest[found + 1 :]
    return "\n".join(lines) + "\n", lost


def rewrite(page: str, text: str, block: Block, new: str) -> str:
    """Return a page's text with another text in one of its fenced blocks."""
    lines = text.splitlines(keepends=True)
    old = len(block.text.splitlines())
    return "".join([*lines[: block.line], new, *lines[block.line + old :]])


def main(pages: Sequence[str]) -> int:
    """Do all that the pages say, in order; 1 if a line that they state is gone."""
    data = Path(os.environ["DPREPRO_DATA"])
    gone = 0
    for page in pages:
        count = sum(block.language == "text" for block in blocks(page))
        if not count:
            continue
        with tempfile.TemporaryDirectory() as folder:
            session = Session(Path(folder), page, data)
            session.run(". .venv/bin/activate")
            for i in range(len(blocks(page))):
                found = blocks(page)  # a block before this one may be longer now
                if found[i].language != "text":
                    session.do(found[i])
                    continue
                new, lost = renewed(found[i].text, session.output)
                text = (ROOT / page).read_text(encoding="utf-8")
                (ROOT / page).write_text(rewrite(page, text, found[i], new))
                gone += len(lost)
                for line in lost:
                    print(f"{page}:{found[i].line}: no longer printed: {line}")
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or PAGES))
