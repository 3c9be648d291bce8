"""PRIVACY.md says where every method with a budget stands, and of no other."""

import re
from fnmatch import fnmatch
from pathlib import Path

from dprepro.methods.registry import all_methods

PAGE = Path(__file__).parents[2] / "PRIVACY.md"


def test_the_table_has_every_method_with_a_budget():
    section = PAGE.read_text().split("## Where each method stands")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    private = {name for name, method in all_methods().items() if method.takes_epsilon}
    assert {m for m in private if not any(fnmatch(m, name) for name in named)} == set()
    assert [name for name in named if not any(fnmatch(m, name) for m in private)] == []
