"""Metrics and privacy levels: headings, which way is better, which difference nobody would mind."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dprepro.experiment.metrics import is_error, is_scorer, recorded_name, scorer_names
from dprepro.papers.published_cell import PublishedCell
from dprepro.privacy.budget import PrivacyBudget
from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.text import MOST_NAMED, in_short


@dataclass(frozen=True)
class Margin:
    """How far two means may lie apart that a reader takes for the same: the larger of two terms.

    `absolute` is in units of the metric, `relative` a share of the printed mean.
    """

    absolute: float = 0.0
    relative: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Margin:
        """Read ``"0.005"`` (units of the metric), ``"2%"`` (of the printed mean), or both.

        Raises DpreproError if a term is neither NUMBER nor NUMBER%, is negative, or no term is
        positive.
        """
        terms = {"absolute": 0.0, "relative": 0.0}
        for term in text.split(","):
            field, value = _term(term.strip(), text)
            terms[field] = value
        if not any(terms.values()):
            raise DpreproError(f"margin {text!r}: at least one term must be positive, as in 0.005")
        return cls(**terms)

    def at(self, mean: float) -> float:
        """Return the margin about a mean, in units of the metric."""
        return max(self.absolute, self.relative * abs(mean))

    def width(self, cell: PublishedCell) -> float:
        """Return the margin at `cell`, in units of its metric.

        Never less than half a unit of the last printed digit: a printed 0.004 may stand for
        anything from 0.0035 to 0.0045.
        """
        return max(self.at(cell.mean), cell.half_unit)

    def __str__(self) -> str:
        absolute = f"{self.absolute:g}" if self.absolute else ""
        relative = f"{100 * self.relative:g} %" if self.relative else ""
        return " or ".join(filter(None, (absolute, relative)))


def _term(term: str, text: str) -> tuple[str, float]:
    for ending, field, unit in (("%", "relative", 0.01), ("", "absolute", 1.0)):
        if term.endswith(ending):
            try:
                value = float(term.removesuffix(ending)) * unit
            except ValueError:
                break
            if 0 <= value < float("inf"):
                return field, value
            break
    raise DpreproError(
        f"margin {text!r}: {term!r} is not a term. Allowed, separated by commas: NUMBER (units of "
        "the metric) and NUMBER% (of the printed mean), none negative; for example 0.005 or 2%"
    )


@dataclass(frozen=True)
class Metric:
    """A metric of the journals. `decimals` is None where they depend on the values' scale."""

    name: str
    title: str
    higher_is_better: bool
    margin: Margin
    decimals: int | None = None

    def margin_between(self, one: float, other: float) -> float:
        """Return the difference of two means that a reader would not mind, in units of either."""
        return max(self.margin.absolute, self.margin.relative * (abs(one) + abs(other)) / 2)


# THE margins: everything else reads them from here, and `--margin` overrides them. A reader who
# chooses a method by such a table would not mind a difference of this size (docs/verdicts.md).
_SCORE = Margin.parse("0.005")
_LOSS = Margin.parse("2%")
# A probability that is off by half a percent. It is near 0, so no share of it would do.
_CALIBRATION = Margin.parse("0.005")
# One feature more or less, one point of a percentage.
_COUNT = Margin.parse("1")

METRICS = {
    metric.name: metric
    for metric in (
        Metric("auc", "AUROC", True, _SCORE, decimals=3),
        Metric("rmse", "RMSE", False, _LOSS),
        Metric("accuracy", "Accuracy", True, _SCORE, decimals=3),
        Metric("log_loss", "Log loss", False, _LOSS, decimals=3),
        Metric("mae", "Mean absolute error", False, _LOSS),
        Metric("r2", "R²", True, _SCORE, decimals=3),
        Metric("average_precision", "Average precision", True, _SCORE, decimals=3),
        Metric("brier_score", "Brier score", False, _LOSS),
        Metric("calibration_error", "Expected calibration error", False, _CALIBRATION),
        Metric("n_features", "Features used", False, _COUNT, decimals=1),
        Metric("pct_features", "Features used (%)", False, _COUNT, decimals=2),
        Metric("n_columns", "Columns used", False, _COUNT, decimals=1),
        Metric("rademacher_bound", "Proved accuracy (Rademacher)", True, _SCORE, decimals=3),
    )
}


# Records of 0.2.0 and before lack these, and what scikit-learn's scorers give.
_LATER = {"average_precision", "brier_score", "calibration_error"}


def find_metric(name: str) -> Metric:
    """Return the metric called `name` in records or by scikit-learn.

    Raises DpreproError if there is none; the message has the nearest match.
    """
    recorded = recorded_name(name)
    if recorded in METRICS:
        return METRICS[recorded]
    if is_scorer(recorded):
        return _of_scorer(recorded)
    scorers = sorted({*scorer_names("binary"), *scorer_names("regression")} - {*METRICS})
    raise DpreproError(
        f"unknown metric {name!r}{nearest(name, [*METRICS, *scorers]) or '.'} "
        f"Allowed: {', '.join(METRICS)}, and scikit-learn's scorers: "
        f"{in_short(scorers, MOST_NAMED)}"
    )


def _of_scorer(name: str) -> Metric:
    """Return what is said of a scorer; the margin is that of our errors, or of our scores."""
    title = name.replace("_", " ")
    is_loss = is_error(name)
    return Metric(name, title[0].upper() + title[1:], not is_loss, _LOSS if is_loss else _SCORE)


def how_to_record(metric: str) -> str:
    """Return what to do about results that were recorded without a metric.

    Nothing about one that every version records where it can: then it cannot be had.
    """
    if metric in METRICS and metric not in _LATER:
        return ""
    return (
        f"Records of earlier runs have fewer metrics: with `metrics: [{metric}]` in its config, "
        "`dprepro run CONFIG` runs them again"
    )


class _Margins(dict[str, Margin]):
    """Margins by metric; of one of scikit-learn's scorers, the margin of its kind."""

    def __missing__(self, name: str) -> Margin:
        return find_metric(name).margin


def margins(overrides: list[str] | None = None) -> dict[str, Margin]:
    """Return the margin of each metric; `overrides` are like ``"auc=0.01"``.

    Raises DpreproError if an override is not METRIC=TERMS.
    """
    result = _Margins({name: entry.margin for name, entry in METRICS.items()})
    for override in overrides or []:
        name, separator, terms = override.partition("=")
        if not separator:
            raise DpreproError(f"margin {override!r} is not METRIC=TERMS; for example auc=0.01")
        result[find_metric(name.strip()).name] = Margin.parse(terms)
    return result


NON_PRIVATE = "Non-Private"


def level(epsilon: float) -> str:
    """Return the heading of a level's row or column: ``"0.5"``, or ``"Non-Private"``."""
    return NON_PRIVATE if math.isinf(epsilon) else f"{epsilon:g}"


def level_in_words(epsilon: float) -> str:
    """Return a level inside a sentence: ``"epsilon 0.5"``, or ``"non-private"``."""
    return str(PrivacyBudget(epsilon, 0.0))


def with_level(title: str, epsilon: float) -> str:
    """Return the title of a curve or model at a level: ``"EBM"``, or ``"DP-EBM, ε=0.5"``."""
    return PrivacyBudget(epsilon, 0.0).name(title)
