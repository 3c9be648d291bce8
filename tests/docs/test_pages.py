"""Every block of every page is run, in order, in a fresh clone; what a page states is compared."""

from __future__ import annotations

import pytest

from tests.docs.pages import PAGES, blocks, missing_lines

pytestmark = [pytest.mark.docs, pytest.mark.timeout(600)]

CASES = [
    pytest.param(block, id=f"{block.page}:{block.line}") for page in PAGES for block in blocks(page)
]


@pytest.mark.parametrize("block", CASES)
def test_a_block_does_what_the_page_says(block, session_of):
    session = session_of(block.page)
    session.do(block)
    if block.language == "text":
        missing = missing_lines(block.text, session.output)
        assert not missing, f"`make docs-outputs` writes it anew. Not in:\n{session.output}"
