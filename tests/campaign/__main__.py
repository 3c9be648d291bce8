"""The long form: `make campaign`.

python -m tests.campaign [--root FOLDER] [--kills N] [--every N]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.campaign.cases import ROOT, campaign, faults
from tests.campaign.host import KINDS

WRONG = ("lost", "doubled", "different", "tracebacks", "hangs", "not resumed", "left over")


def main() -> int:
    """Try all faults, print a table, and return 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="the package under test")
    parser.add_argument("--kills", type=int, default=2000, help="kills at random times")
    parser.add_argument("--every", type=int, default=1, help="only every n-th fault")
    parser.add_argument("--only", choices=KINDS, help="only calls of this kind")
    asked = parser.parse_args()
    begun, draw = time.monotonic(), random.Random(21)
    with tempfile.TemporaryDirectory() as folder, campaign(Path(folder), asked.root) as tried:
        print("calls of a run:", tried.counts, flush=True)
        cases = [case for case in faults(tried.counts) if asked.only in (None, case[1])]
        tried.run(cases[:: asked.every])
        for number in range(asked.kills):
            start = ("new", "old")[number % 2]
            tried.run([(start, "kill_after", draw.randrange(1_000, 400_000), 0, False)])
    print(f"{'start':6}{'fault':12}{'tried':>7}" + "".join(f"{name:>13}" for name in WRONG))
    for (start, kind), count in tried.tried.items():
        figures = "".join(f"{tried.wrong[start, kind, name]:>13}" for name in WRONG)
        print(f"{start:6}{kind:12}{count:>7}{figures}")
    for case, answer in tried.said[:12]:
        print("\n", case, answer["code"], answer["wrong"], answer["said"], file=sys.stderr)
    print(f"{time.monotonic() - begun:.0f} s")
    return bool(tried.wrong)


if __name__ == "__main__":
    sys.exit(main())
