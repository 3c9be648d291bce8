"""Processor seconds of the whole job, Tables 2 and 3, beside those of another checkout.

Every task of the first two splits is run once a repeat, in the order of the plan, as a worker of
`dprepro run` does it. A worker's first split takes longer: privacy is calibrated and accounted for
once. So the job on two cores is twice the first split, and for all other splits the second one. The
two checkouts alternate, a config each, in processes of their own on one core. What only one of them
has, such as a method or a config, does not count where they are compared. The metrics are, too.

Run: python benchmarks/whole_job.py --before ../checkout-of-another-revision
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from machine import pin_to_one_core

CONFIGS = ("table2", "table3")
CORES = 2
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
START = "(start of a worker)"

Cell = tuple[str, str, float | None, int]
"""Config, label of a method, epsilon, split."""


@dataclass
class Measured:
    """What one checkout needed: seconds of every repeat, and the metrics of the last one."""

    seconds: dict[Cell, list[float]] = field(default_factory=lambda: defaultdict(list))
    metrics: dict[Cell, dict[str, float]] = field(default_factory=dict)
    splits: dict[str, int] = field(default_factory=dict)

    def total(self, *names: str) -> float:
        """Return the job's seconds, of the cells that name all of `names`; a worker a core."""
        return sum(
            min(seconds) * (CORES if cell[-1] == 0 else self.splits[cell[0]] - CORES)
            for cell, seconds in self.seconds.items()
            if all(name in cell for name in names)
        )

    def shared_with(self, other: Measured) -> Measured:
        """Return the cells that the other one has, too."""
        seconds = {cell: self.seconds[cell] for cell in self.seconds if cell in other.seconds}
        return Measured(seconds, self.metrics, self.splits)


def main() -> None:
    arguments = _arguments()
    if arguments.measure:
        _measure(arguments.measure, arguments.data_dir)
        return
    here = Path(__file__).resolve().parent.parent
    places = {"now": here} | ({"before": arguments.before} if arguments.before else {})
    found = {name: Measured() for name in places}
    for _ in range(arguments.repeats):
        for config in _config_names(arguments.configs):
            for name, place in places.items():
                for line in _run(place, config, arguments.data_dir):
                    _take(found[name], config, line)
            print(f"measured: {config}", file=sys.stderr, flush=True)
    _report(found)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder of another checkout")
    parser.add_argument("--configs", nargs="+", default=CONFIGS, help="configs of the job")
    parser.add_argument("--repeats", type=int, default=2, help="the shortest time counts")
    parser.add_argument("--data-dir", type=Path, help="folder of the data; else $DPREPRO_DATA")
    parser.add_argument("--measure", metavar="CONFIG", help=argparse.SUPPRESS)
    return parser.parse_args()


def _config_names(names: list[str]) -> list[str]:
    from dprepro.experiment.config import load_experiments

    return [config.name for config in load_experiments(*names)]


def _run(place: Path, config: str, data_dir: Path | None) -> Iterator[dict[str, Any]]:
    """Run the first splits of a config with the code at `place`; one dict a task."""
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", config]
    if data_dir is not None:
        command += ["--data-dir", str(data_dir.resolve())]
    environment = os.environ | {"PYTHONPATH": str(place.resolve())} | dict.fromkeys(THREADS, "1")
    answer = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=environment, cwd=place
    )
    return (json.loads(line) for line in answer.stdout.splitlines())


def _measure(name: str, data_dir: Path | None) -> None:
    """Print one line of JSON for the start of a worker, and one for each task of two splits."""
    pin_to_one_core()
    from dprepro.experiment.config import load_config
    from dprepro.experiment.plan import plan
    from dprepro.experiment.worker import DataRef, run_task, warm_up
    from dprepro.runtime.errors import DpreproError

    try:
        config = load_config(name)
    except DpreproError as error:  # this checkout has none of this name
        print(error, file=sys.stderr)
        return
    planned = [entry for entry in plan(config, data_dir, identify=False) if not entry.skip]
    tasks = [entry.task for entry in planned if entry.task.split < 2]
    data = DataRef.of(config, data_dir)
    warm_up(data, {task.method for task in tasks})
    _print(label=START, split=0, seconds=time.process_time(), splits=config.splits)
    for task in tasks:
        start = time.process_time()
        record = run_task(task, data)
        seconds = time.process_time() - start
        _print(
            label=task.label, epsilon=record.to_json()["task"]["epsilon"], split=task.split,
            seconds=seconds, splits=config.splits, metrics=record.metrics, message=record.message,
        )  # fmt: skip


def _print(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def _take(measured: Measured, config: str, line: dict[str, Any]) -> None:
    if line.get("message"):
        raise SystemExit(f"{config}, {line['label']}: {line['message']}")
    cell = (config, line["label"], line.get("epsilon"), line["split"])
    measured.seconds[cell].append(line["seconds"])
    measured.metrics[cell] = line.get("metrics", {})
    measured.splits[config] = line["splits"]


def _report(found: dict[str, Measured]) -> None:
    now = found["now"]
    configs = list(now.splits)
    methods = list(dict.fromkeys(cell[1] for cell in now.seconds))
    methods.sort(key=now.total, reverse=True)
    for name, measured in found.items():
        print(f"\nprocessor seconds of the job, {name}\n")
        _table(measured, methods, configs)
        total = measured.total()
        print(f"\n{name}: {total:.0f} s of one core, {total / CORES / 60:.1f} minutes on {CORES}")
    if "before" in found:
        before, now = found["before"].shared_with(now), now.shared_with(found["before"])
        seconds = f"{before.total():.0f} and {now.total():.0f} s"
        print(f"\nof what both have, before and now: {seconds} of one core")
        print("times faster: " + f"{before.total() / now.total():.2f}")
        for method in methods:
            if before.total(method) > 0:
                print(f"  {method:24} {before.total(method) / now.total(method):.2f}")
        print(f"largest relative difference of a metric: {_difference(before, now)}")


def _table(measured: Measured, methods: list[str], configs: list[str]) -> None:
    print("| method | " + " | ".join(configs) + " | all |")
    print("| --- " * (len(configs) + 2) + "|")
    for method in methods:
        cells = [f"{measured.total(method, config):.1f}" for config in configs]
        print(f"| {method} | " + " | ".join(cells) + f" | {measured.total(method):.1f} |")
    cells = [f"{measured.total(config):.1f}" for config in configs]
    print("| all | " + " | ".join(cells) + f" | {measured.total():.1f} |")


def _difference(before: Measured, now: Measured) -> str:
    """Return the largest relative difference of a metric, and where it is."""
    differences = [
        (abs(value - before.metrics[cell][name]) / max(abs(value), 1e-300), name, *cell)
        for cell, metrics in now.metrics.items()
        if cell in before.metrics
        for name, value in metrics.items()
        if name in before.metrics[cell]
    ]
    size, name, config, label, epsilon, split = max(differences, key=lambda found: found[0])
    where = f" ({name} of {label}, {config}, epsilon {epsilon}, split {split})" if size > 0 else ""
    return f"{size:.2g}{where}"


if __name__ == "__main__":
    main()
