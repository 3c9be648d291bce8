"""The site and the map are complete: every page, every public name, every package."""

from __future__ import annotations

import re

import pytest
import yaml

import dprepro
from tests.docs.pages import PAGES, ROOT

REFERENCE = "\n".join(path.read_text() for path in sorted((ROOT / "docs" / "api").glob("*.md")))
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


def test_the_site_has_every_page():
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    found = list(pages_of(settings["nav"]))
    assert set(PAGES) | {"CHANGELOG.md"} <= set(found)
    assert [page for page in found if not (ROOT / page).is_file()] == []
    assert settings["strict"]


def test_the_architecture_names_every_package():
    packages = {p.parent.name for p in (ROOT / "dprepro").glob("*/__init__.py")}
    named = set(re.findall(r"`dprepro/(\w+)`", (ROOT / "ARCHITECTURE.md").read_text()))
    assert packages <= named


@pytest.mark.parametrize("page", PAGES)
def test_a_path_that_a_page_names_is_there(page):
    """Except what the page has its reader write."""
    text = (ROOT / page).read_text()
    written = {
        "results/CONFIG.jsonl",
        "configs/CONFIG.yaml",
        "results/NAME.jsonl",
        "results/mine.jsonl",
    }
    missing = {path for path in NAMED.findall(text) if not (ROOT / path).exists()}
    assert missing <= written


def test_ci_calls_every_suite_and_builds_the_site():
    makefile = (ROOT / "Makefile").read_text()
    suites = set(re.findall(r"^([\w-]*test):", makefile, re.MULTILINE))
    assert "test" in suites
    halves = re.findall(
        r"docs-(?:readme|others)", makefile.split("\ndocs-test: ")[1].split("\n\n")[0]
    )
    assert len(halves) == 2
    script = (ROOT / ".ci" / "run").read_text()
    assert re.search(r'^two="make --jobs 2 ', script, re.MULTILINE)
    calls = re.findall(r"^(?:make|\$two) (.*)$", script, re.MULTILINE)
    called = {word for call in calls for word in call.split()}
    assert (suites - {"docs-test"}) | {"lint", "docs", "check", *halves} <= called
    recipe = makefile.split("\ndocs: ")[1].split("\n\n")[0]
    assert "mkdocs build" in recipe
    assert "--strict" in recipe
    assert "--quiet" not in recipe, "mkdocs counts no warning that --quiet hides"
