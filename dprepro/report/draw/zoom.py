"""The methods worth a closer look, and the range of a panel that shows them alone."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from dprepro.report.draw.curves import Curve, Panel, Point

# Curves are good within this share of the way from the best to the worst: a closer look at them is
# at least five times closer.
_GOOD = 0.2
_FEWEST = 2


@dataclass(frozen=True)
class Zoom:
    """The curves of a panel that are good, the others, and the range of the good ones."""

    good: tuple[Curve, ...]
    others: tuple[Curve, ...]
    lowest: float
    highest: float


def zoom_of(panel: Panel) -> Zoom | None:
    """Return what a closer look shows; None where the whole panel shows it as well.

    A curve is good if the median of its means is within a fifth of the way from the best median to
    the worst mean of the panel. The range holds those of their means that are as near.
    """
    levels = {curve: _median(curve) for curve in panel.curves}
    if len(levels) <= _FEWEST:
        return None
    sign = 1.0 if panel.metric.higher_is_better else -1.0
    scaled = {curve: sign * _scale(panel, level) for curve, level in levels.items()}
    everything = [sign * _scale(panel, point.mean) for point in panel.points]
    best, span = max(scaled.values()), max(everything) - min(everything)
    good = tuple(c for c in panel.curves if scaled[c] >= best - _GOOD * span)
    if len(good) < _FEWEST:
        return None
    means = [p.mean for c in good for p in (*c.measured, *c.published)]
    near = [m for m in means if sign * _scale(panel, m) >= best - _GOOD * span]
    lowest, highest = min(near), max(near)
    if lowest == highest:
        return None
    return Zoom(good, tuple(c for c in panel.curves if c not in good), lowest, highest)


def _median(curve: Curve) -> float:
    points: tuple[Point, ...] = curve.measured or curve.published
    private = [point.mean for point in points if math.isfinite(point.epsilon)]
    return statistics.median(private or [point.mean for point in points])


def _scale(panel: Panel, mean: float) -> float:
    return math.log(mean) if panel.is_logarithmic else mean
