"""Search, by hill climbing, for neighbours whose exact answers differ by more than is charged.

Two curators that hold neighbouring tables follow one script, see `scripts`. Rows are changed at
random, and a change is kept if the largest ratio, of the difference to the charge, does not fall.

Run: python -m tests.privacy.search --steps 200 > benchmarks/outputs/sensitivity_search.txt
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from dprepro.methods.dp_bag.curator import BagCurator
from dprepro.methods.dp_ebm.curator import DPEBMCurator
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.forests.curator import ForestCurator
from dprepro.methods.lazybb.curator import LazyBBCurator
from dprepro.methods.lazybb.estimator import LazyBBClassifier
from dprepro.methods.random_boosting.curator import RandomBoostingCurator
from dprepro.methods.random_boosting.estimator import DPRandomBoostingClassifier
from dprepro.methods.s_bdt.curator import SBDTCurator
from dprepro.methods.s_bdt.estimator import SBDTClassifier
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import Query
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.release.curator import HeldOutCurator
from tests.privacy.curators import (
    _EBM,
    _LAZY,
    _RANDOM,
    _SBDT,
    FITS,
    LABELS,
    RANGE,
    Fit,
    _boolean,
    table,
)
from tests.privacy.measured import MeasuredClassifier
from tests.privacy.overheard import Ears, listening
from tests.privacy.scripts import TARGET, Script, read

LEFT_OUT = {
    "dpboost, as published": "its ledger names the gaps: no finite sensitivity covers its queries",
    "lazybb, exact": "it has no privacy",
    "dp-logistic": "a library's optimiser draws the noise: see test_objective",
    "dp-sgd-mlp, sampled": "one row more changes who is sampled later: its query is that of "
    "dp-sgd-mlp",
    "dp-llm, shuffled": "its ledger names the gap: its query is that of dp-llm",
    "dp-random-boosting, as published": "its ledger lists ranks, which are read from all rows: its "
    "queries are those of dp-random-boosting",
    "privatree": "its ledger names the gap, and lists ranges, which are read from all rows",
    "toy-dp-ebm": "its ledger names the gaps: no sensitivity covers a mean",
    "toy-dp-ebm, regression": "its ledger names the gaps: no sensitivity covers a mean",
    "dp-linear": "its ledger names the gaps: Wishart noise, and bounds that are read from the rows",
}
"""Fits that are not searched, and why."""

_MORE = {
    "dp-ebm, adaptive": Fit(
        DPEBMCurator, DPEBMClassifier(domain=LABELS, sensitivity="sound", **_EBM)
    ),
    "dp-ebm, replace-one": Fit(
        DPEBMCurator,
        DPEBMRegressor(domain=RANGE, sensitivity="sound", adjacency="replace-one", **_EBM),
    ),
    # With little noise, whole numbers are fine, and rounding adds little to what is charged.
    **{
        f"lazybb, {base}, large epsilon": Fit(
            LazyBBCurator,
            LazyBBClassifier(base, **_LAZY | {"rounds": 8}, learning_rate=0.5, epsilon=1e5),
            _boolean,
        )
        for base in ("1r", "topdown")
    },
    "dp-random-boosting, averaging": Fit(
        RandomBoostingCurator,
        DPRandomBoostingClassifier(update="averaging", domain=LABELS, **_RANDOM),
    ),
    "held out, replace-one": Fit(HeldOutCurator, MeasuredClassifier("replace-one")),
    "s-bdt, sound": Fit(SBDTCurator, SBDTClassifier(domain=LABELS, **_SBDT)),
}
SUBJECTS = {name: fit for name, fit in (FITS | _MORE).items() if name not in LEFT_OUT}

_ROWS = {LazyBBCurator: 10, BagCurator: 30}
"""Rows of the tables where their number is public and part of a script, by curator."""

FEW = 5
"""Rows of all other tables."""

ALL_USES = "(all uses)"
"""In the place of a query: all answers by one mechanism, over what its uses are charged for."""


EXCEEDS = 1 + 1e-6
"""A larger ratio is more than is charged. Where sums are float32, they round by less."""


@dataclass(frozen=True)
class Found:
    """A pair of neighbours: the last two rows are the one that leaves and the one that comes."""

    ratio: float
    rows: np.ndarray
    script: int
    gap: bool


class Search:
    """A search with one fit.

    Attributes
    ----------
    best
        The largest ratio found for each query, with whether rows are exchanged; the other relation
        is that of the ledger.
    heard
        The classes of queries.
    """

    def __init__(self, name: str, seed: int = 0) -> None:
        self.fit, self.best = SUBJECTS[name], dict[tuple[str, bool], Found]()
        self.heard: set[type[Query]] = set()
        self._random, self._n_rows = np.random.default_rng(seed), _ROWS.get(self.fit.curator, FEW)
        frame, y = table()
        rows = np.column_stack([frame["x"], frame["z"], frame["c"] == "b", y])[
            : _ROWS.get(self.fit.curator)
        ]
        loud = ((), (), ("normals", "laplace"), ("gaussian", "laplace"))
        self._scripts = [Script.of(self.fit, rows, seed, each) for seed, each in enumerate(loud)]
        (ledger,) = (a for a in self._scripts[0].given.values() if isinstance(a, Ledger))
        self._exchanges_only = ledger.adjacency is REPLACE_ONE

    def run(self, steps: int, only: str | None = None) -> Search:
        """Climb for so many steps for each query, or for one only, and each relation."""
        with listening() as ears:
            for exchanged in (True,) if self._exchanges_only else (False, True):
                for script in range(len(self._scripts)):
                    rows = self._random.random((self._n_rows + 1, 4))
                    self._try(rows, script, exchanged, ears)
                queries = [query for query, each in self.best if each is exchanged]
                for query in queries if only is None else [only]:
                    self._climb(query, exchanged, steps, ears)
        return self

    def above(self) -> set[str]:
        """Return the queries with a ratio above 1 whose ledger names no gap."""
        return {
            query for (query, _), each in self.best.items() if each.ratio > EXCEEDS and not each.gap
        }

    def _climb(self, query: str, exchanged: bool, steps: int, ears: Ears) -> None:
        at = self.best[query, exchanged]
        reached, rows, script = at.ratio, at.rows, at.script
        for _ in range(steps):
            changed, other = self._changed(rows), script
            if self._random.random() < 0.1:
                other = int(self._random.integers(len(self._scripts)))
            ratio = self._try(changed, other, exchanged, ears).get(query, 0.0)
            if ratio >= reached:
                reached, rows, script = ratio, changed, other

    def _try(self, rows: np.ndarray, script: int, exchanged: bool, ears: Ears) -> dict[str, float]:
        """Return the ratio of each query for a pair of neighbours; keep the largest."""
        if self.fit.model.domain is None and np.unique(rows[:-2, TARGET] > 0.5).size < 2:
            return {}  # labels that no domain names are those of the rows
        one = read(self.fit, rows[:-1])
        two = read(self.fit, np.delete(rows, -2, axis=0)) if exchanged else self._less(rows[:-1])
        answers = [self._scripts[script].follow(each, ears) for each in (one, two)]
        by_replace_one = exchanged and not self._exchanges_only
        ratios, gaps, entries = dict[str, float](), set[str](), dict[int, list[float]]()
        for a, b in zip(*answers, strict=True):
            query = a.query.__name__
            self.heard.add(a.query)
            ratios[query] = max(a.ratio(b, by_replace_one), ratios.get(query, 0.0))
            gaps |= {query, ALL_USES} if a.gap else set()
            of_entry = entries.setdefault(id(a.entry), [0.0, a.power])
            of_entry[0] += a.spent(b, by_replace_one) / a.entry.uses
        ratios[ALL_USES] = max(spent ** (1 / power) for spent, power in entries.values())
        for query, ratio in ratios.items():
            if (query, exchanged) not in self.best or ratio > self.best[query, exchanged].ratio:
                self.best[query, exchanged] = Found(ratio, rows, script, query in gaps)
        return ratios

    def _less(self, rows: np.ndarray) -> Private[Any]:
        """Return the rows without the last."""
        if self.fit.curator is not ForestCurator:
            return read(self.fit, rows[:-1])
        # Trees divide rows by their places: one of no known label adds nothing and moves no other.
        known: Any = read(self.fit, rows)._Private__value  # type: ignore[attr-defined]
        targets = np.append(known.targets[:-1], 9)
        return Private(SimpleNamespace(features=known.features, targets=targets))

    def _changed(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows with one changed at random, mostly one of the last two."""
        random, rows = self._random, rows.copy()
        at = -random.integers(1, 3) if random.random() < 0.6 else random.integers(len(rows))
        what = random.integers(4) if random.random() < 0.7 else slice(None)
        way = random.integers(5)
        if way == 0:
            new = random.random(4)
        elif way == 1:
            new = random.integers(0, 2, 4).astype(float)
        elif way == 2:
            new = rows[random.integers(len(rows))]
        elif way == 3 and is_regressor(self.fit.model):
            new, what = np.full(4, random.choice([-5.0, 0.0, 0.5, 1.0, 5.0])), TARGET
        else:
            new = rows[at] + 10 ** random.uniform(-4, 0) * random.standard_normal(4)
            new[:TARGET] = np.clip(new[:TARGET], 0, 1)
        rows[at, what] = new[what]
        return rows


