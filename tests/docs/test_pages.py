"""Every block of every page is run, in order, in a fresh clone; what a page states is compared."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import PAGES, Block, blocks, missing_lines
from tests.docs.rules import EXTRAS, NOT_RUN
from tests.docs.session import Session

pytestmark = [pytest.mark.docs, pytest.mark.timeout(600)]

CASES = [
    pytest.param(block, id=f"{block.page}:{block.line}") for page in PAGES for block in blocks(page)
]


@pytest.mark.parametrize("block", CASES)
def test_a_block_does_what_the_page_says(block, session_of):
    session = session_of(block.page)
    extras = [extra for extra in EXTRAS if extra.block == block.name]
    for extra in extras:
        if extra.before:
            extra.before(session.folder)
    if any(block.text.startswith(other.begins) for other in NOT_RUN):
        return
    run(block, session)
    for extra in extras:
        for command in extra.then:
            session.run(command)


def run(block: Block, session: Session) -> None:
    if block.language == "sh":
        session.run_block(block)
    elif block.language == "text":
        missing = missing_lines(block.text, session.output)
        assert not missing, f"`make docs-outputs` writes it anew. Not in:\n{session.output}"
    elif block.name:
        session.write(block)
    elif block.language == "pycon":
        file = session.folder / f"block-{block.line}.txt"
        file.write_text(block.text)
        assert ">>>" in block.text
        session.run(f".venv/bin/python -m doctest -o ELLIPSIS {file.name}")
    elif block.language == "python":
        file = session.folder / f"block-{block.line}.py"
        file.write_text(block.text)
        session.run(f".venv/bin/python {file.name}")
    elif block.language == "":
        paths = re.findall(r"^[\w./]+|(?<=  )[\w.]+/(?=  )", block.text, re.MULTILINE)
        assert paths
        assert [path for path in paths if not (session.folder / path).exists()] == []
    else:
        pytest.fail(f"a block of {block.language!r} is neither run nor listed in NOT_RUN")
