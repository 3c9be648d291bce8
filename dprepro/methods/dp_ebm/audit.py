"""DP-EBM: pairs whose canary moves every answer, canaries everywhere, and all answers weighed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import (
    AuditSetting,
    Case,
    MethodPair,
    OneRunCase,
    Table,
    categories,
    fit_method,
)
from dprepro.audit.likelihood_ratio import Answer, Evidence, Known, Unexplained, sigmoid
from dprepro.audit.pairs import canary_cases
from dprepro.audit.side_channels import BITS, FILE, bits_of_counts, model_file
from dprepro.audit.transcript import (
    RANGE,
    WHOLE,
    WORDS,
    Event,
    Part,
    additive_pairs,
    overhear,
    transcript_case,
)
from dprepro.data.domain import CategoricalFeature, Domain, Feature, NumericFeature
from dprepro.methods import registry
from dprepro.methods.dp_ebm.queries import Boosted, CellCounts, LeafSums, MergeCells
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.query import Query

NAMES = (
    "dp-ebm-classic",
    "dp-ebm-classic-2021",
    "dp-ebm-gdp",
    "dp-ebm-gdp-2021",
    "dp-ebm-joint",
    "dp-ebm-sound",
)
_TOLD = ("dp-ebm-joint", "dp-ebm-sound")
"""Those whose adversary is told all answers."""


# --- a leaf full of equal rows, which the canary contradicts in every feature at every step -------

_MAX_BINS = 4
_ROWS, _LARGE_EPSILON = 1000, 8.0
_TRIALS = 25_000
_FEW_TRIALS = 200
_CATEGORIES = ("few", "many")


@dataclass(frozen=True)
class _Shape:
    """Features, learning rate and number of epochs.

    The final functions remember early steps less and less: with few epochs they hold nearly all
    the evidence of the whole run.
    """

    features: str
    rate: float
    epochs: int


# A high rate drives residuals of labels towards 1, the bound.
_LABELS = _Shape("a", 1.0, 60)
# A moderate one leads towards the crowd's target: the canary's residual then is nearly twice what
# is allowed from the midpoint, unless it is clipped. A higher one forgets more of the first steps.
_CENTRED = _Shape("ab", 0.02, 30)
# Boosting starts from 0, far below the range. With a tiny rate it stays there, and with a single
# feature noisy score times noisy count is the very sum that was released.
_FAR_OFF = _Shape("a", 1e-4, 30)


def _shape(setting: AuditSetting) -> _Shape:
    if setting.task == "binary":
        return _LABELS
    sound = registry.get(setting.method).defaults["sensitivity"] == "sound"
    return _CENTRED if sound else _FAR_OFF


def many_runs(setting: AuditSetting) -> Case:
    """Return the pair: rows (many, many) with one label; the canary among them has the other."""
    # So many rows that the noise of the counts and the scores is small beside them.
    rows = math.ceil(_ROWS * max(1.0, _LARGE_EPSILON / setting.epsilon))
    binary = setting.task == "binary"
    shape = _shape(setting)
    features = tuple(CategoricalFeature(name, _CATEGORIES) for name in shape.features)
    pair = MethodPair(
        setting,
        Domain(features, ("0", "1") if binary else RANGE),
        present=_table(rows, binary, shape.features, canary=True),
        absent=_table(rows, binary, shape.features, canary=False),
        params={
            "max_bins": _MAX_BINS,
            "max_leaves": _leaves(setting),
            "learning_rate": shape.rate,
            "n_epochs": shape.epochs,
        },
    )
    return pair.case(
        f"{rows} rows with one {'label' if binary else 'target, the lower bound'}, and one row "
        f"more with the {'other label' if binary else 'upper bound'} or none",
        _canary_bins,
        trials=_trials(shape),
    )


def _leaves(setting: AuditSetting) -> int:
    """Return how many leaves a step must have so that both categories always part.

    Of two gaps one could be drawn that parts nothing; see `random_cuts`.
    """
    return 3 if registry.get(setting.method).defaults["empty_first_bin"] else 2


def _trials(shape: _Shape) -> int:
    return _FEW_TRIALS if shape is _FAR_OFF else _TRIALS


def _table(rows: int, binary: bool, features: str, canary: bool) -> Table:
    codes = np.repeat([0, 1], [rows // 2, rows + int(canary)])
    if binary:
        # Both labels have to occur in either world.
        y = np.concatenate([np.arange(rows // 2) % 2, np.ones(rows), np.zeros(int(canary))])
    else:
        y = np.repeat(RANGE, [rows // 2 + rows, int(canary)])
    column = categories(codes, _CATEGORIES)
    return pd.DataFrame(dict.fromkeys(features, column)), y


def _canary_bins(model: Any) -> np.ndarray:
    """Return what the canary has moved: score and counts of its bins, and a product of them."""
    counts = [count[-1] for count in model.bin_counts_]
    score = model.intercept_ + sum(shape[-1] for shape in model.shape_functions_)
    return np.array([score, score * counts[0], *counts])


# --- one run -------------------------------------------------------------------------------------

_CANARIES = 128
# Twice the rows at which noise of one deviation would be a sixth of what keeps a bin from merging.
_ROWS_PER_NOISE = 12


def one_run(setting: AuditSetting) -> OneRunCase:
    """Return one feature with a category a canary, each a leaf of its own in the only step."""
    run = _OneRun(setting)
    return OneRunCase(
        subject=setting.method,
        task=setting.task,
        neighbours=f"{_CANARIES} canaries, each in a category and leaf of its own",
        canaries=_CANARIES,
        run=run,
    )


@dataclass(frozen=True)
class _OneRun:
    """Fits once and reads the sum of residuals of each category off the released function."""

    setting: AuditSetting

    def __call__(self, coins: np.ndarray, seed: int | None) -> tuple[np.ndarray, Ledger]:
        domain = Domain((self._feature,), ("0", "1") if self._is_binary else RANGE)
        X, y, base = self._table(coins)
        params = {"n_epochs": 1, "learning_rate": 1.0, "max_bins": 256, "max_leaves": 256}
        model = fit_method(self.setting, domain, (X, y), seed, params)
        probe = pd.DataFrame({"x": categories(np.arange(_CANARIES), self._feature.categories)})
        bins = model.bins_[0].encode(probe["x"])
        start = self._start(model)
        values = model.intercept_ + model.shape_functions_[0][bins] - start
        sums = values * model.bin_counts_[0][bins]
        # The rows beside the canaries are known, and so are the residuals they start from.
        known = base * (0.0 if self._is_binary else sum(RANGE) / 2 - start)
        return sums - known - self._canary_residual(start) / 2, model.ledger_

    @property
    def _is_binary(self) -> bool:
        return self.setting.task == "binary"

    @property
    def _feature(self) -> CategoricalFeature:
        return CategoricalFeature("x", tuple(f"c{i}" for i in range(_CANARIES)))

    def _table(self, coins: np.ndarray) -> tuple[pd.DataFrame, np.ndarray, int]:
        """Return X, y and how many rows each category has beside its canary."""
        noise = 1 / mu_of(0.1 * self.setting.epsilon, self.setting.delta / 2)
        base = 2 * math.ceil(_ROWS_PER_NOISE * noise / 2)
        codes = np.concatenate([np.repeat(np.arange(_CANARIES), base), np.flatnonzero(coins)])
        if self._is_binary:
            y = np.append(np.arange(_CANARIES * base) % 2, np.ones(coins.sum()))
        else:
            y = np.repeat([sum(RANGE) / 2, RANGE[1]], [_CANARIES * base, coins.sum()])
        return pd.DataFrame({"x": categories(codes, self._feature.categories)}), y, base

    def _start(self, model: Any) -> float:
        """Return the score from which boosting starts: 0, or the midpoint in the sound variant."""
        centred = not self._is_binary and model.sensitivity == "sound"
        return sum(RANGE) / 2 if centred else 0.0

    def _canary_residual(self, start: float) -> float:
        return 0.5 if self._is_binary else RANGE[1] - start


# --- one run: a canary in every bin of every feature, missing values too --------------------------

_FEATURES = 16
_VALUES = 127
_CELLS = _VALUES + 1
"""Of a feature, each with a canary: all values, and one for missing ones."""
_CELL_CANARIES = _FEATURES * _CELLS

# As many cells of a number as values, twice over, and bins of half as many rows as a cell holds.
_CELL_BINS = 2 * _CELLS
# So low that scores stay where they start: what a canary adds is then known beforehand.
_STILL = 1e-6
_PART = 0.5
"""What a canary adds: its label less the probability at the start, or its target less the middle of
the range, in units of the range. All other rows of a bin add nothing together."""


def everywhere(setting: AuditSetting) -> OneRunCase:
    """Return features of both kinds, all of whose bins, each a leaf, hold a canary or not.

    A canary has a bin of its own in one feature, and in all others shares one with the rest. All
    noisy leaf sums are seen: one step a feature.
    """
    return OneRunCase(
        subject=f"{setting.method}/everywhere",
        task=setting.task,
        neighbours=f"{_CELL_CANARIES} canaries, one in every bin of {_FEATURES} features",
        canaries=_CELL_CANARIES,
        run=_Everywhere(setting),
    )


def _features() -> tuple[Feature, ...]:
    """Return numbers and categories in turn; the value beyond the canaries' is for the rest."""
    names = tuple(f"c{i}" for i in range(_VALUES + 1))
    return tuple(
        NumericFeature(f"x{k}", 0.0, _CELLS, missing=True)
        if k % 2
        else CategoricalFeature(f"x{k}", names, missing=True)
        for k in range(_FEATURES)
    )


