"""What means say about a claim: one rule for each kind of claim."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch

from dprepro.published.claims import (
    AheadInMost,
    Average,
    BestInAll,
    BestInMost,
    CellClaim,
    LossAtMost,
    Mean,
    NoticeableUpTo,
    Within,
    half_unit,
)
from dprepro.published.published import PublishedCell
from dprepro.report.judge.finding import Finding
from dprepro.report.judge.rounding import score_difference
from dprepro.report.levels import level
from dprepro.report.read.metrics import METRICS, Margin

_ALLOWED = 2 * math.sqrt(2)
"""Two standard errors of a difference of two means, in standard errors of one of them."""

_FLOAT_ERROR = 1e-9
"""How far a difference of printed numbers may lie from what their decimals give."""


@dataclass(frozen=True)
class Means:
    """The means of the cells that a claim speaks of, measured or as printed.

    `is_whole` says that no cell of the claim is left out. `errors` are the standard errors of
    measured means, where more than one split tells.
    """

    values: Mapping[PublishedCell, float]
    is_whole: bool
    errors: Mapping[PublishedCell, float] = field(default_factory=dict)
    _index: dict[tuple[str, str, float], float] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for cell, value in self.values.items():
            self._index[cell.dataset, cell.method, cell.epsilon] = value

    def get(self, dataset: str, method: str, epsilon: float) -> float | None:
        """Return the mean of one cell, or None."""
        return self._index.get((dataset, method, epsilon))

    def settings(self) -> list[PublishedCell]:
        """Return one cell for each dataset and epsilon."""
        return list({(cell.dataset, cell.epsilon): cell for cell in self.values}.values())


@singledispatch
def assess(
    claim: CellClaim, means: Means, printed: Means, margins: Mapping[str, Margin]
) -> Finding | None:
    """Return what `means` say about `claim`; None where too few are there to say anything.

    Parameters
    ----------
    printed
        The printed means of the same cells.
    margins
        By metric, how far two means may lie apart that count as the same.
    """
    raise TypeError(f"no rule for claims of the kind {type(claim).__name__}")


@assess.register
def _average(
    claim: Average, means: Means, printed: Means, margins: Mapping[str, Margin]
) -> Finding | None:
    """Hold each average against the sentence, or against the printed cells where some are out."""
    averages, holds, words = {}, [], []
    for title, figure in claim.figures.items():
        cells = [c for c in means.values if c.method in figure.methods]
        if not cells:
            continue
        averages[title] = statistics.fmean(means.values[c] for c in cells)
        expected = statistics.fmean(printed.values[c] for c in cells)
        if means.is_whole:
            expected = float(figure.value)
        width = _average_width(figure, cells, means, margins)
        holds.append(abs(averages[title] - expected) <= width)
        words.append(f"{title} {averages[title]:.3f}")
    return Finding(all(holds), averages, ", ".join(words)) if holds else None


def _average_width(
    figure: Mean, cells: Sequence[PublishedCell], means: Means, margins: Mapping[str, Margin]
) -> float:
    """Return how far an average may lie from the printed one.

    The margin of a cell, or two standard errors of the difference of two such averages: datasets
    are independent, two methods on the same splits are not.
    """
    by_dataset: dict[str, list[float]] = {}
    for cell in cells:
        by_dataset.setdefault(cell.dataset, []).append(means.errors.get(cell, 0.0))
    error = math.hypot(*map(statistics.fmean, by_dataset.values())) / len(by_dataset)
    margin = margins[cells[0].metric]
    mean = statistics.fmean(cell.mean for cell in cells)
    return max(
        margin.absolute, margin.relative * abs(mean), half_unit(figure.value), _ALLOWED * error
    )


@assess.register
def _loss(
    claim: LossAtMost, means: Means, printed: Means, margins: Mapping[str, Margin]
) -> Finding | None:
    """Hold the largest loss against the bound, up to the rounding of its last digit."""
    losses = _leads(means, (claim.nonprivate, math.inf), (claim.method, claim.epsilon))
    if not losses:
        return None
    worst = max(losses, key=lambda dataset: losses[dataset])
    bound = float(claim.bound)
    holds = losses[worst] <= bound + half_unit(claim.bound)
    return Finding(
        holds,
        losses,
        f"largest loss {losses[worst]:.3f} ({worst})",
        is_rounded=holds and losses[worst] > bound + _FLOAT_ERROR,
    )


@assess.register
def _best(
    claim: BestInAll, means: Means, printed: Means, margins: Mapping[str, Margin]
) -> Finding | None:
    """Count the settings in which the best of the methods is ahead of every rival."""
    won, lost = _settings_won(claim, means)
    behind = f"; behind on {', '.join(lost)}" if lost else ""
    total = won + len(lost)
    holds = not lost and (total == claim.settings or not means.is_whole)
    text = f"best in {won} of {total} settings{behind}"
    return Finding(holds, {"won": won, "settings": total}, text) if total else None


@assess.register
def _best_in_most(
    claim: BestInMost, means: Means, printed: Means, margins: Mapping[str, Margin]
) -> Finding | None:
    """Count the same settings; more than half must be won."""
    won, lost = _settings_won(claim, means)
    total = won + len(lost)
    behind = f"; behind on {', '.join(lost)}" if lost else ""
    text = f"best in {won} of {total} settings{behind}"
    return Finding(2 * won > total, {"won": won, "settings": total}, text) if total else None


def _settings_won(claim: BestInAll | BestInMost, means: Means) -> tuple[int, list[str]]:
    """Return how many settings one of the methods wins, and the names of the others."""
    won, lost = 0, []
    for cell in means.settings():
        ours, rivals = (
            [m for m in found if m is not None]
            for found in (
                [means.get(cell.dataset, name, cell.epsilon) for name in names]
                for names in (claim.methods, claim.rivals)
            )
        )
        if not (ours and rivals):
            continue
        if max(min(_lead(cell.metric, own, other) for other in rivals) for own in ours) > 0:
            won += 1
        else:
            lost.append(f"{cell.dataset} at ε={level(cell.epsilon)}")
    return won, lost


@assess.register
def _noticeable(
    claim: NoticeableUpTo, means: Means, printed: Means, margins: Mapping[str, Margin]
) -> Finding | None:
    """Compare the share of settings with a noticeable difference below and above the epsilon."""
    up_to: list[bool] = []
    above: list[bool] = []
    first, second = claim.methods
    for cell in means.values:
        other = means.get(cell.dataset, second, cell.epsilon)
        if cell.method == first and other is not None:
            width = margins[cell.metric].width(cell)
            found = up_to if cell.epsilon <= claim.epsilon else above
            found.append(abs(means.values[cell] - other) > width)
    if not (up_to and above):
        return None
    share_up_to, share_above = statistics.fmean(up_to), statistics.fmean(above)
    return Finding(
        share_above < 0.5 and share_up_to > share_above,
        {"share_up_to": share_up_to, "share_above": share_above},
        f"noticeable in {sum(up_to)} of {len(up_to)} settings up to ε={level(claim.epsilon)}, "
        f"in {sum(above)} of {len(above)} above",
    )


@assess.register
def _ahead(
    claim: AheadInMost, means: Means, printed: Means, margins: Mapping[str, Margin]
) -> Finding | None:
    """Count the datasets on which the method is ahead without privacy."""
    leads = _leads(means, (claim.method, math.inf), (claim.rival, math.inf))
    if not leads:
        return None
    ahead = [dataset for dataset, lead in leads.items() if lead > 0]
    names = f" ({', '.join(ahead)})" if ahead else ""
    return Finding(
        2 * len(ahead) > len(leads),
        {"ahead": len(ahead), "datasets": len(leads)},
        f"ahead on {len(ahead)} of {len(leads)} datasets{names}",
    )


@assess.register
def _within(
    claim: Within, means: Means, printed: Means, margins: Mapping[str, Margin]
) -> Finding | None:
    """Hold each mean against the range, up to rounding and sampling error.

    The document's own means lie in the range and have a sampling error as well, which it does not
    print. It is taken to be as large as ours: two standard errors of a difference are allowed.
    """
    if not means.values:
        return None
    low = -math.inf if claim.low is None else float(claim.low)
    high = math.inf if claim.high is None else float(claim.high)
    below = 0.0 if claim.low is None else half_unit(claim.low)
    above = 0.0 if claim.high is None else half_unit(claim.high)
    found, outside, is_rounded = {}, [], False
    for cell, mean in means.values.items():
        name, width = (
            f"{cell.method} ε={level(cell.epsilon)}",
            _ALLOWED * means.errors.get(cell, 0.0),
        )
        found[name] = mean
        if not low - below - width <= mean <= high + above + width:
            outside.append(name)
        elif not low - width - _FLOAT_ERROR <= mean <= high + width + _FLOAT_ERROR:
            is_rounded = True
    text = f"{min(found.values()):.4g} to {max(found.values()):.4g}"
    text += f"; outside: {', '.join(outside)}" if outside else ""
    return Finding(not outside, found, text, is_rounded=is_rounded and not outside)


def _leads(means: Means, own: tuple[str, float], other: tuple[str, float]) -> dict[str, float]:
    """Return by dataset how far one (method, epsilon) is ahead of another.

    Datasets for which one of the two has no mean are left out.
    """
    leads = {}
    for cell in means.settings():
        first, second = means.get(cell.dataset, *own), means.get(cell.dataset, *other)
        if first is not None and second is not None:
            leads[cell.dataset] = _lead(cell.metric, first, second)
    return leads


def _lead(metric: str, own: float, other: float) -> float:
    """Return how far `own` is ahead of `other`, in units of the metric; 0 if by rounding alone."""
    is_higher_better = METRICS[metric].higher_is_better
    return score_difference(own, other) if is_higher_better else score_difference(other, own)
