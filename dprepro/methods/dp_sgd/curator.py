"""The curator of DP-SGD: rows and samples stay here, noisy sums of clipped gradients come out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dprepro.data.domain import Domain
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_sgd.inputs import LongRows
from dprepro.methods.dp_sgd.network import (
    ERROR_UNIT,
    GRADIENT_UNIT,
    TARGET_SPAN,
    Network,
    clipped_sum,
    label_errors,
    number_errors,
)
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NumberedGaussianMechanism
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import NoisyAnswer, Query
from dprepro.privacy.sensitivity import ADD_REMOVE, Sensitivity


@dataclass(frozen=True, eq=False)
class GradientSum(Query):
    """The sum of the clipped gradients of a sample's rows.

    Attributes
    ----------
    step
        Its number: each step is asked about once.
    network
        Where gradients are taken.
    clip
        The largest norm of a row's gradient, taken over all weights.
    """

    step: int
    network: Network
    clip: float

    @property
    def enforced(self) -> float:
        """A row that comes or goes brings its clipped gradient along; see `clipped_sum`."""
        return self.clip


@dataclass(frozen=True)
class Noise:
    """How rows are sampled, and the noise.

    Attributes
    ----------
    multiplier
        Standard deviation of the noise over the clipping norm.
    sampling, steps
        How likely a row is in a sample, and how many samples there are.
    clip
        See `GradientSum`.
    """

    multiplier: float
    sampling: float
    steps: int
    clip: float


class ExactGradients:
    """Rows and targets, and sums of their gradients without noise.

    Parameters
    ----------
    inputs : int64 (n, columns)
        As `LongRows.encode` returns them.
    targets : (n,)
        Codes of labels; or numbers, where `target` gives their public range.
    target
        None for labels.
    """

    def __init__(
        self, inputs: sparse.csr_matrix, targets: np.ndarray, target: tuple[float, float] | None
    ) -> None:
        self._inputs, self._is_labels = inputs, target is None
        self._targets = _whole_targets(targets, target)

    def __len__(self) -> int:
        return len(self._targets)

    def sum(self, query: GradientSum, rows: np.ndarray) -> np.ndarray:
        """Return the sum over some rows, int64 (P,), in units of `GRADIENT_UNIT`.

        `rows` is bool (n,); there may be none.
        """
        at = np.flatnonzero(rows)
        inputs, targets = self._inputs[at], self._targets[at]
        hidden = query.network.hidden(inputs)
        errors_of = label_errors if self._is_labels else number_errors
        errors = errors_of(query.network.scores(hidden), targets)
        return clipped_sum(query.network, inputs, hidden, errors, query.clip)


class DPSGDCurator(Curator):
    """Answers once a step, about the gradients of another sample of the rows.

    Parameters
    ----------
    rows
        As `read_training_rows` returns them.
    domain, knots
        See `LongRows`.
    target
        See `ExactGradients`.
    ledger, seed
        See `Curator`.
    """

    relations = frozenset({ADD_REMOVE})

    def __init__(
        self,
        rows: Private[Rows],
        domain: Domain,
        knots: int,
        target: tuple[float, float] | None,
        ledger: Ledger,
        seed: int | None,
    ) -> None:
        super().__init__(ledger, seed, domain.observed)
        given = rows.open()
        inputs = LongRows(domain, knots).encode(given.frame)
        self._exact = Private(ExactGradients(inputs, given.targets, target))

    def enter(self, noise: Noise, weights: int, budget: PrivacyBudget) -> None:
        """Enter the noise of all steps, each an answer of so many numbers.

        Raises
        ------
        BudgetError
            If they spend more than the ledger states.
        """
        self._sampling = noise.sampling
        self._uses = NumberedGaussianMechanism(
            self._source,
            (noise.steps, weights),
            releases="sum of a sample's clipped gradients, each step",
            noise_multiplier=noise.multiplier,
            sensitivity=Sensitivity(noise.clip, 2 * noise.clip),
            uses=noise.steps,
            budget=budget,
            sampling=noise.sampling,
        )
        self._require_budget()

    def answer(self, query: GradientSum) -> NoisyAnswer:
        """Return the noisy sum over a sample, float64 (P,). Which rows it has stays secret.

        Raises
        ------
        BudgetError
            If the step was asked about before, or is not in the ledger.
        """
        exact = self._exact.open()
        sampled = self._source.sampler.sample(len(exact), self._sampling)
        total = exact.sum(query, sampled)
        return self._announce(query, self._uses.answer(query.step, total, query, GRADIENT_UNIT))


def _whole_targets(targets: np.ndarray, bounds: tuple[float, float] | None) -> np.ndarray:
    """Return codes of labels, or numbers in `TARGET_SPAN` in units of `ERROR_UNIT`, int64 (n,)."""
    if bounds is None:
        return np.asarray(targets).astype(np.int64)
    low, high = bounds
    share = (np.asarray(targets, dtype=np.float64) - low) / ((high - low) or 1.0)
    scaled = TARGET_SPAN * np.clip(share * 2 - 1, -1.0, 1.0)
    whole: np.ndarray = np.rint(scaled / ERROR_UNIT).astype(np.int64)
    return whole
