"""Shape functions as plain numbers: edges, values, counts, and how much noise is in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dprepro.additive.bins import BETWEEN, FeatureBins
from dprepro.data.domain import NumericFeature

if TYPE_CHECKING:
    from dprepro.additive.model import AdditiveModel


class Side(NamedTuple):
    """One side of a pair: the name of the feature, and a name for each group of its bins."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Shape:
    """The function of a feature or of a pair, with what is known about it: post-processing.

    Attributes
    ----------
    name
        The feature.
    labels
        A name for each of the B bins.
    edges
        Numeric: float64 (C + 1,), the borders of the first C bins; a bin behind them, if there is
        one, is of missing values. Categorical: None.
    values, released
        float64 (B,): the function, and what it was before any edit. Of S classes (B, S): a function
        of each.
    counts
        float64 (B,): rows a bin, noisy where the model is private.
    noise
        As `released`: standard deviation of the noise in it, or None where unknown.
    sides
        Of a pair of features: their names, and the names of the groups on either side. The bins are
        its cells, row by row. Else None.
    classes
        Of a model of several classes what these are called; else none.
    """

    name: str
    labels: tuple[str, ...]
    edges: np.ndarray | None
    values: np.ndarray
    released: np.ndarray
    counts: np.ndarray
    noise: np.ndarray | None
    sides: tuple[Side, Side] | None = None
    classes: tuple[str, ...] = ()

    def of_class(self, place: int) -> Shape:
        """Return the function of one of several classes."""
        noise = None if self.noise is None else self.noise[:, place]
        values, released = self.values[:, place], self.released[:, place]
        return replace(self, values=values, released=released, noise=noise, classes=())

    @property
    def is_edited(self) -> bool:
        """Whether the function differs from what was released."""
        return not np.array_equal(self.values, self.released)

    @property
    def densities(self) -> np.ndarray:
        """Share of the rows per unit of a numeric feature, else per bin; float64 (B,).

        The bin of missing values has no width: its density is its share.
        """
        shares: np.ndarray = self.counts / max(self.counts.sum(), np.finfo(float).tiny)
        if self.edges is None:
            return shares
        widths = np.ones(self.counts.size)
        widths[: self.edges.size - 1] = np.diff(self.edges)
        return shares / np.where(widths > 0, widths, 1.0)


def importance(shape: Shape) -> float:
    """Return the mean absolute contribution of a feature under the counts of its bins.

    Where no bin has a count, all bins weigh the same. Of several classes it is the mean over them.
    """
    counts = shape.counts if shape.counts.sum() > 0 else np.ones(shape.counts.size)
    sizes = np.abs(shape.values).reshape(counts.size, -1).mean(axis=1)
    return float(np.average(sizes, weights=counts / counts.max()))


def shapes_of(model: AdditiveModel) -> list[Shape]:
    """Return the functions of a fitted model: those of its features in their order, then pairs."""
    released: dict[str, np.ndarray] = {}
    for edit in model.edits_:
        released.setdefault(edit.feature, np.array(edit.before))
    shapes, classes = [], model.class_names if model.several_classes else ()
    for k, bins in enumerate(model.bins_):
        feature, edges = bins.feature, None
        if isinstance(feature, NumericFeature):
            edges = np.concatenate([[feature.lower], bins.cuts, [feature.upper]])
        values = model.shape_functions_[k]
        shapes.append(
            Shape(
                name=feature.name,
                labels=bins.labels,
                edges=edges,
                values=values,
                released=released.get(feature.name, values),
                counts=model.bin_counts_[k],
                noise=None if model.shape_noise_ is None else model.shape_noise_[k],
                classes=classes,
            )
        )
    names = model.term_names[len(model.bins_) :]
    for name, term in zip(names, model.pairs_, strict=True):
        sides = tuple(
            Side(str(model.bins_[k].feature.name), group_labels(model.bins_[k], groups))
            for k, groups in (
                (term.pair.first, term.pair.first_groups),
                (term.pair.second, term.pair.second_groups),
            )
        )
        values = term.values.ravel()
        shapes.append(
            Shape(
                name=name,
                labels=tuple(map(BETWEEN.join, product(sides[0].labels, sides[1].labels))),
                edges=None,
                values=values,
                released=released.get(name, values),
                counts=term.counts.ravel(),
                noise=None if term.noise is None else term.noise.ravel(),
                sides=(sides[0], sides[1]),
            )
        )
    return shapes


def group_labels(bins: FeatureBins, groups: np.ndarray) -> tuple[str, ...]:
    """Return a name for each group of a feature's bins; `groups` is that of each bin."""
    labels = []
    for group in range(int(groups.max()) + 1):
        members = np.flatnonzero(groups == group)
        names = [bins.labels[b] for b in members]
        if isinstance(bins.feature, NumericFeature):
            numbers = members[members <= bins.cuts.size]
            ends = ["-inf", *(f"{cut:.6g}" for cut in bins.cuts), "inf"]
            whole = [f"[{ends[numbers[0]]}, {ends[numbers[-1] + 1]})"] if numbers.size > 1 else []
            names = [*whole, *names[numbers.size if whole else 0 :]]
        labels.append(" or ".join(names))
    return tuple(labels)


def noise_variance(
    cuts: np.ndarray, scales: np.ndarray, counts: np.ndarray, before: np.ndarray
) -> np.ndarray:
    r"""Return how much noise one feature's function holds after more steps, given its bins.

    In step t the leaf l of a bin b gets N(0, s_t^2) / W_tl, W_tl being the leaf's noisy count
    (Nori et al. 2021, Algorithm 2, lines 16 to 18), and centring takes out the mean over the
    W = sum of all counts. Draws are independent, so what went into the centred function has

        Var f(b) = sum_t s_t^2 (1 / W_tl(b)^2 - 2 / (W_tl(b) W) + L_t / W^2),

    with L_t leaves in step t. Every term is public. Later steps see the noise of earlier ones in
    the residuals and take a part of it back, so that refits with the same bins spread by somewhat
    less (Adult and California housing at epsilon 1: 0.8 to 0.95 of it for most bins). Bins that
    other noise would have drawn elsewhere are not in it.

    Parameters
    ----------
    cuts : integers (T, C)
        First bins of the leaves after the first, ascending, of the steps on this feature. Cuts
        behind the last bin part nothing.
    scales : float64 (T,)
        Standard deviation s_t of the noise on the leaf sums.
    counts : float64 (B,)
        Noisy counts, positive. Steps have at most min(C + 1, B) leaves.
    before : float64 (B,)
        The variance that the steps before these put in: 0 at the first.

    Returns
    -------
    float64 (B,)
        Variances, in the squared unit of the function: not below 0 but for rounding.
    """
    n_bins, total = counts.size, counts.sum()
    below = np.append(0.0, np.cumsum(counts))
    inner = np.minimum(cuts[:, : n_bins - 1].astype(np.int64), n_bins)
    borders = np.column_stack([np.zeros(len(inner), int), inner, np.full(len(inner), n_bins)])
    weights = np.diff(below[borders], axis=1)
    n_leaves = (weights > 0).sum(axis=1)[:, None]
    leaf_of_bin = (inner[:, :, None] <= np.arange(n_bins)).sum(axis=1)
    own = np.take_along_axis(weights, leaf_of_bin, axis=1)
    added = scales[:, None] ** 2 * (1 / own**2 - 2 / (own * total) + n_leaves / total**2)
    # Added up row by row, from the sum so far on: the same bits however steps are parted.
    return np.asarray(np.vstack([before, added]).sum(axis=0))
