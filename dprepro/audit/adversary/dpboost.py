"""DPBoost by Li et al. 2020, for ensembles of one tree: all rows train every tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dprepro.audit.adversary.evidence import Answer, Choice, log_chances
from dprepro.audit.adversary.transcript import Event

SPLITS, LEAVES = "splits", "leaves"

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
        if event.kind == "Start":
            scores[:] = event.facts["score"]
        elif event.kind == "AddTree":
            tree = event.facts["tree"]
            leaves = _leaf_of(codes, tree["feature"], tree["cut"], tree["left"])
            scores += np.asarray(tree["value"])[leaves]
        elif event.kind == "SplitQuery" and event.value is not None:
            nodes = event.value.astype(np.int64)
            gradients = _bounded(scores - targets, event.facts["bound"])
            scale = rules.split_multiplier * _GAIN * event.facts["bound"] ** 2
            found += _splits(nodes, codes, gradients, rules, scale)
        elif event.kind == "LeafQuery" and event.value is not None:
            gradients = _bounded(scores - targets, event.facts["bound"])
            found.append(_leaves(event, nodes, codes, gradients, rules))
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
    event: Event, nodes: np.ndarray, codes: np.ndarray, gradients: np.ndarray, rules: Rules
) -> Answer:
    feature, cut, left = nodes
    assert event.value is not None
    leaf_of, leaves = _leaf_of(codes, feature, cut, left), np.flatnonzero(feature < 0)
    clip, taking = event.facts["clip"], ~np.isnan(gradients)
    worlds = []
    for last in (0, 1):  # without the canary, and with it
        rows = taking.copy()
        rows[-1] &= bool(last)
        sums = np.bincount(leaf_of[rows], gradients[rows], feature.size)[leaves]
        counts = np.bincount(leaf_of[rows], minlength=feature.size)[leaves]
        # A leaf without rows has the value 0 also where lambda is 0.
        means = -sums / np.maximum(counts + rules.ridge, 1e-300)
        worlds.append(np.clip(means, -clip, clip))
    moves = min(event.facts["bound"] / (1 + rules.ridge), 2 * clip)
    scale = rules.leaf_multiplier * moves
    return Answer(
        LEAVES, (event.value - worlds[0]) / scale, (worlds[1] - worlds[0]) / scale, "laplace"
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
