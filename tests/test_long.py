"""`tests/long.txt` names tests that exist."""

from __future__ import annotations

import re

from tests.conftest import LONG, ROOT


def test_every_line_names_a_test_of_its_file():
    lines = [
        line for line in LONG.read_text(encoding="utf-8").splitlines() if not line.startswith("#")
    ]
    assert lines == sorted(set(lines))
    for line in lines:
        path, _, test = line.partition("::")
        name = re.escape(test.partition("[")[0].rpartition("::")[2])
        assert re.search(
            rf"^\s*(async )?def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.M
        ), line
