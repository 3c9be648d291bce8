"""DPBoost: the canary alone in a leaf, the row that makes a split possible, and all trees seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, Case, MethodPair, line, table
from dprepro.audit.distinguishers import Ceiling
from dprepro.audit.likelihood_ratio import Answer, Choice, Evidence, log_chances
from dprepro.audit.pairs import Scores, canary_cases
from dprepro.audit.side_channels import BITS, bits_case, bits_outcome, can_be_laplace
from dprepro.audit.transcript import WHOLE, Event, Part, overhear, transcript_case
from dprepro.methods.dpboost.curator import AddTree, LeafQuery, SplitQuery, Start
from dprepro.methods.dpboost.variants import AS_PUBLISHED

_OF_CODE = ("dpboost", "dpboost-2021", "dpboost-2021-indicators")
_SOUND = "dpboost-sound"

_CROWD = 40
_TRIALS = 20_000
_PARAMS = {"n_trees": 1, "trees_per_ensemble": 1, "max_depth": 1, "max_bins": 2}


def lone_leaf(setting: AuditSetting) -> Case:
    """Return a pair whose canary is alone on its side of the only cut: no row dilutes its leaf."""
    words = f"{_CROWD} rows at one end of a feature, one at the other end or none"
    case = _case(setting, others=0, neighbours=words)
    return replace(case, trials=_TRIALS, ceiling=_of_a_leaf)


def _of_a_leaf(model: Any) -> Ceiling:
    """There is one cut, so that the choice of a split shows nothing; the value of a leaf does."""
    _, leaves = model.ledger_.entries
    return Ceiling(leaves.sensitivity / leaves.scale, "what the value of its leaf spends")


def possible_split(setting: AuditSetting) -> Case:
    """Return a pair whose canary brings one side of the only split up to the least rows."""
    others = AS_PUBLISHED.min_rows - 1
    case = _case(
        setting,
        others=others,
        neighbours=f"{_CROWD} rows at one end, {others} or {others + 1} at the other end",
    )
    return replace(case, observe=_nodes_and_score, trials=200)


def _case(setting: AuditSetting, others: int, neighbours: str) -> Case:
    domain = line(setting.task)
    # Both labels among the crowd; all others have the canary's.
    x = np.repeat([0.0, 1.0], [_CROWD, others])
    y = np.concatenate([np.arange(_CROWD) % 2, np.ones(others, dtype=int)])
    pair = MethodPair(setting, domain, table(x, y, (1.0, 1)), table(x, y, None), _PARAMS)
    return pair.case(neighbours, Scores(setting.method, domain, (0.0, 1.0)))


def _nodes_and_score(model: Any) -> np.ndarray:
    """Return the number of nodes of the only tree, and the score of the crowd, float64 (2,).

    A tree without a split adds no noise, and leaves the score from which boosting starts.
    """
    score = model.start_ + model.trees_[0].value[model.trees_[0].left[0]]
    return np.array([float(model.trees_[0].feature.size), score])


def low_bits(setting: AuditSetting) -> Case:
    """Return the low bits of the value of a leaf that the canary is alone in."""
    case = lone_leaf(setting)
    words = f"{case.neighbours}; the low bits of its leaf seen"
    return bits_case(case, partial(_fit_leaf, case.fit), words)


_GRID = 2.0**-24


def _fit_leaf(fit: Any, present: bool, seed: int | None) -> Any:
    model, events = overhear(partial(fit, present, seed))
    (answer,) = (
        event[1] for event in events if isinstance(event, tuple) and isinstance(event[0], LeafQuery)
    )
    alone = math.floor(1 / (1 + model.reg_lambda) / _GRID) * _GRID
    value = float(answer.value[1])
    worlds = [not can_be_laplace(value, exact, answer.scale) for exact in (alone, 0.0)]
    return bits_outcome(model, [worlds])


# --- all trees ------------------------------------------------------------------------------------

SPLITS, LEAVES = "splits", "leaves"

_TWO_TREES: dict[str, int] = {
    "n_trees": 2, "trees_per_ensemble": 1, "max_depth": 1, "max_bins": 4,
}  # fmt: skip
_OTHERS = 20


def transcript(setting: AuditSetting) -> Case:
    """Return two trees of one split: one cut has the canary alone, which the others dilute."""
    domain = line(setting.task)
    x, labels = np.append(np.zeros(_OTHERS), 0.3), np.append(np.ones(_OTHERS, int), 0)
    frame = pd.DataFrame({"x": x})
    pair = MethodPair(setting, domain, (frame, labels), (frame[:-1], labels[:-1]), _TWO_TREES)
    codes = np.minimum(x * _TWO_TREES["max_bins"], _TWO_TREES["max_bins"] - 1).astype(np.int64)[
        :, None
    ]
    weigh = partial(_weigh, codes=codes, targets=2.0 * labels - 1)
    words = f"{_OTHERS} rows of one label at one place, and one of the other label beside or none"
    parts = (Part(SPLITS), Part(LEAVES))
    return transcript_case(setting, [(pair, weigh)], f"{words}; all trees seen", parts=parts)


def _weigh(
    model: Any, events: list[Event], *, codes: np.ndarray, targets: np.ndarray
) -> Sequence[Evidence]:
    splits, leaves = model.ledger_.entries
    rules = Rules(model.reg_lambda, (3,), splits.noise_multiplier, leaves.noise_multiplier)
    return evidence(events, codes, targets, rules)


# --- adversary: Li et al. 2020, for ensembles of one tree: all rows train every tree --------------

_GAIN = 3.0
"""Of the gain of a split, for gradients of at most 1 (Lemma 1 as corrected in 2020)."""


@dataclass(frozen=True)
class Rules:
    """What is public of a fit.

    Attributes
    ----------
    ridge
        lambda.
    cuts
        How many cuts each feature has.
    split_multiplier, leaf_multiplier
        Scale over sensitivity, by the ledger, of choices and of leaf values.
    """

    ridge: float
    cuts: Sequence[int]
    split_multiplier: float
    leaf_multiplier: float


def evidence(
    events: Sequence[Event], codes: np.ndarray, targets: np.ndarray, rules: Rules
) -> list[Answer | Choice]:
    """Return that of all splits and leaves.

    Parameters
    ----------
    codes, targets
        int64 (n, K) bins, and float64 (n,) targets from -1 to 1; the canary is the last row.
    """
    scores, found = np.zeros(len(targets)), []
    nodes = np.zeros((3, 0), np.int64)
    for event in events:
        match event:
            case Start(score=score):
                scores[:] = score
            case AddTree(tree=tree):
                scores += tree.value[_leaf_of(codes, tree.feature, tree.cut, tree.left)]
            case SplitQuery(bound=bound), answer:
                nodes = answer.value.astype(np.int64)
                gradients = _bounded(scores - targets, bound)
                scale = rules.split_multiplier * _GAIN * bound**2
                found += _splits(nodes, codes, gradients, rules, scale)
            case LeafQuery() as query, answer:
                gradients = _bounded(scores - targets, query.bound)
                found.append(_leaves(query, answer.value, nodes, codes, gradients, rules))
    return found


def _bounded(gradients: np.ndarray, bound: float) -> np.ndarray:
    """Return gradients, NaN of the rows that take no part: beyond the bound."""
    return np.where(np.abs(gradients) <= bound * (1 + 1e-9), gradients, np.nan)


def _splits(
    nodes: np.ndarray, codes: np.ndarray, gradients: np.ndarray, rules: Rules, scale: float
) -> list[Answer | Choice]:
    """Return the evidence of each choice on the canary's path; others do not depend on it."""
    feature, cut, left = nodes
    found: list[Answer | Choice] = []
    inside, node = np.ones(len(codes), bool), 0
    while feature[node] >= 0:
        others = inside.copy()
        others[-1] = False
        ratio = [
            log_chances(_gains(codes, gradients, rows, rules), scale) for rows in (inside, others)
        ]
        place = sum(rules.cuts[: feature[node]]) + cut[node]
        found.append(Choice(SPLITS, float(ratio[0][place] - ratio[1][place])))
        goes_left = codes[:, feature[node]] <= cut[node]
        inside &= goes_left == goes_left[-1]
        node = left[node] + (not goes_left[-1])
    return found


