"""Journals for tests of the page, and the page that they give."""

from __future__ import annotations

import base64
import gzip
import json
import math
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from dprepro.cli import app
from tests.report.journals import records, spread, write

SEED = "fixed seed: repeatable, never for release"
LEDGER = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "adjacency": "zero-out",
    "true_epsilon": 0.876,
    "replace_one_epsilon": 2.03,
    "unpaid": ["bounds of age", SEED],
    "gaps": [],
}
AUDIT = {
    "subject": "dp-ebm-gdp-2021",
    "task": "binary",
    "neighbours": "a row more or less",
    "adjacency": "zero-out",
    "epsilon": 1.0,
    "delta": 1e-6,
    "ledger_epsilon": 0.876,
    "gaps": [],
    "bound": "GDP",
    "lower_bound": 0.55,
    "confidence": 0.95,
    "trials": 2000,
    "verdict": "within",
}
ENVIRONMENT = {
    "time": "2025-01-02T03:04:05+00:00",
    "dprepro": "1.2.3",
    "git": {"commit": "0123456789abcdef", "dirty": True},
    "jobs": 2,
    "cpu": "abacus",
    "libraries": {"numpy": "9.9"},
}


def journals(folder: Path) -> Path:
    """Write journals: cells as printed, a worse, an unfinished and an unprinted one."""
    lines = [
        *records(spread(0.883, 0.005), epsilon=1.0, ledger=LEDGER),
        *records(spread(0.7, 0.005), epsilon=2.0, ledger={**LEDGER, "epsilon": 2.0}),
        *records(spread(0.89, 0.005, 3), epsilon=4.0),
        *records(spread(0.923, 0.003), label="ebm", epsilon=math.inf),
        *records(spread(76827, 1470), metric="rmse", epsilon=1.0, dataset="cal-housing"),
    ]
    write(folder, "one", lines, ENVIRONMENT)
    mine = [*records(spread(4321, 9), metric="rmse", epsilon=1.0, dataset="prices", label="mine")]
    write(folder, "two", mine, ENVIRONMENT)
    (folder / "audit.json").write_text(json.dumps([AUDIT]))
    return folder


# Text that would do harm in a page that took it for markup, or that no document may hold.
HOSTILE = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=2">',
    "</style></svg></script><b id=hacked>",
    "{{ 7 * 7 }} \ud800 \x00 \x1b ]]> $x_1$",
)


def hostile_journals(folder: Path) -> Path:
    """Write journals whose every text is hostile."""
    script, image, closing, odd = HOSTILE
    ledger = {**LEDGER, "adjacency": script, "unpaid": [image], "gaps": [closing, odd]}
    lines = [
        *records(spread(0.8, 0.1, 3), script, 1.0, dataset=image, ledger=ledger),
        *records(spread(0.8, 0.1, 3), closing, 2.0, dataset=image),
        *records(spread(0.8, 0.1, 3), odd, 1.0, dataset=odd),
    ]
    failed = records([0.0], closing, 4.0, dataset=image)[0].to_json()
    failed |= {"status": "failed", "metrics": {}, "message": script}
    path = write(folder, "hostile", lines, {"cpu": image, "git": script, "time": closing})
    with path.open("a") as journal:
        journal.write(json.dumps(failed) + "\n")
    audit = {**AUDIT, "subject": script, "neighbours": image, "bound": closing, "gaps": [odd]}
    # Strict JSON has no lone surrogate.
    (folder / "audit.json").write_text(json.dumps([audit]).replace("\\ud800", ""))
    return folder


def whole(page: str) -> str:
    """Return the text of a page and, as JSON, what is packed in it."""
    return page + json.dumps(content_of(page), ensure_ascii=False)


def content_of(page: str) -> dict[str, Any]:
    """Return what is packed in a page; see `dprepro.report.page.content`."""
    packed = page.split('<template id="packed">')[1].split("</template>")[0]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def write_page(folder: Path, output: Path, *arguments: str) -> str:
    """Run `dprepro report` on the journals in `folder`; return the page."""
    given = ["report", "--results", str(folder), "--output", str(output), *arguments]
    outcome = CliRunner().invoke(app, given)
    if outcome.exception and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    assert outcome.exit_code == 0, outcome.output
    return output.read_text(encoding="utf-8")
