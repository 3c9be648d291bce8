"""The curator of linear regression: the rows stay here, diffprivlib's noisy products come out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from diffprivlib.models.linear_regression import _construct_regression_obj
from sklearn.utils import check_random_state

from dprepro.baselines.curator import LibraryCurator
from dprepro.baselines.linear_regression.scaling import scaled
from dprepro.estimators.inputs import Arrays
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.private import Private
from dprepro.privacy.release import Query, Release
from dprepro.privacy.sensitivity import REPLACE_ONE


@dataclass(frozen=True)
class Products(Query):
    """X'X and X'y of columns and a target that are clipped to [-bound, bound].

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
        """bound^2."""
        return self.bound**2


@dataclass(frozen=True, eq=False)
class NoisyProducts(Release):
    """The answer to `Products`: `value` is the noisy X'X, float64 (columns, columns).

    Attributes
    ----------
    of_target : float64 (columns,)
        The noisy X'y.
    """

    of_target: np.ndarray


class LinearCurator(LibraryCurator):
    """Answers once for the products of all columns and the target.

    Parameters
    ----------
    rows
        As `read_training_arrays` returns them.
    bounds
        Public bounds of the target. Those of every column are -1 and 1.
    ledger, seed, observed
        See `LibraryCurator`.

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
        super().__init__(rows, ledger, seed, observed)
        self._bounds, self._seed = bounds, seed
        self._epsilon = ledger.epsilon
        entries = library_entries(rows.open().features.shape[1], ledger.epsilon)
        for entry in entries:
            ledger.add(entry)
        self._scale = max(entry.scale for entry in entries)
        self._require_budget()

    def products(self, query: Products) -> NoisyProducts:
        """Return the library's noisy products; `scale` is that of the noisiest.

        Raises
        ------
        BudgetError
            If they were answered before.
        """
        rows = self._rows.open()
        X, y = scaled(rows.features, rows.targets, self._bounds, query.bound)
        bound = np.full(X.shape[1], math.sqrt(query.charged))
        with self._handing_over():
            # Its estimator would go on to descend without end; only the release is wanted.
            _, (_, products, gram) = _construct_regression_obj(
                X, y, bounds_X=(-bound, bound), bounds_y=(-bound[:1], bound[:1]),
                epsilon=self._epsilon, alpha=0, random_state=check_random_state(self._seed),
            )  # fmt: skip
        release = NoisyProducts(gram, query.charged * self._scale, products[:, 0])
        self._announce(query, release)
        return release


def library_entries(columns: int, epsilon: float) -> list[LedgerEntry]:
    """Return the library's releases about so many columns: equal shares of epsilon."""
    moments = (
        ("sum of squares of the target", 1.0, 1),
        ("products of columns and target", 2.0, columns),
        ("sums of squares of the columns", 1.0, columns),
        ("products of two columns", 2.0, columns * (columns - 1) // 2),
    )
    share = epsilon / sum(count for *_, count in moments)
    return [
        LedgerEntry(
            "laplace", releases, sensitivity, "L1", sensitivity / share, count,
            PrivacyBudget(share * count, 0.0),
        )
        for releases, sensitivity, count in moments
        if count
    ]  # fmt: skip
