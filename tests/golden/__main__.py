"""Fit, and print digests and sums as JSON, or write them to the golden file.

``python -m tests.golden`` prints those of exact methods, ``--write`` writes the file (`make
golden`), ``--all`` takes the methods of tables in floating point as well, ``--only TEXT`` those
whose name holds a text.
"""

from __future__ import annotations

import argparse
import json

from tests.golden.fits import GOLDEN, bits, exact_fits, private_fits


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    if given.write and (given.all or given.only):
        parser.error("--write writes all exact fits: give neither --all nor --only")
    chosen = private_fits() if given.all else exact_fits()
    found = {name: bits(name) for name in chosen if given.only in name}
    lines = [f" {json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found)]
    text = "{\n" + ",\n".join(lines) + "\n}"
    if given.write:
        GOLDEN.write_text(text + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
