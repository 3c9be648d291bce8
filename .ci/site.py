"""Gather the pages of the site: each has the path that it has in the repository.

`mkdocs` calls what begins with `on_`. Links between pages, such as `docs/shapes.md` in README.md,
then work on the site as they do in the repository. The site is a folder that needs no network:
whatever it would load from elsewhere is an error.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from dprepro.release.json_schemas import SCHEMAS, json_schema

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / ".ci"))  # hooks are files, not modules of a package

from notebook import as_markdown  # noqa: E402 - beside this file
from outside import outside  # noqa: E402

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
SOURCES = ("dprepro/methods/dp_ebm/algorithm2.py", "dprepro/methods/dp_ebm_plus/algorithm.py")
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
    for notebook in sorted((ROOT / "docs").glob("*.ipynb")):
        _as_page(files, config, notebook)
    # Search: by its name mkdocs-material knows it, and does not load one from elsewhere.
    worker = (ROOT / ".ci" / "iframe-worker.js").read_text()
    files.append(File.generated(config, "assets/iframe-worker.js", content=worker))
    style = (ROOT / ".ci" / "site.css").read_text()
    files.append(File.generated(config, "assets/site.css", content=style))
    for name in SCHEMAS:
        text = json.dumps(json_schema(name), indent=1)
        files.append(File.generated(config, f"schemas/{name}.schema.json", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let links to a notebook lead to its page."""
    return markdown.replace(".ipynb)", ".md)")


def on_post_build(config: MkDocsConfig) -> None:
    """Raise PluginError if a page would load anything from elsewhere."""
    found = outside(Path(config.site_dir))
    if found:
        raise PluginError("the site needs a network:\n" + "\n".join(found))


def _as_page(files: Files, config: MkDocsConfig, notebook: Path) -> None:
    name = notebook.relative_to(ROOT).as_posix()
    text = as_markdown(notebook.read_text(encoding="utf-8"))
    files.append(File.generated(config, name.replace(".ipynb", ".md"), content=text))


def _page(config: MkDocsConfig, path: str) -> File:
    return File.generated(config, path, abs_src_path=str(ROOT / path))
