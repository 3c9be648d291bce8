"""Transcripts of trees, rules, votes and maps, weighed as those of additive models are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.adversary import dpboost, lazybb, llm, products, votes
from dprepro.audit.adversary.evidence import Evidence
from dprepro.audit.adversary.transcript import Event
from dprepro.audit.case import AuditSetting, Case, MethodPair
from dprepro.audit.cases.overheard import JOINT, WHOLE, Overheard, Part, transcript_case
from dprepro.data.boolean import BooleanEncoder
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.data.encode import ENCODINGS
from dprepro.methods import registry

_TREES: dict[str, int] = {"n_trees": 2, "trees_per_ensemble": 1, "max_depth": 1, "max_bins": 4}
_CROWD = 20


def dpboost_sound(setting: AuditSetting) -> Case:
    """Return two trees of one split: one cut has the canary alone, which the others dilute."""
    binary = setting.task == "binary"
    domain = Domain((NumericFeature("x", 0.0, 1.0),), ("0", "1") if binary else (0.0, 1.0))
    x, labels = np.append(np.zeros(_CROWD), 0.3), np.append(np.ones(_CROWD, int), 0)
    frame = pd.DataFrame({"x": x})
    pair = MethodPair(setting, domain, (frame, labels), (frame[:-1], labels[:-1]), _TREES)
    codes = np.minimum(x * _TREES["max_bins"], _TREES["max_bins"] - 1).astype(np.int64)[:, None]
    weigh = partial(_weigh_trees, codes=codes, targets=2.0 * labels - 1)
    words = f"{_CROWD} rows of one label at one place, and one of the other label beside or none"
    fit, words = Overheard(((pair, weigh),)), f"{words}; all trees seen"
    parts = [Part(name, JOINT) for name in (dpboost.SPLITS, dpboost.LEAVES)]
    return transcript_case(setting, fit, JOINT, words, tuple(parts))


def _weigh_trees(
    model: Any, events: list[Event], *, codes: np.ndarray, targets: np.ndarray
) -> Sequence[Evidence]:
    splits, leaves = model.ledger_.entries
    rules = dpboost.Rules(model.reg_lambda, (3,), splits.noise_multiplier, leaves.noise_multiplier)
    return dpboost.evidence(events, codes, targets, rules)


_ROUNDS = {"rounds": 3, "density": 0.5, "learning_rate": 0.5}
_RULE_DOMAIN = Domain(tuple(CategoricalFeature(n, ("0", "1")) for n in "uv"), ("0", "1"))
_RULE_ROWS = ((0, 0, 0, 5), (0, 0, 1, 5), (0, 1, 0, 5), (0, 1, 1, 4), (1, 0, 0, 5), (1, 0, 1, 5),
              (1, 1, 0, 5), (1, 1, 1, 5))  # fmt: skip
"""u, v, label, rows: no rule is much better than another."""


def one_rules(setting: AuditSetting) -> Case:
    """Return five rounds of 1-Rules, and a row that has one label or the other."""
    u, v, y = np.repeat(np.array(_RULE_ROWS)[:, :3], [row[3] for row in _RULE_ROWS], axis=0).T
    pairs = []
    for canary in ((0, 1), (1, 0)):
        X = pd.DataFrame({"u": np.append(u, canary[0]), "v": np.append(v, canary[1])})
        X = X.astype(str).astype("category")
        columns = BooleanEncoder(_RULE_DOMAIN).transform(X).to_numpy() == 1
        present, absent = ((X, np.append(y, label)) for label in (1, 0))
        worlds = (
            lazybb.Table(columns, 2 * present[1] - 1),
            lazybb.Table(columns, 2 * absent[1] - 1),
        )
        pair = MethodPair(setting, _RULE_DOMAIN, present, absent, _ROUNDS)
        pairs.append((pair, partial(_weigh_rules, worlds=worlds)))
    words = f"{len(y)} rows with two features, and one of one label or the other; all choices seen"
    return transcript_case(setting, Overheard(tuple(pairs)), JOINT, words)


def _weigh_rules(
    model: Any, events: list[Event], *, worlds: tuple[lazybb.Table, lazybb.Table]
) -> Sequence[Evidence]:
    (entry,) = model.ledger_.entries
    return lazybb.choices(
        events, worlds, _ROUNDS["learning_rate"], _ROUNDS["density"], entry.scale
    )  # fmt: skip


_TEACHERS = 6


def votes_seen(setting: AuditSetting) -> Case:
    """Return teachers of one row each, whose counts of votes are seen; a row changes its label."""
    domain = Domain((NumericFeature("x", 0.0, 1.0),), ("0", "1"))
    others = np.arange(_TEACHERS - 1) % 2
    frame = pd.DataFrame({"x": np.zeros(_TEACHERS)})
    present, absent = ((frame, np.append(others, label)) for label in (1, 0))
    params = {"teachers": _TEACHERS, "partitions": 1, "rate": setting.epsilon / 2, "limit": 1}
    pair = MethodPair(setting, domain, present, absent, params)
    words = f"{_TEACHERS} rows that teach a teacher each, one of one label or the other; votes seen"
    whole = transcript_case(
        setting, Overheard(((pair, partial(_weigh_votes, others=others)),)), JOINT, words
    )
    return replace(whole, subject=f"{setting.method}/{votes.VOTES}")


def _weigh_votes(model: Any, events: list[Event], *, others: np.ndarray) -> Sequence[Evidence]:
    (entry,) = model.ledger_.entries
    return votes.answers(events, others, (1, 0), entry.scale)


_LLM_ROWS, _CLIP = 21, 1e-2
_MAPS = {
    "n_maps": 1, "n_projected": None, "batch_size": _LLM_ROWS, "epochs": 8, "decay_every": 8,
    "learning_rate": 0.3, "clip_norm": _CLIP,
}  # fmt: skip


def full_batches(setting: AuditSetting) -> Case:
    """Return eight steps on all rows: a crowd, and a row elsewhere whose gradient is clipped."""
    labels = 2 if setting.task == "binary" else 3
    domain = Domain((NumericFeature("x", 0.0, 1.0),), tuple(map(str, range(labels))))
    x, y = np.append(np.zeros(_LLM_ROWS - 1), 1.0), np.arange(_LLM_ROWS) % labels
    frame = pd.DataFrame({"x": x})
    pair = MethodPair(setting, domain, (frame, y), (frame.iloc[:-1], y[:-1]), _MAPS)
    encoding = ENCODINGS[registry.get(setting.method).encoding](domain)
    inputs = np.asarray(encoding.transform(frame), dtype=np.float64)
    weigh = partial(_weigh_gradients, X=inputs, labels=y)
    words = f"{_LLM_ROWS - 1} rows at one end of a feature, and one row more at the other or none"
    return transcript_case(setting, Overheard(((pair, weigh),)), 8, f"{words}; all sums seen")


def _weigh_gradients(
    model: Any, events: list[Event], *, X: np.ndarray, labels: np.ndarray
) -> Sequence[Evidence]:
    (entry,) = model.ledger_.entries
    return llm.answers(events, X, labels, _CLIP, entry.noise_multiplier)


_MANY, _BATCH = 100, 30


def sampled_batches(setting: AuditSetting) -> Case:
    """Return steps on Poisson samples: a crowd that moves no filter, and a row that does."""
    labels = 2 if setting.task == "binary" else 3
    domain = Domain((NumericFeature("x", 0.0, 1.0),), tuple(map(str, range(labels))))
    x, y = np.append(np.zeros(_MANY), 1.0), np.arange(_MANY + 1) % labels
    frame = pd.DataFrame({"x": x})
    params = {**_MAPS, "batch_size": _BATCH, "epochs": 2, "decay_every": 2}
    pair = MethodPair(setting, domain, (frame, y), (frame.iloc[:-1], y[:-1]), params)
    encoding = ENCODINGS[registry.get(setting.method).encoding](domain)
    inputs = np.asarray(encoding.transform(frame), dtype=np.float64)
    weigh = partial(_weigh_batches, X=inputs, labels=y)
    words = f"{_MANY} rows at one end of a feature, and one row more at the other or none; sampled"
    whole = transcript_case(setting, Overheard(((pair, weigh),)), JOINT, f"{words}, all sums seen")
    return replace(whole, subject=f"{setting.method}/{llm.BATCHES}")


def _weigh_batches(
    model: Any, events: list[Event], *, X: np.ndarray, labels: np.ndarray
) -> Sequence[Evidence]:
    (entry,) = model.ledger_.entries
    return llm.sampled(events, X, labels, _CLIP, entry.noise_multiplier, entry.sampling)


_LINE = 500
"""At epsilon 1, and more below: so many rows that no sum of squares is small for its noise."""


def products_seen(setting: AuditSetting) -> Case:
    """Return all noisy products; the row that is exchanged moves the square of the target, too."""
    domain = Domain((NumericFeature("x", -1.0, 1.0),), (-1.0, 1.0))
    rows = math.ceil(_LINE * max(1.0, 1 / setting.epsilon))
    x, y = np.ones(rows), np.resize([-1.0, 1.0], rows)
    tables = [(pd.DataFrame({"x": np.append(x, end)}), np.append(y, end)) for end in (1.0, 0.0)]
    pair = MethodPair(setting, domain, tables[0], tables[1])
    encoding = ENCODINGS[registry.get(setting.method).encoding](domain)
    worlds = [(np.asarray(encoding.transform(X), dtype=np.float64), y) for X, y in tables]
    weigh = partial(_weigh_products, worlds=(worlds[0], worlds[1]))
    words = f"{rows} rows, and one at the upper bounds or in the middle; all sums seen"
    return transcript_case(setting, Overheard(((pair, weigh),)), 4, words)


def _weigh_products(
    model: Any, events: list[Event], *, worlds: tuple[products.Rows, products.Rows]
) -> Sequence[Evidence]:
    return products.answers(events, worlds, [entry.scale for entry in model.ledger_.entries])


CASES = {
    f"dp-linear-fair/{WHOLE}": products_seen,
    f"dpboost-sound/{WHOLE}": dpboost_sound,
    f"lazybb-1r/{WHOLE}": one_rules,
    f"dp-bag-sound/{votes.VOTES}": votes_seen,
    f"dp-llm/{WHOLE}": full_batches,
    f"dp-llm/{llm.BATCHES}": sampled_batches,
}