def _column(feature: Feature, cells: np.ndarray) -> Any:
    """Return the values in these cells; the cell `_VALUES` is of missing ones, the next the rest's.

    A number lies in the middle of its cell.
    """
    missing, place = cells == _VALUES, np.where(cells > _VALUES, _VALUES, cells)
    if isinstance(feature, NumericFeature):
        return np.where(missing, np.nan, place + 0.5)
    return categories(np.where(missing, -1, place), feature.categories)


@dataclass(frozen=True)
class _Everywhere:
    setting: AuditSetting

    def __call__(self, coins: np.ndarray, seed: int | None) -> tuple[np.ndarray, Ledger]:
        features = _features()
        X, y = self._table(features, coins)
        domain = Domain(features, ("0", "1") if self._is_binary else RANGE)
        params = {"n_epochs": 1, "learning_rate": _STILL, "max_bins": _CELL_BINS, "max_leaves": 256}
        model, events = overhear(partial(fit_method, self.setting, domain, (X, y), seed, params))
        (sums,) = (
            event[1].value
            for event in events
            if isinstance(event, tuple) and isinstance(event[0], LeafSums)
        )
        scores = []
        for k, feature in enumerate(features):
            bins = model.bins_[k].encode(pd.Series(_column(feature, np.arange(_CELLS))))
            scores.append(sums[k][bins] / _STILL - _PART / 2)
        return np.concatenate(scores), model.ledger_

    @property
    def _is_binary(self) -> bool:
        return self.setting.task == "binary"

    def _table(self, features: tuple[Feature, ...], coins: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return X and y: in every cell as many rows that add nothing, and the canaries."""
        budget = 0.1 * self.setting.epsilon, self.setting.delta / 2
        noise = math.sqrt(_FEATURES) / mu_of(*budget)
        base = 2 * math.ceil(_ROWS_PER_NOISE * noise / 2)
        cells = _CELLS + 1
        rows, canaries = np.arange(base * cells), np.flatnonzero(coins)
        columns = {}
        for k, feature in enumerate(features):
            own = np.where(canaries // _CELLS == k, canaries % _CELLS, _CELLS)
            columns[feature.name] = _column(feature, np.append((rows + 7 * k) % cells, own))
        if self._is_binary:
            y = np.append(rows // cells % 2, np.ones(canaries.size, dtype=np.int64))
        else:
            y = np.repeat([sum(RANGE) / 2, RANGE[1]], [rows.size, canaries.size])
        return pd.DataFrame(columns), y


# --- all answers ----------------------------------------------------------------------------------

HISTOGRAMS, STEPS = "histograms", "steps"

_BINS, _EPOCHS, _RATE = 32, 6, 0.1
_PARTS = (Part(HISTOGRAMS, 2), Part(STEPS, 2 * _EPOCHS))


def transcript(setting: AuditSetting, entry: int | None = None) -> Case:
    """Return all answers or those of one phase; every bin is a leaf of every step."""
    params = {
        "max_bins": _BINS, "max_leaves": 255, "n_epochs": _EPOCHS, "learning_rate": _RATE,
    }  # fmt: skip
    pairs = additive_pairs(setting, params, _weigh, (2 * _BINS - 1, 2 * _BINS))
    return transcript_case(setting, pairs, WORDS, 4 + 2 * _EPOCHS, _PARTS, entry)


def _weigh(
    model: Any, events: list[Event], *, known: Known, is_logistic: bool
) -> Sequence[Evidence]:
    counts, steps = model.ledger_.entries
    sound = model.sensitivity == "sound"
    if not (is_logistic or sound):  # the paper's regression: targets not centred, nothing clipped
        middle = sum(RANGE) / 2
        known = replace(known, targets=known.targets + middle, target=known.target + middle)
    bound = 0.5 if sound else np.inf
    rules = Rules(is_logistic, _RATE, bound, is_logistic and sound, counts.scale, steps.scale)
    return answers(events, model.bin_counts_, known, rules)


def low_bits(setting: AuditSetting) -> Case:
    """Return the low bits of the noisy counts of the first feature."""
    return bits_of_counts(transcript(setting), _count)


def _count(query: Query, known: Known) -> tuple[int, float] | None:
    return known.alone if isinstance(query, CellCounts) and query.feature == 0 else None


def written(setting: AuditSetting) -> Case:
    """Return the bytes of the model file."""
    return model_file(transcript(setting))


# --- adversary: Algorithm 2 of Nori et al. 2021, each answer without the canary -------------------

# Features have no more bins than a step may have leaves, so every gap is a cut and each bin a leaf.


@dataclass(frozen=True)
class Rules:
    """What is public of a fit.

    Attributes
    ----------
    is_logistic
        Residuals are y - sigmoid(F), else y - F.
    rate
        eta.
    bound
        To which y - F is clipped.
    adapts
        Whether the noise of a step follows the largest residual that the functions allow.
    count_noise, step_noise
        Standard deviations by the ledger: of a count, and of a leaf sum where residuals reach 1.
    """

    is_logistic: bool
    rate: float
    bound: float
    adapts: bool
    count_noise: float
    step_noise: float


def answers(
    events: Sequence[Event], bin_counts: Sequence[np.ndarray], known: Known, rules: Rules
) -> list[Evidence]:
    """Return all answers of a fit, in order, and what the model says beside them.

    Parameters
    ----------
    bin_counts
        Noisy rows per bin of each feature, as the model has them.
    """
    found: list[Evidence] = []
    bins = known.cells.copy()
    own = known.canary.copy()
    parts: list[np.ndarray] = []
    shapes: Sequence[np.ndarray] = ()
    for event in events:
        match event:
            case MergeCells(feature=k, bin_of_cell=bin_of_cell):
                bins[:, k], own[k] = bin_of_cell[known.cells[:, k]], bin_of_cell[known.canary[k]]
            case CellCounts(feature=k), answer:
                size = answer.value.size
                exact = np.bincount(known.cells[:, k], known.counts, size)
                part = np.arange(size) == known.canary[k]
                noise = (answer.value - exact) / rules.count_noise
                found.append(Answer(HISTOGRAMS, noise, part / rules.count_noise))
            case LeafSums(), Boosted() as answer:
                parts.append(answer.value)
                shapes = answer.shapes
    sums = np.concatenate(parts)  # steps are answered in parts, after all histograms
    found += _steps(sums, bin_counts, known, bins, own, rules)
    found += _implied_counts(sums, shapes, known, bins, own)
    return found


def _implied_counts(
    sums: np.ndarray,
    functions: Sequence[np.ndarray],
    known: Known,
    bins: np.ndarray,
    own: np.ndarray,
) -> list[Evidence]:
    """Return by how many rows the sums in the canary's bins were divided, less the known ones.

    Of exact counts the difference is 0 or 1. The functions are those of the last answers.
    """
    found: list[Evidence] = []
    for k, function in enumerate(functions):
        total = sums[k :: len(functions), own[k]].sum()
        value = function[own[k]]
        others = known.counts[bins[:, k] == own[k]].sum()
        found.append(Unexplained(float(total / value - others) if value else 0.0))
    return found


def _steps(
    sums: np.ndarray,
    bin_counts: Sequence[np.ndarray],
    known: Known,
    bins: np.ndarray,
    own: np.ndarray,
    rules: Rules,
) -> list[Answer]:
    """Return the answers of lines 11 to 28, with the functions that follow from them."""
    shapes = [np.zeros(len(counts)) for counts in bin_counts]
    found = []
    for step, released in enumerate(sums):
        k = step % len(shapes)
        size = shapes[k].size
        scores = sum(shape[bins[:, j]] for j, shape in enumerate(shapes))
        score = float(sum(shape[own[j]] for j, shape in enumerate(shapes)))
        residuals = known.counts * _residuals(known.targets, scores, rules)
        exact = rules.rate * np.bincount(bins[:, k], residuals, size)
        part = np.zeros(size)
        part[own[k]] = rules.rate * float(_residuals(np.array(known.target), score, rules))
        deviation = rules.step_noise * (_largest(shapes) if rules.adapts else 1.0)
        noise = (released[:size] - exact) / deviation
        found.append(Answer(STEPS, noise, part / deviation))
        counts = np.asarray(bin_counts[k])
        shapes[k] += np.divide(released[:size], counts, out=np.zeros(size), where=counts > 0)
    return found


def _residuals(targets: np.ndarray, scores: np.ndarray | float, rules: Rules) -> np.ndarray:
    if rules.is_logistic:
        return np.asarray(targets - sigmoid(scores))
    return np.clip(targets - scores, -rules.bound, rules.bound)


def _largest(shapes: Sequence[np.ndarray]) -> float:
    """Return the largest residual that any row of the domain can have with these functions."""
    top, bottom = (sum(pick(shape) for shape in shapes) for pick in (np.max, np.min))
    return float(sigmoid(max(top, -bottom)))


CASES = {
    **{f"{name}/{BITS}": low_bits for name in _TOLD},
    **{f"{name}/{FILE}": written for name in _TOLD},
    **canary_cases("dp-ebm-sound"),
    **dict.fromkeys(NAMES, many_runs),
    **{f"{name}/{WHOLE}": transcript for name in _TOLD},
    f"dp-ebm-sound/{HISTOGRAMS}": partial(transcript, entry=0),
    f"dp-ebm-sound/{STEPS}": partial(transcript, entry=1),
}
ONE_RUN_CASES = dict.fromkeys(NAMES, one_run) | {"dp-ebm-sound/everywhere": everywhere}
