"""The site and the map are complete: every page, every public name, every package."""

from __future__ import annotations

import posixpath
import re

import pytest
import yaml

import dprepro
from tests.docs import formats
from tests.docs.notebooks import NOTEBOOKS
from tests.docs.pages import PAGES, README_AND_MORE, ROOT

REFERENCE = "\n".join(
    path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "api").glob("*.md"))
)
DESCRIBED = re.findall(r"^::: (\S+)", REFERENCE, re.MULTILINE)
NAMED = re.compile(r"`((?:dprepro|tests|configs|datasets|results|docs|\.ci)/[\w./-]*)`")


def pages_of(nav):
    """Yield the paths of a tree of entries, titled or not."""
    for entry in nav:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        yield from pages_of(value) if isinstance(value, list) else [value]


def test_the_reference_describes_every_public_name_once():
    public = sorted(f"dprepro.{name}" for name in dprepro.__all__)
    assert sorted(name for name in DESCRIBED if name.count(".") == 1) == public
    assert len(set(DESCRIBED)) == len(DESCRIBED)


SETTINGS = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def test_the_site_has_every_page():
    """What is not in the navigation is linked from the page of all evidence."""
    found = list(pages_of(SETTINGS["nav"]))
    evidence = {page for page in PAGES if page.startswith("docs/evidence/")}
    assert set(PAGES) - evidence <= set(found)
    index = "docs/evidence/index.md"
    linked = re.findall(r"\]\(([\w./-]+)\)", (ROOT / index).read_text(encoding="utf-8"))
    assert {posixpath.normpath(f"docs/evidence/{link}") for link in linked} >= evidence - {index}
    assert index in found
    notebooks = {path.relative_to(ROOT).with_suffix(".md").as_posix() for path in NOTEBOOKS}
    assert notebooks <= set(found)
    assert [p for p in found if p not in notebooks and not (ROOT / p).is_file()] == []
    assert SETTINGS["strict"]


FIRST = (
    "README.md",
    "docs/tutorial.md",
    "docs/privacy-in-short.md",
    "docs/own-data.md",
    "docs/release.md",
    "docs/why-numbers-differ.md",
)
"""What a new user reads."""


def test_the_documents_stay_short():
    """Proofs, long tables and history stand in docs/evidence, which is not counted."""
    pages = [page for page in pages_of(SETTINGS["nav"]) if (ROOT / page).is_file()]
    lengths = {page: len((ROOT / page).read_text(encoding="utf-8").split()) for page in pages}
    assert lengths["README.md"] <= 1_500
    assert sum(lengths[page] for page in FIRST) <= 6_000
    assert sum(lengths.values()) <= 45_000
    entries = re.findall(
        "^- [*]{2}", (ROOT / "docs/glossary.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(entries) <= 60


@pytest.mark.parametrize("page", formats.PAGES, ids=lambda page: page.name)
def test_tables_of_keys_are_those_of_the_schemas(page):
    """`python -m tests.docs.formats` writes them anew."""
    assert formats.renewed(page.read_text(encoding="utf-8")) == page.read_text(encoding="utf-8")


def test_every_built_in_part_of_a_format_is_found():
    """A page without its marks would be current whatever it says."""
    marked = {
        name
        for page in formats.PAGES
        for _, name, _ in formats.PLACE.findall(page.read_text(encoding="utf-8"))
    }
    assert marked == {"config", "card", "journal", "model"}


def test_the_architecture_names_every_package():
    packages = {p.parent.name for p in (ROOT / "dprepro").glob("*/__init__.py")}
    named = set(
        re.findall(r"`dprepro/(\w+)`", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    )
    assert packages <= named


@pytest.mark.parametrize("page", PAGES)
def test_a_path_that_a_page_names_is_there(page):
    """Except what the page has its reader write."""
    text = (ROOT / page).read_text(encoding="utf-8")
    written = {
        "results/CONFIG.jsonl",
        "configs/CONFIG.yaml",
        "configs/NAME.yaml",
        "datasets/NAME.yaml",
        "results/NAME.jsonl",
        "results/CONFIG.parquet",
        "results/NAME.parquet",
        "results/mine.jsonl",
    }
    missing = {path for path in NAMED.findall(text) if not (ROOT / path).exists()}
    assert missing <= written


def test_a_page_that_code_and_data_name_is_there():
    folders = ("dprepro", "configs", "datasets", "benchmarks")
    files = [p for f in folders for end in ("py", "yaml") for p in (ROOT / f).rglob(f"*.{end}")]
    named = {
        page
        for p in files
        for page in re.findall(r"docs/[\w/-]+\.md", p.read_text(encoding="utf-8"))
    }
    assert len(named) >= 10
    assert [page for page in sorted(named) if not (ROOT / page).is_file()] == []


def test_ci_calls_every_suite_and_builds_the_site():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    suites = set(re.findall(r"^([\w-]*test):", makefile, re.MULTILINE))
    assert "test" in suites
    halves = re.findall(
        r"docs-(?:readme|others)", makefile.split("\ndocs-test: ")[1].split("\n\n")[0]
    )
    assert len(halves) == 2
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(r'^four="make --jobs 4 ', script, re.MULTILINE)
    calls = re.findall(r"^\$four (.*)$", script, re.MULTILINE)
    called = {word for call in calls for word in call.split()}
    assert (suites - {"docs-test", "long-test"}) | {"lint", "docs", "check", *halves} <= called
    recipe = makefile.split("\ndocs: ")[1].split("\n\n")[0]
    assert "mkdocs build" in recipe
    assert "-m site" in recipe
    assert "--strict" in recipe
    assert "--quiet" not in recipe, "mkdocs counts no warning that --quiet hides"


def test_makefile_and_tests_agree_on_the_pages_of_the_readmes_clone():
    words = re.search(
        r"^README_CLONE := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    chosen = [page for page in PAGES if any(word in page for word in words[1].split(" or "))]
    readmes = [page for page in chosen if page.endswith("/README.md")]
    assert set(chosen) - set(readmes) == set(README_AND_MORE)


def test_examples_of_help_run_after_the_pages_that_make_their_files():
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    both = [line for line in lines if "tests/docs/test_help.py" in line]
    assert len(both) == 2
    assert all("tests/docs/test_pages.py tests/docs/test_help.py" in line for line in both)