def report(name: str, steps: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Search with a fit; return the lines of the table, and the queries above their charge."""
    search = Search(name, seed).run(steps)
    lines = []
    for query in dict.fromkeys(query for query, _ in search.best):
        found = [search.best.get((query, exchanged)) for exchanged in (False, True)]
        cells = [f"{each.ratio:.4f}" if each else "" for each in found]
        gap = "  gap" if any(each.gap for each in found if each) else ""
        lines.append(f"{name:31} {query:18} {cells[0]:>7} {cells[1]:>9}{gap}")
    return lines, [f"{name}: {query}" for query in search.above()]


def main(arguments: list[str] | None = None) -> int:
    """Print the largest ratios of all fits; return 1 if one is above 1 and no gap is named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200, help="for each query and relation")
    parser.add_argument("--only", nargs="+", choices=SUBJECTS, default=[*SUBJECTS], metavar="FIT")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    print(f"{given.steps} steps for each query and relation. Largest difference over charge:")
    print(f"{'fit':31} {'query':18} {'own':>7} {'exchange':>9}")
    all_above = []
    for name in given.only:
        lines, above = report(name, given.steps, given.seed)
        print(*lines, sep="\n", flush=True)
        all_above += above
    print(f"Above their charge, without a gap: {', '.join(all_above) or 'none'}.")
    return int(bool(all_above))


if __name__ == "__main__":
    sys.exit(main())
