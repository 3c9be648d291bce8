"""DP-EBM+: what the model shows of a canary, and what all the noisy answers show together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, Case, Ceiling, MethodPair, Table, categories
from dprepro.data.domain import CategoricalFeature, Domain
from dprepro.ebm_plus.curator import ExactAnswers, Sorting
from dprepro.ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.ebm_plus.queries import (
    CodedResiduals,
    Histogram,
    Magnitudes,
    PairResiduals,
    Residuals,
    Totals,
)
from dprepro.estimators.inputs import Rows
from dprepro.privacy.gdp import epsilon_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.query import Instruction, Query, Release
from dprepro.privacy.release import listening

_CATEGORIES = ("few", "many")
_CATEGORY = CategoricalFeature("a", _CATEGORIES)
_RANGE = (100.0, 101.0)
# Labels are learnt from many rows. Targets are drawn towards the others' mean the more of these
# there are, but of very few rows a noisy number says less than its budget.
_ROWS = {"binary": 200, "regression": 40}
_OTHERS = 10
"""One in so many rows of the other bin has the canary's label. The fewer have it, the larger is the
canary's residual: it has to reach the limit that follows from the canary's code."""
_EPOCHS = 1
"""Parts add up to the same over any number of epochs and features. With few, more runs can be made.
"METHOD/transcript" has several of both."""
_TRIALS = 30_000


def many_runs(setting: AuditSetting) -> Case:
    """Return the pair: rows (many) with one label; the canary among them has the other.

    It contradicts a bin full of equal rows. What the model shows of the canary is seen. The runs
    are those of `all_answers`.
    """
    case = all_answers(setting)
    return replace(
        case,
        subject=setting.method,
        neighbours=_words(_pair(setting)),
        runs=case.subject,
        columns=_MODEL,
        ceiling=None,
    )


def _pair(setting: AuditSetting) -> MethodPair:
    rows = math.ceil(_ROWS[setting.task] * max(1.0, 1 / setting.epsilon))
    domain = Domain((_CATEGORY,), ("0", "1") if setting.task == "binary" else _RANGE)
    present, absent = (_table(rows, setting.task, canary) for canary in (True, False))
    return MethodPair(setting, domain, present, absent, {"n_epochs": _EPOCHS})


def _words(pair: MethodPair) -> str:
    binary = pair.setting.task == "binary"
    rows = (pair.absent[0][_CATEGORY.name] == _CATEGORIES[1]).sum()
    return (
        f"{rows} rows with one {'label' if binary else 'target, the lower bound'}, and one row "
        f"more with the {'other label' if binary else 'upper bound'} or none"
    )


def _table(rows: int, task: str, canary: bool) -> Table:
    codes = np.repeat([0, 1], [rows // 2, rows + int(canary)])
    if task == "binary":
        # Both labels have to occur in either world.
        y = np.ones(rows // 2 + rows + int(canary))
        y[: rows // 2 : _OTHERS] = y[rows // 2 + rows :] = 0
    else:
        y = np.repeat(_RANGE, [rows // 2 + rows, int(canary)])
    return pd.DataFrame({_CATEGORY.name: categories(codes, _CATEGORIES)}), y


def _released(model: Any) -> np.ndarray:
    """Return what the canary has moved: the score of its bins, their counts, the intercept."""
    score = model.intercept_ + sum(shape[-1] for shape in model.shape_functions_)
    return np.array([score, model.intercept_, *(count[-1] for count in model.bin_counts_)])


# --- all answers ----------------------------------------------------------------------------------

_ANSWERS, _MODEL = (0, 1), (2, 3, 4)
"""Which of the numbers that `_seen` returns are of the answers, and which of the model."""

_NOTHING = 1e-5
"""Noise of no more than this, in units of its stated deviation, is taken as missing."""


def all_answers(setting: AuditSetting) -> Case:
    """Return the pair, of which every noisy answer is seen: all that is released.

    The adversary knows all rows but the canary, and that it is like the last of them but for its
    target. Given what was released before, it knows of each answer what it is without the canary
    and what the canary would add. What is observed is by how much all answers are likelier with
    the canary, under the noise that the ledger states. With parts of norm m in units of that noise,
    the logarithm is N(-m^2/2, m^2) without the canary and N(m^2/2, m^2) with it: m-GDP.

    Apart from that it is observed in how many numbers there would be no noise. Counts are whole, so
    that their noise is 0 now and then: one sum of both would drown the evidence in such chances.
    """
    pair = _pair(setting)
    case = overheard(pair, "answers", _words(pair), _TRIALS)
    return replace(case, observe=_seen, columns=_ANSWERS)


def _seen(outcome: Any) -> np.ndarray:
    return np.concatenate([_evidence(outcome), _released(outcome.model)])


def overheard(pair: MethodPair, name: str, neighbours: str, trials: int) -> Case:
    """Return the case of any pair of DP-EBM+ by all its answers: the canary is the last row."""
    setting = pair.setting
    heard = _Overheard(**vars(pair))
    return Case(
        subject=f"{setting.method}/{name}",
        task=setting.task,
        neighbours=f"{neighbours}; all answers seen",
        fit=heard.fit,
        observe=_evidence,
        trials=trials,
        ceiling=_of_all_parts,
    )


def _of_all_parts(outcome: Any) -> Ceiling:
    """All answers are a Gaussian release, moved by the canary's parts and by nothing else."""
    mu = math.sqrt(outcome.mu_squared)
    return Ceiling(epsilon_of(mu, outcome.ledger_.delta), "by the canary's part of every answer")


