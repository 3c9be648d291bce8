"""A membership attack on models that are fitted as a release is, to drawn rows and no private one.

Shadow models (Carlini et al. 2022) are fitted with a canary and without it, by the method, the
parameters and the budget of the release. One half of them teaches how likely what they show of the
canary is in either world; the other half is guessed at. The rows are drawn from the public domain,
and so is the canary. So the attack reads no private row, and spends nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from dprepro.additive.model import AdditiveModel
from dprepro.audit import audit
from dprepro.audit.case import Case, Encoded
from dprepro.audit.result import AuditResult, rounded
from dprepro.data.domain import Domain, NumericFeature, TaskKind, sample_features
from dprepro.data.encode import ENCODINGS
from dprepro.estimators.contract import ledger_of
from dprepro.experiment.plan import note_disclosures, setting_of
from dprepro.experiment.record import Task
from dprepro.methods import registry
from dprepro.methods.own import fit_method
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.release.statement import AttackRecord
from dprepro.runtime.errors import DpreproError

ROWS = 400
"""Of each shadow table, beside the canary: of more rows a canary is no easier to find."""

SHADOWS = 200
"""Shadow models by default: half a minute for ten features."""

FALSE_POSITIVES = 0.05
"""The false positive rate at which the true positive rate is stated, or the next below it."""

_ROOM = 0.9
"""The part of a numeric range in which drawn rows lie: the canary is at its upper end."""

_FEW = 10
"""One in so many of the drawn rows has the canary's label."""


@dataclass(frozen=True, repr=False)
class Shadows:
    """Two drawn tables that differ in the canary, and how a release would fit a model to one.

    Attributes
    ----------
    task
        Of the release: method, parameters, budget and unit.
    present, absent
        The tables, encoded for the method.
    canary
        Its features, a row of a table.
    """

    task: Task
    kind: TaskKind
    domain: Domain
    present: Encoded
    absent: Encoded
    canary: pd.DataFrame

    def fit(self, present: bool, seed: int | None) -> Any:
        """Return the model of one of the tables."""
        X, y = self.present if present else self.absent
        method = registry.get(self.task.method)
        setting = setting_of(self.task, method, self.kind, self.domain, seed)
        model = fit_method(method, setting, self.task.params, X, y)
        note_disclosures(ledger_of(model), self.task, all_rows=True)
        return model

    def observe(self, model: AdditiveModel) -> np.ndarray:
        """Return what a model file says of the canary, float64 (K + 1,): functions, intercept."""
        return np.append(model.contributions(self.canary)[0], model.intercept_)


def shadows_of(
    task: Task, kind: TaskKind, domain: Domain, generator: np.random.Generator
) -> Shadows:
    """Return the tables of an attack on a release.

    The canary is a unit with as many equal rows as the release uses of one. Every value of it is
    at a bound or in a category where no drawn row is, and few of these have its label, or target.
    """
    method = registry.get(task.method)
    X, y = _crowd(kind, domain, generator)
    row, target = _canary(kind, domain)
    rows = pd.concat([row] * task.rows_per_unit, ignore_index=True)
    present = _joined((X, y), (rows, target))
    absent = (X, y)
    if method.adjacency == REPLACE_ONE:
        absent = _joined(absent, (X.iloc[[0] * task.rows_per_unit], y[0]))
    encode = ENCODINGS[method.encoding](domain).transform
    tables = [(encode(features), targets) for features, targets in (present, absent)]
    return Shadows(task, kind, domain, tables[0], tables[1], encode(row))


def attack(shadows: Shadows, models: int, jobs: int = 1, seed: int | None = None) -> AttackRecord:
    """Attack so many shadow models, and return what came of it.

    Raises
    ------
    DpreproError
        If there are too few models to learn from, or the method cannot fit the drawn rows.
    """
    task = shadows.task
    rows = task.rows_per_unit
    case = Case(
        subject=f"{task.method}/release",
        task=shadows.kind,
        neighbours=f"{ROWS} drawn rows, and {rows} equal one(s) of a canary, or none",
        fit=shadows.fit,
        observe=shadows.observe,
        trials=models,
    )
    try:
        return record_of(audit(case, models, jobs=jobs, seed=seed), rows)
    except ValueError as error:
        raise DpreproError(f"the attack cannot fit {task.method} to drawn rows: {error}") from error


def record_of(found: AuditResult, rows: int) -> AttackRecord:
    """Return what a statement says of an attack with a canary of so many rows."""
    scores, present = found.evidence.scores, found.evidence.present
    if present.all() or not present.any():
        raise DpreproError("all shadow models were in one world by chance: attack with more")
    wrong = np.sort(scores[~present])[::-1]
    allowed = int(FALSE_POSITIVES * wrong.size)
    above = wrong[allowed]
    return AttackRecord(
        epsilon=found.epsilon,
        delta=found.delta,
        shadow_models=found.trials,
        judged=int(present.size),
        rows=ROWS,
        canary_rows=rows,
        auc=round(float(roc_auc_score(present, scores)), 4),
        false_positive_rate=round(float(np.mean(wrong > above)), 4),
        true_positive_rate=round(float(np.mean(scores[present] > above)), 4),
        epsilon_lower_bound=rounded(found.lower_bound),
        confidence=found.confidence,
        verdict=found.verdict.value,
    )


def _crowd(
    kind: TaskKind, domain: Domain, generator: np.random.Generator
) -> tuple[pd.DataFrame, np.ndarray]:
    X = sample_features(domain, ROWS, generator)
    for feature in domain.features:
        column = X[feature.name]
        if isinstance(feature, NumericFeature):
            X[feature.name] = feature.lower + _ROOM * (column - feature.lower)
        elif len(feature.categories) > 1:
            last = feature.categories[-1]
            X[feature.name] = column.where(column != last, feature.categories[0])
    if kind == "regression":
        low, high = (float(bound) for bound in domain.target)
        return X, low + (high - low) * generator.random(ROWS) / 2
    others = np.arange(ROWS) % (len(domain.target) - 1)
    few = np.arange(ROWS) % _FEW == 0
    return X, np.where(few, len(domain.target) - 1, others)


def _canary(kind: TaskKind, domain: Domain) -> tuple[pd.DataFrame, float | int]:
    values = {
        feature.name: [feature.upper]
        if isinstance(feature, NumericFeature)
        else pd.Categorical([feature.categories[-1]], categories=list(feature.categories))
        for feature in domain.features
    }
    last = float(domain.target[1]) if kind == "regression" else len(domain.target) - 1
    return pd.DataFrame(values), last


def _joined(
    crowd: tuple[pd.DataFrame, np.ndarray], more: tuple[pd.DataFrame, float | int]
) -> tuple[pd.DataFrame, np.ndarray]:
    (X, y), (rows, target) = crowd, more
    return pd.concat([X, rows], ignore_index=True), np.append(y, [target] * len(rows))
