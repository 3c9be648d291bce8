"""Release a model where there is no source tree: with the wheel, in a bare environment.

    python tools/wheel_release.py

A table of an invented hospital is drawn. Its card is begun by `new dataset` and filled in. Then the
model is planned, released, verified, used and exported, and asked for wrongly: each step must end
with its exit code and say what it should, in 80 columns and without a terminal. Standard library
only. Exit code 1 if a step does otherwise.
"""

from __future__ import annotations

import csv
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 80
PATIENTS = 600

FILLED_IN = """
name: stays
file: stays.csv
private: true
task: binary
target: back
labels: ["no", "yes"]
positive: "yes"
unit: patient
rows_per_unit: 2
budget_limit: {epsilon: 1, delta: 1e-4}
expect: {rows: 1200}
domain_note: the form of the ward
subgroups: [sex]
features:
  age: {numeric: [0, 120]}
  sex: {categories: [f, m]}
  ward: {categories: [surgery, medicine, icu]}
"""


class Step(NamedTuple):
    """A command, what it must say, and its exit code."""

    command: str
    says: str
    code: int = 0


STEPS = (
    Step("release stays.yaml --epsilon 1 --yes", "still to be filled in", 2),
    Step("data check filled.yaml", "complete: binary, target back, 3 features"),
    Step("release filled.yaml --epsilon 1 --output release", "give --yes to spend the budget", 2),
    Step(
        "release filled.yaml --epsilon 1 --measure 0.5 --attack 40 --yes --output release",
        "Spent: epsilon 1 at delta 1e-05. The guarantee holds",
    ),
    Step("verify release", "statement and page are those of the model, and all texts agree"),
    Step("budget", "limit of stays: epsilon 1, delta 0.0001, for each patient"),
    Step("ledger release/model.json", "as stated in the file: (epsilon 1, delta 1e-05)"),
    Step(
        "predict release/model.json stays.csv --card filled.yaml --output read.csv --keep patient",
        "read.csv: predictions of 'back'",
    ),
    Step("export release --to python --output model.py", "the model, as a Python module"),
    Step("show release --output model.html", "model.html: 3 functions"),
    Step("release filled.yaml --epsilon 1 --yes --output release", "release exists already", 2),
    Step("release filled.yaml --epsilon 1 --yes --output second", "beyond the budget", 2),
    Step("release filled.yaml --epsilon none", "'none' is not a number", 2),
    Step("predict release/model.json lacking.csv --output x.csv", "has no column 'ward'", 2),
)


def main() -> int:
    """Install, release; print what went wrong, or that all went well."""
    with tempfile.TemporaryDirectory(prefix="dprepro-release-") as name:
        folder = Path(name)
        bare, here = folder / "bare", folder / "here"
        here.mkdir()
        install(bare, folder / "tracked")
        draw(here)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "DPREPRO"))}
        places = {"DPREPRO_CACHE": str(folder / "cache"), "DPREPRO_STATE": str(folder / "state")}
        environment = {**kept, **places, "COLUMNS": str(COLUMNS)}
        program = str(bare / "bin" / "dprepro")
        begun = Step("new dataset stays.csv --output stays.yaml", "6 lines are to be filled in")
        faults = [tried(step, program, here, environment) for step in (begun, *STEPS)]
        wrong = [fault for fault in faults if fault]
        wrong += [] if wrong else left_behind(here, str(bare / "bin" / "python"), environment)
    print("\n".join(wrong) or "released, verified, predicted and exported from the wheel")
    return 1 if wrong else 0


def install(bare: Path, copy: Path) -> None:
    """Make a bare environment with the wheel of the files that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    uv = shutil.which("uv")
    bare_only = ["--without-pip"] if uv else []
    subprocess.run([sys.executable, "-m", "venv", *bare_only, str(bare)], check=True)
    python = str(bare / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--no-compile"]
    command = [uv, "pip", "install", "--quiet", "--python", python] if uv else pip
    subprocess.run([*command, str(copy)], check=True)


def draw(here: Path) -> None:
    """Write a table of two stays a patient, one that lacks a column, and the card filled in."""
    chance = random.Random(5)
    rows = []
    for patient in (f"p{k // 2}" for k in range(2 * PATIENTS)):
        age, ward = chance.uniform(18, 95), chance.choice(["surgery", "medicine", "icu"])
        back = (age - 60) / 15 + (ward == "icu") + chance.gauss(0, 1) > 1
        rows.append([patient, f"{age:.1f}", chance.choice("fm"), ward, "yes" if back else "no"])
    header = ["patient", "age", "sex", "ward", "back"]
    for name, width in (("stays.csv", 5), ("lacking.csv", 3)):
        with (here / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(row[:width] for row in (header, *rows))
    (here / "filled.yaml").write_text(FILLED_IN, encoding="utf-8")


def tried(step: Step, program: str, here: Path, environment: dict[str, str]) -> str:
    """Return what a command did otherwise than it must, empty if nothing."""
    done = subprocess.run(
        [program, *step.command.split()], cwd=here, env=environment, text=True, check=False,
        stdin=subprocess.DEVNULL, capture_output=True,
    )  # fmt: skip
    said = done.stdout + done.stderr
    wide = [line for line in done.stdout.splitlines() if len(line) > COLUMNS]
    # Sentences are one line each where nobody reads them on a terminal; tables have columns.
    is_table = step.command.startswith(("release", "budget", "ledger"))
    if done.returncode == step.code and step.says in said and not (is_table and wide):
        return ""
    return f"dprepro {step.command}: exit code {done.returncode}, expected {step.code}\n{said}"


def left_behind(here: Path, python: str, environment: dict[str, str]) -> list[str]:
    """Return what is wrong with the files that the steps left."""
    expected = {"model.html", "model.json", "statement.html", "statement.json", "statement.md"}
    found = {file.name for file in (here / "release").iterdir()}
    wrong = [] if found == expected else [f"release holds {sorted(found)}"]
    for name in ("second", "x.csv"):
        wrong += [f"{name} was written"] if (here / name).exists() else []
    with (here / "read.csv").open(newline="", encoding="utf-8") as file:
        read = list(csv.DictReader(file))
    done = subprocess.run(
        [python, "model.py", "stays.csv"], cwd=here, env=environment, text=True, check=True,
        capture_output=True,
    )  # fmt: skip
    again = list(csv.DictReader(done.stdout.splitlines()))
    same = [a["prediction"] == b["prediction"] for a, b in zip(read, again, strict=True)]
    wrong += [] if all(same) and len(same) == 2 * PATIENTS else ["model.py predicts otherwise"]
    return wrong


if __name__ == "__main__":
    sys.exit(main())