def _evidence(outcome: Any) -> np.ndarray:
    return np.array([outcome.evidence, outcome.bare])


class _Overheard(MethodPair):
    """The pair, whose outcome is what an adversary makes of all answers."""

    def fit(self, present: bool, seed: int | None) -> Any:
        """Return ``ledger_``, ``model``, and what `_Adversary.weigh` has found, by name."""
        heard = _Heard()
        with listening(heard):
            model = super().fit(present, seed)
        found = self._adversary.weigh(heard.events, model.ledger_)
        return SimpleNamespace(ledger_=model.ledger_, model=model, **found)

    @cached_property
    def _adversary(self) -> _Adversary:
        """One for all trials: sorting rows into cells takes longer than all the rest."""
        loss = LOGISTIC if self.setting.task == "binary" else SQUARED
        frame, y = self.present
        others = len(self.absent[1])
        return _Adversary(
            Rows(frame.iloc[:others], y[:others]),
            Rows(frame.iloc[others:], y[others:]),
            Sorting(self.domain, loss),
        )


class _Heard:
    """Keeps what a curator was asked and told, and what it released."""

    def __init__(self) -> None:
        self.events: list[tuple[Query, Release] | Instruction] = []

    def asked(self, query: Query, release: Release) -> None:
        """Keep a query and its answer."""
        self.events.append((query, release))

    def told(self, instruction: Instruction) -> None:
        """Keep an instruction."""
        self.events.append(instruction)


_ENTRIES: dict[type[Query], int] = {
    Totals: 0, Histogram: 1,
    CodedResiduals: 2, Residuals: 2, Magnitudes: 2, PairResiduals: 2,
}  # fmt: skip
"""The entry of the ledger that each query belongs to."""


class _Adversary:
    """Knows all rows, and weighs what the answers say of whether the canary was among them.

    Parameters
    ----------
    others, canary
        All other rows, and the canary alone.
    sorting
        That of the fits.
    """

    def __init__(self, others: Rows, canary: Rows, sorting: Sorting) -> None:
        self._others, self._canary = sorting(others), sorting(canary)
        self._sorting = sorting

    def weigh(
        self, events: Sequence[tuple[Query, Release] | Instruction], ledger: Ledger
    ) -> dict[str, float]:
        """Return what all answers say, if their noise is what the ledger states.

        ``evidence`` is the log likelihood ratio, and ``mu_squared`` the squared norm of the
        canary's parts in units of the noise. ``bare`` is how many of the numbers that the canary
        moves would have no noise with it, less how many would have none without it.
        """
        evidence = mu_squared = bare = 0.0
        others = ExactAnswers.over(self._others, self._sorting)
        canary = ExactAnswers.over(self._canary, self._sorting)
        for event in events:
            if isinstance(event, Instruction):
                others.follow(event)
                canary.follow(event)
                continue
            query, release = event
            without, part = others.answer(query).value, canary.answer(query).value
            deviation = _stated_deviation(query, ledger)
            absent = (release.value - without) / deviation
            present = (release.value - without - part) / deviation
            evidence += float(np.sum(absent**2 - present**2)) / 2
            bare += float(np.sum(np.abs(present) < _NOTHING) - np.sum(np.abs(absent) < _NOTHING))
            mu_squared += float(np.sum((part / deviation) ** 2))
        return {"evidence": evidence, "mu_squared": mu_squared, "bare": bare}


def _stated_deviation(query: Query, ledger: Ledger) -> float:
    """Return the standard deviation of the noise in a query's answer, by the ledger."""
    entry = ledger.entries[_ENTRIES[type(query)]]
    return query.charged * entry.noise_multiplier / math.sqrt(query.share)


CASES = {"dp-ebm-plus": many_runs, "dp-ebm-plus/answers": all_answers}
