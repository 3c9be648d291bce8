"""Time DP-EBM beside interpret-core's, in one run on one core, and see how it scales.

Seconds are those of the processor; nothing here asserts a time. Prints Markdown.

Example: python benchmarks/ebm_fit.py --data-dir data --sections fits memory --json out/fit.json
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import problems
from ceilings import ceilings as measure_ceilings
from machine import describe, pin_to_one_core
from problems import LIBRARIES, Problem, dp_ebm, fit_quietly, plain_ebm
from threadpoolctl import threadpool_limits
from timing import Times, alternate, peak_memory

Rows = list[dict[str, Any]]


def fits(given: argparse.Namespace) -> Rows:
    """Whole fits on real data, both libraries in turn."""
    rows: Rows = []
    for name in given.datasets:
        problem = problems.real(name, given.data_dir)
        times = _side_by_side(problem, 300, given.repeats)
        peer = times["interpret-core"]
        for library, measured in times.items():
            per_step = 1e9 / problem.row_steps(300)
            outside = 1 - measured.best_kernel / measured.best if any(measured.kernel) else math.nan
            rows.append(
                {
                    "data": f"{name} ({len(problem.y):,} x {problem.X.shape[1]})",
                    "library": library,
                    "best s": measured.best,
                    "median s": measured.median,
                    "ns / row-step": measured.best * per_step,
                    "times faster (best)": peer.best / measured.best,
                    "(median)": peer.median / measured.median,
                    "outside kernel": outside,
                }
            )
    return rows


def memory(given: argparse.Namespace) -> Rows:
    """Peak memory of a fit beyond its data."""
    return [
        {"data": name}
        | {f"{lib} MiB": peak_memory(name, lib, 300, given.data_dir) for lib in LIBRARIES}
        for name in given.datasets
    ]


def rows_scaling(given: argparse.Namespace) -> Rows:
    """Growth with rows: 5 synthetic features, 20 epochs."""
    sizes = [size for size in (10**4, 10**5, 10**6, 10**7) if size <= given.max_rows]
    return _scaling("rows", sizes, lambda size: problems.synthetic(size, 5), 20, given)


def features_scaling(given: argparse.Namespace) -> Rows:
    """Growth with features: 10^5 synthetic rows, 20 epochs."""
    sizes = (4, 8, 16, 32, 64, 128)
    return _scaling("features", sizes, lambda size: problems.synthetic(10**5, size), 20, given)


def leaves(given: argparse.Namespace) -> Rows:
    """The kernel alone for 2 to 6 leaves, rows that fit the second-level cache and rows that don't.

    10 synthetic features.
    """
    rows: Rows = []
    for size, epochs in ((20_000, 200), (1_000_000, 10)):
        problem = problems.synthetic(size, 10)
        row: dict[str, Any] = {"ns / row-step": f"{size:,} rows"}
        for count in range(2, 7):
            model = dp_ebm("dprepro", problem, 0, epochs, max_leaves=count)
            fit = _fit(model, problem)
            fit()
            seconds = alternate({"dprepro": fit}, given.repeats)["dprepro"].best_kernel
            row[f"{count} leaves"] = seconds * 1e9 / problem.row_steps(epochs)
        rows.append(row)
    return rows


def ceilings(given: argparse.Namespace) -> Rows:
    """Ceilings of this core, in ns a row: the traffic of a step alone, and its division alone."""
    return measure_ceilings(given.repeats)


def plain(given: argparse.Namespace) -> Rows:
    """EBM without privacy on Adult, each library with its own defaults, no interactions."""
    problem = problems.real("adult", given.data_dir)
    for library in LIBRARIES:
        fit_quietly(plain_ebm(library, 0), problem.small())
    models = {library: plain_ebm(library, 0) for library in LIBRARIES}
    times = alternate({lib: _fit(model, problem) for lib, model in models.items()}, 1)
    return [{"library": library, "s": times[library].best} for library in LIBRARIES]


SECTIONS: dict[str, Callable[[argparse.Namespace], Rows]] = {
    "fits": fits,
    "memory": memory,
    "rows": rows_scaling,
    "features": features_scaling,
    "leaves": leaves,
    "ceilings": ceilings,
    "plain": plain,
}


def _fit(model: Any, problem: Problem) -> Callable[[], object]:
    return lambda: fit_quietly(model, problem)


def _side_by_side(problem: Problem, epochs: int, repeats: int) -> dict[str, Times]:
    small = problem.small()
    for library in LIBRARIES:
        fit_quietly(dp_ebm(library, small, 0, epochs=1), small)
    models = {library: dp_ebm(library, problem, 0, epochs) for library in LIBRARIES}
    return alternate({lib: _fit(model, problem) for lib, model in models.items()}, repeats)


def _scaling(
    axis: str,
    sizes: Sequence[int],
    make: Callable[[int], Problem],
    epochs: int,
    given: argparse.Namespace,
) -> Rows:
    """Time both libraries at every size; the last row has the slopes of log time on log size."""
    rows: Rows = []
    for size in sizes:
        problem = make(size)
        times = _side_by_side(problem, epochs, given.repeats if size < 10**6 else 1)
        ours = times["dprepro"]
        rows.append(
            {
                axis: f"{size:,}",
                "kernel s": ours.best_kernel,
                "fit s": ours.best,
                "interpret-core fit s": times["interpret-core"].best,
                "kernel ns / row-step": ours.best_kernel * 1e9 / problem.row_steps(epochs),
            }
        )
    slopes = {
        column: float(np.polyfit(np.log(sizes), np.log([row[column] for row in rows]), 1)[0])
        for column in ("kernel s", "fit s", "interpret-core fit s")
        if len(sizes) > 1
    }
    return [*rows, {axis: "slope"} | slopes]


def as_markdown(rows: Rows) -> str:
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([_cell(row.get(n)) for n in names] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.3g}"
    return "" if value is None else str(value)


def _parse(arguments: Iterable[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    # interpret-core's EBM alone takes minutes.
    usual = [name for name in SECTIONS if name != "plain"]
    parser.add_argument(
        "--sections", nargs="+", choices=SECTIONS, default=usual, help="default: all but plain"
    )
    parser.add_argument("--datasets", nargs="+", default=["adult", "credit"])
    parser.add_argument("--data-dir", type=Path, help="folder of local files, else $DPREPRO_DATA")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--max-rows", type=int, default=10**7, help="of the synthetic data")
    parser.add_argument("--json", type=Path, help="also write machine and results there")
    return parser.parse_args(None if arguments is None else list(arguments))


def main() -> None:
    given = _parse()
    pin_to_one_core()
    machine = describe()
    print("\n".join(f"- {name}: {value}" for name, value in machine.items()))
    results = {}
    with threadpool_limits(1):
        for name in given.sections:
            section = SECTIONS[name]
            results[name] = section(given)
            title = inspect.cleandoc(section.__doc__ or name)
            print(f"\n{title}\n\n{as_markdown(results[name])}", flush=True)
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps({"machine": machine, "results": results}, indent=1))


if __name__ == "__main__":
    main()
