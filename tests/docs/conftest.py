"""The clones in which documents are run: README.md, CONTRIBUTING.md and all else have one each.

What README.md points to for a reader's own data, methods and machines is run in its clone, too.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.docs.pages import PAGES, README_AND_MORE, ROOT
from tests.docs.session import Session


def group(page: str) -> str:
    """Return which clone a page is run in: compiling kernels for each would take minutes.

    CONTRIBUTING.md adds a document, which commands of other pages would judge; it needs no kernels.
    """
    if page in README_AND_MORE:
        return "README.md"
    return page if page == "CONTRIBUTING.md" else "others"


@pytest.fixture(scope="session")
def session_of(tmp_path_factory, data_dir) -> Iterator[Callable[[str], Session]]:
    """Return the session of a page, with its rules."""
    shown = ["git", "status", "--porcelain", "--", "dprepro", "configs", "datasets", *PAGES]
    left = subprocess.run(shown, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not left, f"commit first, what is run is a clone of what is committed:\n{left}"
    opened: dict[str, Session] = {}

    def session(page: str) -> Session:
        name = group(page)
        if name not in opened:
            folder, readme = tmp_path_factory.mktemp("clone"), name == "README.md"
            warm = not readme and sys.platform == "linux"
            opened[name] = Session(folder, page, data_dir, warm=warm)
            if not readme:
                opened[name].run(". .venv/bin/activate")  # as README.md says
        opened[name].page = page
        return opened[name]

    yield session
    for each in opened.values():
        each.close()