def _gains(
    codes: np.ndarray, gradients: np.ndarray, inside: np.ndarray, rules: Rules
) -> np.ndarray:
    """Return the gain of every cut over the rows inside a node: S_L^2/(n_L+l) + S_R^2/(n_R+l)."""
    taking = inside & ~np.isnan(gradients)
    gains = []
    for k, cuts in enumerate(rules.cuts):
        for cut in range(cuts):
            below = codes[:, k] <= cut
            sides = [gradients[taking & side] for side in (below, ~below)]
            gains.append(sum(side.sum() ** 2 / (side.size + rules.ridge) for side in sides))
    return np.array(gains)


def _leaves(
    query: LeafQuery,
    values: np.ndarray,
    nodes: np.ndarray,
    codes: np.ndarray,
    gradients: np.ndarray,
    rules: Rules,
) -> Answer:
    feature, cut, left = nodes
    leaf_of, leaves = _leaf_of(codes, feature, cut, left), np.flatnonzero(feature < 0)
    clip, taking = query.clip, ~np.isnan(gradients)
    worlds = []
    for last in (0, 1):  # without the canary, and with it
        rows = taking.copy()
        rows[-1] &= bool(last)
        sums = np.bincount(leaf_of[rows], gradients[rows], feature.size)[leaves]
        counts = np.bincount(leaf_of[rows], minlength=feature.size)[leaves]
        # A leaf without rows has the value 0 also where lambda is 0.
        means = -sums / np.maximum(counts + rules.ridge, 1e-300)
        worlds.append(np.clip(means, -clip, clip))
    moves = min(query.bound / (1 + rules.ridge), 2 * clip)
    scale = rules.leaf_multiplier * moves
    return Answer(
        LEAVES, (values - worlds[0]) / scale, (worlds[1] - worlds[0]) / scale, "laplace"
    )  # fmt: skip


def _leaf_of(
    codes: np.ndarray, feature: np.ndarray, cut: np.ndarray, left: np.ndarray
) -> np.ndarray:
    """Return the leaf of each row, by its number among the nodes."""
    at = np.zeros(len(codes), np.int64)
    rows = np.arange(len(codes))
    while (feature[at] >= 0).any():
        inner = feature[at] >= 0
        right = codes[rows, feature[at]] > cut[at]
        at = np.where(inner, left[at] + right, at)
    return at


CASES = {
    f"{_SOUND}/{BITS}": low_bits,
    **canary_cases(_SOUND),
    **dict.fromkeys(_OF_CODE, possible_split),
    _SOUND: lone_leaf,
    f"{_SOUND}/{WHOLE}": transcript,
}
