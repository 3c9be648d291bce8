"""Gather the pages of the site: each has the path that it has in the repository.

`mkdocs` calls `on_files`. Links between pages, such as `docs/shapes.md` in README.md, then work on
the site as they do in the repository.
"""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "README.md",
    "PRIVACY.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "benchmarks/README.md",
    "results/history/README.md",
    "results/trials/README.md",
)
SOURCES = ("dprepro/ebm/algorithm2.py", "dprepro/ebm_plus/algorithm.py")
"""Sources that pages link to."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the pages of the root beside those of docs/, which get their folder's name back."""
    docs = Path(config.docs_dir)
    for file in list(files):
        if file.src_dir == str(docs):
            files.remove(file)
            files.append(_page(config, f"docs/{file.src_uri}"))
    for page in (*PAGES, *SOURCES):
        files.append(_page(config, page))
    return files


def _page(config: MkDocsConfig, path: str) -> File:
    return File.generated(config, path, abs_src_path=str(ROOT / path))
