"""A membership attack on models that are fitted as a release is, and to no private row.

Shadow models (Carlini et al. 2022) are fitted with a canary and without it, by the method, the
parameters and the budget of the release. One half of them teaches how likely what they show of the
canary is in either world; the other half is guessed at. The rows are drawn from the public domain,
or are rows of which the publisher says that they are public. The canary is made of the domain. So
the attack reads no private row, and spends nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from dprepro.additive.model import AdditiveModel
from dprepro.audit import audit
from dprepro.audit.case import Case, Encoded
from dprepro.audit.result import AuditResult, rounded
from dprepro.data.card import Card
from dprepro.data.cell_values import Kind
from dprepro.data.domain import (
    CategoricalFeature,
    Domain,
    NumericFeature,
    TaskKind,
    sample_features,
)
from dprepro.data.encode import ENCODINGS
from dprepro.estimators.contract import ledger_of
from dprepro.experiment.plan import note_disclosures, setting_of
from dprepro.experiment.record import Task
from dprepro.methods import registry
from dprepro.methods.own import fit_method
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.release.statement import AttackRecord
from dprepro.rows.card_table import CardTable
from dprepro.runtime.errors import DpreproError

ROWS = 400
"""Of each shadow table, beside the canary: of more rows a canary is no easier to find."""

FALSE_POSITIVES = 0.05
"""The false positive rate at which the true positive rate is stated, or the next below it."""

_ROOM = 0.9
"""The part of a numeric range in which drawn rows lie: the canary is at its upper end."""

_DRAWS = 100

_LEAST = 50
"""Public rows that an attack needs: fewer make a model of noise alone."""

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
    crowd
        How many rows there are beside the canary.
    has_public_rows
        Whether these are rows of the publisher's that are said to be public; else they are drawn.
    """

    task: Task
    kind: TaskKind
    domain: Domain
    present: Encoded
    absent: Encoded
    canary: pd.DataFrame
    crowd: int = ROWS
    has_public_rows: bool = False

    def fit(self, present: bool, seed: int | None) -> Any:
        """Return the model of one of the tables."""
        X, y = self.present if present else self.absent
        method = registry.get(self.task.method)
        setting = setting_of(self.task, method, self.kind, self.domain, seed)
        model = fit_method(method, setting, self.task.params, X, y)
        note_disclosures(ledger_of(model), self.task, all_rows=True)
        return model

    def observe(self, model: AdditiveModel) -> np.ndarray:
        """Return what a model file says of the canary: functions, intercept.

        float64 (K + 1,); of S classes (K S + S,).
        """
        return np.append(model.contributions(self.canary)[0], model.intercept_)


def shadows_of(
    task: Task,
    kind: TaskKind,
    domain: Domain,
    generator: np.random.Generator,
    public: tuple[pd.DataFrame, np.ndarray] | None = None,
) -> Shadows:
    """Return the tables of an attack on a release; `public` are rows in place of drawn ones.

    The canary is a unit with as many equal rows as the release uses of one. Every value of it is
    at a bound or in a category where no drawn row is, and few of these have its label, or target.
    Of public rows the fewest are there.
    """
    method = registry.get(task.method)
    X, y = _crowd(kind, domain, generator) if public is None else _some_of(*public, generator)
    row, target = _canary(kind, domain, X, y)
    rows = pd.concat([row] * task.rows_per_unit, ignore_index=True)
    present = _joined((X, y), (rows, target))
    absent = (X, y)
    if method.adjacency == REPLACE_ONE:
        absent = _joined(absent, (X.iloc[[0] * task.rows_per_unit], y[0]))
    encode = ENCODINGS[method.encoding](domain).transform
    tables = [(encode(features), targets) for features, targets in (present, absent)]
    return Shadows(
        task, kind, domain, tables[0], tables[1], encode(row), len(y), public is not None
    )


