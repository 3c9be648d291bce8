"""What tests/tools/test_forks.py starts: runs of some configs, each in a fork of one process.

    python -m tools.campaign.fork_server FOLDER NAME ...

Prints the exit codes as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tools.campaign.forks import adopt, in_fork, left_by, load_what_it_loads, redirect
from tools.campaign.host import Here, command


def main() -> None:
    """Run the configs."""
    from dprepro.experiment import local
    from dprepro.experiment import run as run_module

    adopt()
    run_module.LocalExecutor = Here  # type: ignore[misc,assignment]
    local.start_ahead = lambda *given: None
    place, *names = Path(sys.argv[1]), *sys.argv[2:]

    def run(name: str, results: str) -> int:
        redirect(place / "output.txt")
        config = place / f"{name}.yaml"
        return command("run", config, "--results", place / results, "--jobs", 1)

    load_what_it_loads(lambda: run(names[0], "first"), place / "modules")
    codes = {}
    for name in names:
        codes[name], session = in_fork(lambda name=name: run(name, "forked"))
        assert not left_by(session)
    print(json.dumps(codes))


if __name__ == "__main__":
    main()
