"""The long form: `make campaign`.

python -m tools.campaign [--record FILE] [--root FOLDER] [--kills N] [--every N] [--only KIND ...]

With --record it can be killed: the same command goes on, and its table is of all faults.
TMPDIR=/dev/shm makes it a quarter faster: nothing waits for a disk there.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tools.campaign.cases import campaign, faults, kills
from tools.campaign.host import KILLS, KINDS
from tools.campaign.tried import Tried, fingerprint, options, report, tell

SHARE = {"random kill": 1, "fresh kill": 1000}
"""One of so many kills is of each kind."""
_TELL = 20.0
"""Seconds between two lines that say how far it got."""


def main() -> int:
    """Try all faults, print a table, and return 1 if anything went wrong."""
    parser = options(__doc__, kills=20_000)
    parser.add_argument("--every", type=int, default=1, help="only every n-th fault")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=(*KINDS, *KILLS),
        default=(*KINDS, *KILLS),
        help="only faults of these kinds; default: all",
    )
    asked = parser.parse_args()
    source = fingerprint(asked.root)
    with (
        tempfile.TemporaryDirectory() as folder,
        campaign(Path(folder), asked.root, asked.only) as host,
    ):
        calm = {"calls": host.calls, "microseconds": host.microseconds}
        tried = Tried(asked.record, source, calm)
        print("calls of a run:", tried.head["calls"], flush=True)
        cases = list(faults(tried.head["calls"]))[:: asked.every]
        for kind, times in tried.head["microseconds"].items():
            cases += kills(asked.kills // SHARE[kind], kind, times)
        cases = [case for case in cases if case[1] in asked.only]  # a record may have others
        left = [case for case in cases if case not in tried.answers]
        begun = told = time.monotonic()
        for done, (case, answer) in enumerate(host.run(left), start=1):
            tried.add(case, answer)
            if time.monotonic() > told + _TELL:
                told = time.monotonic()
                tell(len(cases) - len(left) + done, len(cases), (told - begun) / done)
    return report(tried)


if __name__ == "__main__":
    sys.exit(main())