def read_public_rows(path: Path, card: Card) -> tuple[pd.DataFrame, np.ndarray]:
    """Return features and targets of a file of public rows, which the card describes.

    Its units, if it has any, are not bounded: each row is as good as any other.

    Raises
    ------
    DpreproError
        If the file cannot be read as the card says, or has too few rows, or one class only.
    """
    table = CardTable(path, card)
    names = [feature.name for feature in table.domain.features]
    kinds: dict[str, Kind] = {
        feature.name: "numeric" if isinstance(feature, NumericFeature) else "text"
        for feature in table.domain.features
    }
    kinds[card.target] = "numeric" if card.task == "regression" else "label"
    chunks = list(table.chunks(kinds))
    rows = pd.concat(chunks, ignore_index=True) if chunks else pd.DataFrame(columns=[*kinds])
    targets = rows[card.target].to_numpy()
    classes = 1 if card.task == "regression" else 2
    if len(rows) < _LEAST or len(np.unique(targets)) < classes:
        raise DpreproError(
            f"{path}: an attack needs {_LEAST} rows or more, and of a classification two labels "
            "among them. Give more public rows, or leave --attack-rows out: rows are then drawn"
        )
    return rows[names], targets


def _some_of(
    X: pd.DataFrame, y: np.ndarray, generator: np.random.Generator
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return at most `ROWS` rows, chosen by chance; of a classification with two labels at least.

    Raises DpreproError if none of `_DRAWS` choices has them: one label is too seldom.
    """
    for _ in range(_DRAWS):
        chosen = generator.permutation(len(y))[:ROWS]
        if len(np.unique(y[chosen])) > 1:
            return X.iloc[chosen].reset_index(drop=True), y[chosen]
    raise DpreproError(
        f"of {ROWS} public rows by chance all have one label: give rows that have more of the other"
    )


def attack(shadows: Shadows, models: int, jobs: int = 1, seed: int | None = None) -> AttackRecord:
    """Attack so many shadow models, and return what came of it.

    Raises
    ------
    DpreproError
        If there are too few models to learn from, or the method cannot fit the drawn rows.
    """
    task = shadows.task
    rows = task.rows_per_unit
    whose = "public" if shadows.has_public_rows else "drawn"
    case = Case(
        subject=f"{task.method}/release",
        task=shadows.kind,
        neighbours=f"{shadows.crowd} {whose} rows, and {rows} equal one(s) of a canary, or none",
        fit=shadows.fit,
        observe=shadows.observe,
        trials=models,
    )
    try:
        return record_of(audit(case, models, jobs=jobs, seed=seed), shadows)
    except ValueError as error:
        raise DpreproError(
            f"the attack cannot fit {task.method} to {whose} rows: {error}"
        ) from error


def record_of(found: AuditResult, shadows: Shadows) -> AttackRecord:
    """Return what a statement says of an attack on shadow models."""
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
        rows=shadows.crowd,
        canary_rows=shadows.task.rows_per_unit,
        has_public_rows=shadows.has_public_rows,
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


def _canary(
    kind: TaskKind, domain: Domain, X: pd.DataFrame, y: np.ndarray
) -> tuple[pd.DataFrame, float | int]:
    """Return features and target where the fewest of the rows are; of equal ones the last."""
    values = {
        feature.name: [_emptier_end(X[feature.name].to_numpy(float), feature.lower, feature.upper)]
        if isinstance(feature, NumericFeature)
        else pd.Categorical([_rarest(X[feature.name], feature)], list(feature.categories))
        for feature in domain.features
    }
    if kind == "regression":
        low, high = (float(bound) for bound in domain.target)
        return pd.DataFrame(values), _emptier_end(y, low, high)
    return pd.DataFrame(values), _last_of_fewest(np.bincount(y, minlength=len(domain.target)))


def _emptier_end(values: np.ndarray, low: float, high: float) -> float:
    edge = (1 - _ROOM) * (high - low)
    return low if np.sum(values < low + edge) < np.sum(values > high - edge) else high


def _rarest(column: pd.Series, feature: CategoricalFeature) -> str:
    counts = [int(np.sum(column == category)) for category in feature.categories]
    return feature.categories[_last_of_fewest(np.array(counts))]


def _last_of_fewest(counts: np.ndarray) -> int:
    return int(np.flatnonzero(counts == counts.min())[-1])


def _joined(
    crowd: tuple[pd.DataFrame, np.ndarray], more: tuple[pd.DataFrame, float | int]
) -> tuple[pd.DataFrame, np.ndarray]:
    (X, y), (rows, target) = crowd, more
    return pd.concat([X, rows], ignore_index=True), np.append(y, [target] * len(rows))
