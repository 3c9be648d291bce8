"""All that leaves a fit, weighed by an adversary who shares no code with it: `audit.adversary`.

"METHOD/transcript" takes all answers together. "METHOD/PART" takes those of one entry of the
ledger, and what that entry alone spends for the guarantee: noise that is missing there would be a
small part of the whole. In every run another canary is drawn, which the adversary knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.adversary import ebm, ebm_plus
from dprepro.audit.adversary.evidence import Evidence
from dprepro.audit.adversary.known import Known
from dprepro.audit.adversary.transcript import Event
from dprepro.audit.case import AuditSetting, Case, MethodPair, Table, categories
from dprepro.audit.cases.overheard import WHOLE, Overheard, Part, Weigh, transcript_case
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature

_RANGE = (100.0, 101.0)
_A = CategoricalFeature("a", ("many", "some", "rare"))
_B = NumericFeature("b", 0.0, 1000.0, missing=True)
_LOWER, _UPPER, _MISSING = 0, -2, -1
"""Cells of the number, from its first and from its last."""
_NUMBERS = {_LOWER: 0.0, _UPPER: 1000.0, _MISSING: np.nan}

_GROUPS = (
    (0, _LOWER, 1, 200), (1, _UPPER, 0, 100), (0, _UPPER, 0, 50), (1, _MISSING, 1, 50),
)  # fmt: skip
"""Category, cell of the number, label, rows."""

_CANARIES = (
    # Contradicts a full bin; is alone in its category; misses its number; has an extreme one.
    (0, _LOWER, 0, 0.0), (2, _UPPER, 1, 1000.0), (1, _MISSING, 0, np.nan), (0, _UPPER, 1, 1e15),
)  # fmt: skip
"""Category, cell of the number, label, the number itself."""


def additive_pairs(
    setting: AuditSetting, params: dict[str, Any], weigh: Callable[..., Any], cells: tuple[int, int]
) -> tuple[tuple[MethodPair, Weigh], ...]:
    """Return a pair for each canary; `cells` number the last cell of a number and its missing."""
    binary = setting.task == "binary"
    domain = Domain((_A, _B), ("0", "1") if binary else _RANGE)
    groups = np.array(_GROUPS)
    cell = {_LOWER: 0, _UPPER: cells[0], _MISSING: cells[1]}
    found = []
    for category, place, label, number in _CANARIES:
        known = Known(
            cells=np.column_stack([groups[:, 0], [cell[c] for c in groups[:, 1]]]),
            targets=groups[:, 2] - (0.0 if binary else 0.5),
            counts=groups[:, 3],
            canary=np.array([category, cell[place]]),
            target=label - (0.0 if binary else 0.5),
        )
        tables = [_table(setting, (category, number, label) if there else None) for there in (1, 0)]
        pair = MethodPair(setting, domain, present=tables[0], absent=tables[1], params=params)
        found.append((pair, partial(weigh, known=known, is_logistic=binary)))
    return tuple(found)


def _table(setting: AuditSetting, canary: tuple[int, float, int] | None) -> Table:
    rows = [(a, _NUMBERS[b], y) for a, b, y, n in _GROUPS for _ in range(n)]
    a, b, y = zip(*rows, *([] if canary is None else [canary]), strict=True)
    frame = pd.DataFrame({"a": categories(a, _A.categories), "b": np.array(b, float)})
    labels = np.array(y)
    return frame, labels if setting.task == "binary" else _RANGE[0] + labels


_WORDS = (
    f"{sum(group[-1] for group in _GROUPS)} rows, and one row more or none: one that contradicts "
    "a full bin, is alone in its category, misses a number or has an extreme one; all answers seen"
)

_BINS, _EBM_EPOCHS, _RATE = 32, 6, 0.1


_EBM_PARTS = (Part(ebm.HISTOGRAMS, 2), Part(ebm.STEPS, 2 * _EBM_EPOCHS))


def dp_ebm(setting: AuditSetting, entry: int | None = None) -> Case:
    """Return all answers of DP-EBM, or those of one phase; every bin is a leaf of every step."""
    params = {
        "max_bins": _BINS, "max_leaves": 255, "n_epochs": _EBM_EPOCHS, "learning_rate": _RATE,
    }  # fmt: skip
    pairs = additive_pairs(setting, params, _weigh_ebm, (2 * _BINS - 1, 2 * _BINS))
    size = 4 + 2 * _EBM_EPOCHS
    return transcript_case(setting, Overheard(pairs), size, _WORDS, _EBM_PARTS, entry)


def _weigh_ebm(
    model: Any, events: list[Event], *, known: Known, is_logistic: bool
) -> Sequence[Evidence]:
    counts, steps = model.ledger_.entries
    sound = model.sensitivity == "sound"
    if not (is_logistic or sound):  # the paper's regression: targets not centred, nothing clipped
        middle = sum(_RANGE) / 2
        known = replace(known, targets=known.targets + middle, target=known.target + middle)
    bound = 0.5 if sound else np.inf
    rules = ebm.Rules(
        is_logistic, _RATE, bound, is_logistic and sound, counts.scale, steps.scale
    )  # fmt: skip
    return ebm.answers(events, model.bin_counts_, known, rules)


_PLUS_EPOCHS = 4


def dp_ebm_plus(setting: AuditSetting, entry: int | None = None) -> Case:
    """Return all answers of DP-EBM+, or those of one phase."""
    pairs = additive_pairs(setting, {"n_epochs": _PLUS_EPOCHS}, _weigh_plus, (_UPPER, _MISSING))
    # Of labels an epoch asks once; of targets for sizes, the intercept and two features.
    epochs = _PLUS_EPOCHS * (1 if setting.task == "binary" else 4)
    parts = (
        Part(ebm_plus.TOTALS, 1), Part(ebm_plus.HISTOGRAMS, 2), Part(ebm_plus.EPOCHS, epochs),
    )  # fmt: skip
    return transcript_case(setting, Overheard(pairs), 5 + epochs, _WORDS, parts, entry)


def _weigh_plus(
    model: Any, events: list[Event], *, known: Known, is_logistic: bool
) -> Sequence[Evidence]:
    multipliers = [entry.noise_multiplier for entry in model.ledger_.entries]
    adversary = ebm_plus.Adversary(known, is_logistic, frozenset({1}), multipliers)
    return adversary.answers(events, model.bin_counts_)


CASES = {
    f"dp-ebm-sound/{WHOLE}": dp_ebm,
    f"dp-ebm-joint/{WHOLE}": dp_ebm,
    f"dp-ebm-sound/{ebm.HISTOGRAMS}": partial(dp_ebm, entry=0),
    f"dp-ebm-sound/{ebm.STEPS}": partial(dp_ebm, entry=1),
    f"dp-ebm-plus/{WHOLE}": dp_ebm_plus,
    f"dp-ebm-plus/{ebm_plus.TOTALS}": partial(dp_ebm_plus, entry=0),
    f"dp-ebm-plus/{ebm_plus.HISTOGRAMS}": partial(dp_ebm_plus, entry=1),
    f"dp-ebm-plus/{ebm_plus.EPOCHS}": partial(dp_ebm_plus, entry=2),
}
