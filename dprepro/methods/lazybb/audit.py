"""LazyBB: rows on which the noise of one kind of choice decides, and a canary that shifts the odds.

Rows that are all alike leave a hypothesis two things to say, yes or no. Boosting then weighs the
rows of the label that it got wrong most, so that a canary among them weighs all that smoothness
allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from dprepro.audit.case import AuditSetting, Case, MethodPair, Table, line, table
from dprepro.audit.distinguishers import (
    Ceiling,
    Claim,
    Threshold,
    claim_of,
    laplace_lead,
    largest_epsilon,
    largest_rho,
    two_outcomes,
)
from dprepro.audit.likelihood_ratio import Choice, Evidence, log_chances
from dprepro.audit.pairs import canary_cases
from dprepro.audit.transcript import WHOLE, Event, transcript_case
from dprepro.data.domain import CategoricalFeature, Domain
from dprepro.data.encode import BooleanEncoder
from dprepro.methods.lazybb.queries import Literals, RuleQuery
from dprepro.methods.lazybb.sensitivity import TOTAL
from dprepro.methods.lazybb.weights import Weighing
from dprepro.privacy.composition import choice_epsilon

_LOG_ODDS = 2.5
_TRIALS = 20_000
_TRIALS_OF_FORESTS = 12_000
"""Of dozens of trees, which take longer."""
_ONE_ROUND = {"rounds": 1, "density": 1.0}
_LABELS = {"splits": 1, "label_share": 0.99}
_TREES = "topdown"
_ALIKE = line("binary")

# --- one round ------------------------------------------------------------------------------------


def against_the_odds(setting: AuditSetting) -> Case:
    """Return a pair on which a hypothesis can say yes or no, and no is the likelier.

    With n rows and m more noes than yeses the log odds of a yes are -epsilon m / 2, and exchanging
    a no for a yes changes m by 2: the probability of the rare answer changes by almost e^epsilon.
    One round over equal weights spends all the budget.
    """
    return _against(setting, _ONE_ROUND)


def against_the_odds_of_a_rule(setting: AuditSetting) -> Case:
    """Return the same pair for a learner that has no rounds."""
    return _against(setting, {})


def against_the_odds_of_labels(setting: AuditSetting) -> Case:
    """Return the same pair for a tree, nearly all of whose budget its labels get."""
    return _against(setting, _ONE_ROUND | _LABELS)


def _against(setting: AuditSetting, params: dict[str, Any]) -> Case:
    behind = max(1, round(_LOG_ODDS / setting.epsilon))
    return _case_of_alike(setting, setting.method, 5, 5 + 2 * behind - 1, params, _TRIALS)


def balanced(setting: AuditSetting) -> Case:
    """Return a pair of one tree whose canary decides which label has more rows, by one row."""
    return _case_of_alike(setting, setting.method, 50, 50, _ONE_ROUND | {"splits": 1}, 400)


_PURE_SIDE = 200


def against_the_odds_of_splits(setting: AuditSetting) -> Case:
    """Return a pair on which one feature splits rows by label, and another almost does so.

    Rows of one label have feature u alone, those of the other have v alone. A row of the first
    label has both, and takes 4 zeta from the gain of v; the canary has both as well, and takes them
    from the gain of one or of the other by its label. So it changes the log odds of u and v from
    epsilon to nothing. The choice of a split gets nearly all the budget.
    """
    domain = Domain(tuple(CategoricalFeature(n, ("0", "1")) for n in "uv"), ("0", "1"))
    u = np.repeat([1, 0, 1], [_PURE_SIDE, _PURE_SIDE, 1])
    v = np.repeat([0, 1, 1], [_PURE_SIDE, _PURE_SIDE, 1])

    def rows(canary: int) -> Table:
        X = pd.DataFrame({"u": np.append(u, 1).astype(str), "v": np.append(v, 1).astype(str)})
        return X.astype("category"), np.append(u, canary)

    pair = MethodPair(
        setting, domain, present=rows(0), absent=rows(1),
        params={**_ONE_ROUND, "splits": 1, "label_share": 0.01},
    )  # fmt: skip
    return pair.case(
        f"{_PURE_SIDE} rows of each label, one between, one of either label there",
        _second_feature,
        trials=_TRIALS,
        rule=Threshold(0.5, "present"),
        ceiling=_of_splits,
        name="splits",
    )


def _of_splits(model: Any) -> Ceiling:
    """By the probability of v: its gain is that of u, or less by that of a row of the other label.

    With canary and row of opposite labels both features have one wrong row. With two rows of one
    label u parts all, and v leaves 4 a b / (a + b), a = 2 and b the rows of the other label.
    """
    gains, _ = model.ledger_.entries
    behind = 4 * 2 * _PURE_SIDE / (_PURE_SIDE + 2) / (2 * _PURE_SIDE + 2)
    chosen = float(expit(-behind / gains.scale))
    return Ceiling(two_outcomes(0.5, chosen, 0.0), "by the probability of either feature")


def _second_feature(model: Any) -> np.ndarray:
    """Return whether the first split is by feature v, float64 (1,)."""
    feature, _ = model.column_names_[model.hypotheses_[0].splits[0]]
    return np.array([float(feature == "v")])


# --- several rounds -------------------------------------------------------------------------------

_DENSITY = 0.1
_CERTAIN = 8.0
_ROUNDS, _ROUNDS_OF_TREES = 7, 25
"""So many that each gets more by zCDP than by sums; odd, so that votes are never level."""
_LEVEL = 5


def boosted(setting: AuditSetting) -> Case:
    """Return a pair on which five rounds decide: the first says no, then yes and no are close.

    Few rows say yes. The first round gets them wrong, and they then weigh 1 / (kappa n) each and
    half of all together: the canary decides which half is larger, and moves the log odds of every
    further no by its share of epsilon. After as many yeses as noes all is as at first. What is
    observed is how often no was said.
    """
    # That no is said throughout is the rarest answer that is met, and the one that says most.
    return replace(_boosted(setting, "boosted", 5, _TRIALS), rule=Threshold(-0.9, "absent"))


def many_rounds(setting: AuditSetting) -> Case:
    """Return a pair whose canary has the last word in every round: yes or no is a bit likelier.

    Composed by zCDP, each of these rounds gets more than its part of epsilon. All rows weigh the
    same throughout, so that how often yes was said tells all.
    """
    trees = _trees(setting)
    rounds = _ROUNDS_OF_TREES if trees else _ROUNDS
    params = {"rounds": rounds, "density": 1.0, "composition": "zcdp", **trees}
    name = f"{setting.method}/rounds"
    trials = _TRIALS_OF_FORESTS if trees else _TRIALS
    case = _case_of_alike(setting, name, _LEVEL, _LEVEL, params, trials)
    return replace(case, rule=Threshold())


def _trees(setting: AuditSetting) -> dict[str, Any]:
    return _LABELS if _TREES in setting.method else {}


def _boosted(setting: AuditSetting, name: str, rounds: int, trials: int) -> Case:
    each = choice_epsilon("pure", rounds, setting.epsilon, setting.delta)
    # Log odds of the first round are -(1 - kappa) kappa n each / 2. An odd kappa n has two halves
    # that differ by the canary.
    half = round(_CERTAIN / ((1 - _DENSITY) * each))
    return _case_of_alike(
        setting, f"{setting.method}/{name}", half, round((2 * half + 1) / _DENSITY) - half - 1,
        {"rounds": rounds, "density": _DENSITY, "learning_rate": 10.0, **_trees(setting)}, trials,
    )  # fmt: skip


# --- rows that are all alike ----------------------------------------------------------------------


def _case_of_alike(
    setting: AuditSetting, subject: str, yes: int, no: int, params: dict[str, Any], trials: int
) -> Case:
    x, y = np.ones(yes + no), np.repeat([1, 0], [yes, no])
    pair = MethodPair(
        setting, _ALIKE, present=table(x, y, (1.0, 1)), absent=table(x, y, (1.0, 0)), params=params
    )
    return Case(
        subject=subject,
        task=setting.task,
        neighbours=f"{yes} rows of one label, {no} of the other, one of either, all else the same",
        fit=pair.fit,
        observe=_Vote(),
        trials=trials,
        ceiling=_Alike(yes, no, _TREES in setting.method),
    )


@dataclass(frozen=True)
class _Alike:
    """The ceiling, by the probabilities of how often yes is said of all rows.

    Rows that are alike have one history: how often yes was said so far. It gives their weights, and
    these the odds of the next answer.

    Attributes
    ----------
    yes, no
        Rows of either label but the canary.
    trees
        Whether noisy weights of both labels decide, rather than a choice between 1-Rules.
    """

    yes: int
    no: int
    trees: bool

    def __call__(self, model: Any) -> Ceiling:
        present, absent = (self._counts(model, with_yes) for with_yes in (1, 0))
        ledger, basis = model.ledger_, "by the probabilities of all answers"
        if claim_of(ledger) is Claim.ZCDP:
            rho = largest_rho(present, absent)
            return Ceiling(Claim.ZCDP.epsilon(rho, ledger.delta), f"{basis}, under zCDP")
        return Ceiling(largest_epsilon(present, absent, ledger.delta), basis)

    def _counts(self, model: Any, with_yes: int) -> np.ndarray:
        """Return the probabilities of 0, 1, ... times yes, float64 (rounds + 1,)."""
        signs = np.repeat([1, -1], [self.yes + with_yes, self.no + 1 - with_yes])
        rounds = model.ledger_.entries[-1].uses
        weighing = (
            Weighing(model.learning_rate, model.density, model.margin) if rounds > 1 else None
        )
        chances = np.ones(1)
        for turn in range(rounds):
            following = np.zeros(turn + 2)
            for said, chance in enumerate(chances):
                again = self._chance_of_yes(model, signs, weighing, 2 * said - turn, turn)
                following[said : said + 2] += chance * np.array([1 - again, again])
            chances = following
        return chances

    def _chance_of_yes(
        self, model: Any, signs: np.ndarray, weighing: Weighing | None, votes: int, turn: int
    ) -> float:
        weights = np.full(signs.size, TOTAL // signs.size)
        if weighing is not None:
            weights = weighing.weights(votes * signs, turn)
        lead = float(np.sum(signs * (weights / TOTAL)))
        scale = model.ledger_.entries[-1].scale
        if not self.trees:
            return float(expit(lead / scale))
        behind = laplace_lead(abs(lead), scale)
        return 1 - behind if lead > 0 else behind


@dataclass(frozen=True)
class _Vote:
    """Observes the mean of what the hypotheses say of all rows, each -1 or 1."""

    def __call__(self, model: Any) -> np.ndarray:
        """Return float64 (1,)."""
        said = [hypothesis.outputs(self._row)[0] for hypothesis in model.hypotheses_]
        return np.array([np.mean(said)])

    @cached_property
    def _row(self) -> Literals:
        """Read once for all runs: that takes longer than a fit."""
        return Literals(BooleanEncoder(_ALIKE).transform(pd.DataFrame({"x": [1.0]})).to_numpy())


# --- all choices ----------------------------------------------------------------------------------

_TOLD_ROUNDS = {"rounds": 3, "density": 0.5, "learning_rate": 0.5}
_RULE_DOMAIN = Domain(tuple(CategoricalFeature(n, ("0", "1")) for n in "uv"), ("0", "1"))
_RULE_ROWS = ((0, 0, 0, 5), (0, 0, 1, 5), (0, 1, 0, 5), (0, 1, 1, 4), (1, 0, 0, 5), (1, 0, 1, 5),
              (1, 1, 0, 5), (1, 1, 1, 5))  # fmt: skip
"""u, v, label, rows: no rule is much better than another."""


def transcript(setting: AuditSetting) -> Case:
    """Return five rounds of 1-Rules, and a row that has one label or the other."""
    u, v, y = np.repeat(np.array(_RULE_ROWS)[:, :3], [row[3] for row in _RULE_ROWS], axis=0).T
    pairs = []
    for canary in ((0, 1), (1, 0)):
        X = pd.DataFrame({"u": np.append(u, canary[0]), "v": np.append(v, canary[1])})
        X = X.astype(str).astype("category")
        columns = BooleanEncoder(_RULE_DOMAIN).transform(X).to_numpy() == 1
        present, absent = ((X, np.append(y, label)) for label in (1, 0))
        worlds = Booleans(columns, 2 * present[1] - 1), Booleans(columns, 2 * absent[1] - 1)
        pair = MethodPair(setting, _RULE_DOMAIN, present, absent, _TOLD_ROUNDS)
        pairs.append((pair, partial(_weigh, worlds=worlds)))
    words = f"{len(y)} rows with two features, and one of one label or the other; all choices seen"
    return transcript_case(setting, pairs, words)


def _weigh(
    model: Any, events: list[Event], *, worlds: tuple[Booleans, Booleans]
) -> Sequence[Evidence]:
    (entry,) = model.ledger_.entries
    return choices(
        events, worlds, _TOLD_ROUNDS["learning_rate"], _TOLD_ROUNDS["density"], entry.scale
    )  # fmt: skip


# --- adversary: Asadi et al. 2022, how likely each choice is with either canary -------------------

RULES = "rules"


@dataclass(frozen=True)
class Booleans:
    """Boolean rows and labels -1 and 1.

    Attributes
    ----------
    columns : bool (n, d)
    signs : int64 (n,)
    """

    columns: np.ndarray
    signs: np.ndarray

    def rules(self) -> np.ndarray:
        """Return what every 1-Rule says of each row, (2 d + 2, n): columns, negations, 1 and -1."""
        says = np.where(self.columns.T, 1, -1)
        always = np.ones((1, len(self.signs)), np.int64)
        return np.concatenate([says, -says, always, -always])


def choices(
    events: Sequence[Event],
    worlds: tuple[Booleans, Booleans],
    rate: float,
    density: float,
    scale: float,
) -> list[Choice]:
    """Return the evidence of every round's choice.

    Parameters
    ----------
    worlds
        The table with the canary, and the other one.
    rate, density
        lambda and kappa.
    scale
        s of P ~ exp(-error / s), by the ledger.
    """
    margins = [np.zeros(len(world.signs)) for world in worlds]
    found = []
    for event in events:
        match event:
            case RuleQuery(), answer:
                chosen, ratio = int(answer.value), []
            case _:
                continue
        for world, margin in zip(worlds, margins, strict=True):
            rules = world.rules()
            weights = projected(np.minimum(1.0, density * np.exp(-rate * margin)), density)
            errors = (rules != world.signs) @ weights
            ratio.append(float(log_chances(-errors, scale)[chosen]))
            margin += rules[chosen] * world.signs
        found.append(Choice(RULES, ratio[0] - ratio[1]))
    return found


def projected(measure: np.ndarray, density: float) -> np.ndarray:
    """Return the smooth weights: min(cap, a m), sum 1, cap = 1 / (kappa n) (section 2.1)."""
    cap = 1 / (density * len(measure))
    if measure.sum() >= density * len(measure):
        return measure / measure.sum()
    low, high = 1.0, 1 / measure.min()
    for _ in range(100):  # the sum of min(1, c m) rises with c: halve where it is kappa n
        middle = (low + high) / 2
        small = np.minimum(1.0, middle * measure).sum() < density * len(measure)
        low, high = (middle, high) if small else (low, middle)
    return np.minimum(1.0, high * measure) * cap


CASES = {
    **canary_cases("lazybb-1r"),
    "dp-one-rule": against_the_odds_of_a_rule,
    "lazybb-1r": against_the_odds,
    "lazybb-1r-approx": against_the_odds,
    "lazybb-topdown": against_the_odds_of_labels,
    "lazybb-topdown-approx": against_the_odds_of_labels,
    "lazybb-topdown-2022-code": balanced,
    "lazybb-1r/boosted": boosted,
    "lazybb-topdown/boosted": boosted,
    "lazybb-topdown/splits": against_the_odds_of_splits,
    "lazybb-1r-approx/rounds": many_rounds,
    "lazybb-topdown-approx/rounds": many_rounds,
    f"lazybb-1r/{WHOLE}": transcript,
}
