"""CITATION.cff and CHANGELOG.md name the version that is here."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import yaml

from dprepro import __version__

ROOT = Path(__file__).resolve().parent.parent
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
VERSIONS = re.findall(
    r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
)


def test_the_citation_has_what_the_format_requires():
    assert set(CITATION) >= {"cff-version", "message", "title", "authors"}
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["authors"] == [{"name": "The dprepro developers"}]
    assert isinstance(CITATION["date-released"], datetime.date)


def test_the_citation_is_of_this_version():
    assert CITATION["version"] == __version__
    assert CITATION["license"] == "MIT"


def test_the_changelog_begins_with_this_version_or_what_is_not_released_yet():
    newest = [version for version in VERSIONS if version != "Unreleased"]
    assert newest[0] == __version__
    assert newest == sorted(newest, key=lambda v: [*map(int, v.split("."))], reverse=True)
