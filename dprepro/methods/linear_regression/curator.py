"""The curator of linear regression: the rows stay here, noisy sums of products come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dprepro.estimators.inputs import Arrays
from dprepro.methods.linear_regression.products import Grid, Moments, scaled, symmetric
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NumberedUses
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import NoisyAnswer, Query
from dprepro.privacy.sensitivity import REPLACE_ONE


@dataclass(frozen=True)
class Products(Query):
    """X'X, X'y and y'y of columns and a target that are clipped to [-bound, bound].

    What is enforced and charged is the largest product of two values, which is the unit in which
    the ledger states the sensitivities: 1 of a square, and 2 of another product, whose sign can
    turn.

    Attributes
    ----------
    bound
        To which the curator clips, in units of the public bounds.
    """

    bound: float

    @property
    def enforced(self) -> float:
        """bound^2: values are rounded towards zero after they are clipped."""
        return self.bound**2


@dataclass(frozen=True, eq=False)
class NoisyProducts(NoisyAnswer):
    """The answer to `Products`: `value` is the noisy X'X, float64 (columns, columns).

    Attributes
    ----------
    of_target : float64 (columns,)
        The noisy X'y.
    target_square : float
        The noisy y'y.
    """

    of_target: np.ndarray
    target_square: float


class Share(NamedTuple):
    """Answers of one kind: what they are, the L1 sensitivity and epsilon of each, how many."""

    releases: str
    sensitivity: float
    epsilon: float
    number: int


def shares(columns: int, epsilon: float) -> list[Share]:
    """Return the answers about so many columns, in the order of `Moments`: equal shares.

    They are those of diffprivlib: epsilon over the number of all products, 1 + k + k (k + 1) / 2.
    """
    kinds = (
        ("sum of squares of the target", 1.0, 1),
        ("products of columns and target", 2.0, columns),
        ("sums of squares of the columns", 1.0, columns),
        ("products of two columns", 2.0, columns * (columns - 1) // 2),
    )
    each = epsilon / sum(count for *_, count in kinds)
    return [Share(releases, moves, each, count) for releases, moves, count in kinds]


class LinearCurator(Curator):
    """Answers once for the products of all columns and the target.

    Parameters
    ----------
    rows
        As `read_training_arrays` returns them. Their number is public.
    bounds
        Public bounds of the target. Those of every column are -1 and 1.
    ledger, seed, observed
        See `Curator`.

    Raises
    ------
    BudgetError
        If the ledger has entries that spend the budget already.
    """

    relations = frozenset({REPLACE_ONE})

    def __init__(
        self,
        rows: Private[Arrays],
        bounds: tuple[float, float],
        ledger: Ledger,
        seed: int | None,
        observed: Sequence[str],
    ) -> None:
        super().__init__(ledger, seed, observed)
        self._rows, self._bounds = rows, bounds
        columns = rows.open().features.shape[1]
        self._scales = [self._enter(share) for share in shares(columns, ledger.epsilon)]
        self._uses = NumberedUses((1,))
        self._require_budget()

    def _enter(self, share: Share) -> float:
        """Enter the noise of one kind of answer, if there are any, and return its scale."""
        if not share.number:
            return 0.0
        return self._source.enter_laplace(
            releases=share.releases,
            epsilon=share.epsilon,
            sensitivity=share.sensitivity,
            uses=share.number,
        )

    def products(self, query: Products) -> NoisyProducts:
        """Return the noisy products; `scale` is that of the noisiest.

        Noisy squares are folded at zero, as in diffprivlib: their sign is noise.

        Raises
        ------
        BudgetError
            If they were answered before.
        """
        self._uses.take((0,))
        scales = [query.charged * scale for scale in self._scales]
        rows = self._rows.open()
        grid = Grid.of(len(rows.targets), max(scales))
        X, y = scaled(rows.features, rows.targets, self._bounds, query.bound)
        exact = Moments.of(grid.whole(X), grid.whole(y))
        target_square, of_target, squares, pairs = (
            self._source.add_laplace(sums, scale, grid.unit)
            for sums, scale in zip(exact, scales, strict=True)
        )
        answer = NoisyProducts(
            value=symmetric(np.abs(squares), pairs),
            scale=max(scales),
            of_target=of_target,
            target_square=float(np.abs(target_square[0])),
        )
        self._announce(query, answer)
        return answer
