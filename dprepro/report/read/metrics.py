"""The metrics: their headings, which way is better, and how close is close enough."""

from __future__ import annotations

from dataclasses import dataclass

from dprepro.errors import DpreproError, nearest
from dprepro.published.published import PublishedCell

# Where a document prints no standard deviation we do not know how many runs its figure stands
# for: the fixed part of the tolerance doubles, and our own standard deviation takes its place.
SINGLE_RUN_FACTOR = 2.0


@dataclass(frozen=True)
class Tolerance:
    """How far a reproduced mean may lie from the printed one: the largest of the terms.

    Attributes
    ----------
    absolute
        In units of the metric.
    relative
        As a share of the printed mean.
    sds
        In printed standard deviations over splits.
    """

    absolute: float = 0.0
    relative: float = 0.0
    sds: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Tolerance:
        """Read ``"0.01,2sd"`` (absolute, standard deviations) or ``"5%,2sd"`` (relative).

        Raises
        ------
        DpreproError
            If a term is none of NUMBER, NUMBER% and NUMBERsd, or is negative.
        """
        terms = {"absolute": 0.0, "relative": 0.0, "sds": 0.0}
        for term in text.split(","):
            field, value = _term(term.strip(), text)
            terms[field] = value
        return cls(**terms)

    def width(self, cell: PublishedCell, measured_sd: float | None) -> float:
        """Return the largest difference from `cell` that still counts as reproduced.

        Never less than half a unit of the last printed digit: a printed 0.004 may stand for
        anything from 0.0035 to 0.0045.
        """
        single_run = cell.std is None
        factor = SINGLE_RUN_FACTOR if single_run else 1.0
        sd = measured_sd if single_run else cell.std
        return max(
            factor * self.absolute,
            factor * self.relative * abs(cell.mean),
            self.sds * (sd or 0.0),
            cell.half_unit,
        )

    def __str__(self) -> str:
        terms = [
            f"{self.absolute:g}" if self.absolute else "",
            f"{100 * self.relative:g} %" if self.relative else "",
            f"{self.sds:g} sd" if self.sds else "",
        ]
        return "max(" + ", ".join(term for term in terms if term) + ")"


def _term(term: str, text: str) -> tuple[str, float]:
    for ending, field, unit in (("sd", "sds", 1.0), ("%", "relative", 0.01), ("", "absolute", 1.0)):
        if term.endswith(ending):
            try:
                value = float(term.removesuffix(ending)) * unit
            except ValueError:
                break
            if 0 <= value < float("inf"):
                return field, value
            break
    raise DpreproError(
        f"tolerance {text!r}: {term!r} is not a term. Allowed, separated by commas: NUMBER "
        "(units of the metric), NUMBER% (of the printed mean), NUMBERsd (printed standard "
        "deviations), none negative; for example 0.01,2sd"
    )


@dataclass(frozen=True)
class Metric:
    """A metric of the journals. `decimals` is None where they depend on the values' scale."""

    name: str
    title: str
    higher_is_better: bool
    tolerance: Tolerance
    decimals: int | None = None


# THE tolerances: everything else reads them from here, and `--tolerance` overrides them.
_SCORE = Tolerance.parse("0.01,2sd")
_LOSS = Tolerance.parse("5%,2sd")
# One feature more or less, one point of a percentage.
_COUNT = Tolerance.parse("1,2sd")

METRICS = {
    metric.name: metric
    for metric in (
        Metric("auc", "AUROC", True, _SCORE, decimals=3),
        Metric("rmse", "RMSE", False, _LOSS),
        Metric("accuracy", "Accuracy", True, _SCORE, decimals=3),
        Metric("log_loss", "Log loss", False, _LOSS, decimals=3),
        Metric("mae", "Mean absolute error", False, _LOSS),
        Metric("r2", "R²", True, _SCORE, decimals=3),
        Metric("n_features", "Features used", False, _COUNT, decimals=1),
        Metric("pct_features", "Features used (%)", False, _COUNT, decimals=2),
        Metric("n_columns", "Columns used", False, _COUNT, decimals=1),
        Metric("rademacher_bound", "Proved accuracy (Rademacher)", True, _SCORE, decimals=3),
    )
}


def find_metric(name: str) -> Metric:
    """Return the metric called `name`; `DpreproError` with the nearest match if there is none."""
    if name not in METRICS:
        raise DpreproError(
            f"unknown metric {name!r}{nearest(name, list(METRICS)) or '.'} "
            f"Allowed: {', '.join(METRICS)}"
        )
    return METRICS[name]


def tolerances(overrides: list[str] | None = None) -> dict[str, Tolerance]:
    """Return the tolerance of each metric; `overrides` are like ``"auc=0.02,2sd"``.

    Raises
    ------
    DpreproError
        If an override is not METRIC=TERMS.
    """
    result = {name: entry.tolerance for name, entry in METRICS.items()}
    for override in overrides or []:
        name, separator, terms = override.partition("=")
        if not separator:
            raise DpreproError(
                f"tolerance {override!r} is not METRIC=TERMS; for example auc=0.02,2sd"
            )
        result[find_metric(name.strip()).name] = Tolerance.parse(terms)
    return result
