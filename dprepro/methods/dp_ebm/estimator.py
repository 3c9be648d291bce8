"""DP-EBM: Algorithm 2 of Nori, Caruana, Bu, Shen, Kulkarni (ICML 2021).

`dprepro.methods.dp_ebm.algorithm2` has it to be read. The estimator sees noisy answers only; the
rows are the curator's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dprepro.additive.bins import FeatureBins, finest_bins
from dprepro.additive.editing import directions, make_all_monotone
from dprepro.additive.file import require_kept
from dprepro.additive.model import AdditiveClassifier, AdditiveModel, AdditiveRegressor
from dprepro.additive.shapes import noise_variance
from dprepro.data.domain import CategoricalFeature, Domain, Feature
from dprepro.estimators.base import DPEstimator, tagged
from dprepro.estimators.inputs import (
    DOMAIN,
    JOBS,
    SEED,
    FitRows,
    fitting,
    read_training_rows,
    resolve_domain_of,
)
from dprepro.methods.dp_ebm import ADJACENCY
from dprepro.methods.dp_ebm.binning import cell_edges, merge_cells, random_cuts
from dprepro.methods.dp_ebm.curator import NUMBER_OF_ROWS, DPEBMCurator
from dprepro.methods.dp_ebm.losses import LogisticLoss, Loss, SquaredLoss
from dprepro.methods.dp_ebm.queries import CellCounts, FitSettings, LeafSums, MergeCells, Steps
from dprepro.privacy.composition import TWO_PHASE_COMPOSITIONS, calibrate_two_phases
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.sensitivity import ADD_REMOVE, Adjacency, histogram_sensitivity
from dprepro.rows.partition import MAX_BINS
from dprepro.runtime.arguments import DELTA, EPSILON, INSIDE, SHARE, Integer, OneOf, OrNone, flag
from dprepro.runtime.threads import Threads

SENSITIVITIES = ("published", "sound")

_STEPS = 4096
"""Steps that are run at a time, or one epoch: memory does not follow their number."""

LEAST_RATE = 1e-6
"""Steps of a smaller learning rate would hardly reach 2^-24, the unit of the functions."""


@dataclass(eq=False, repr=False)
class _DPEBM(DPEstimator, AdditiveModel):
    """Parameters and training that the classifier and the regressor share."""

    kinds = MappingProxyType({
        "epsilon": EPSILON, "delta": DELTA, "composition": OneOf(tuple(TWO_PHASE_COMPOSITIONS)),
        "max_bins": Integer(1, MAX_BINS), "learning_rate": SHARE, "n_epochs": Integer(1),
        "max_leaves": Integer(1, MAX_BINS), "binning_share": INSIDE, "empty_first_bin": flag,
        "sensitivity": OneOf(SENSITIVITIES), "adjacency": OneOf(tuple(map(str, Adjacency))),
        "monotone": directions, "domain": OrNone(DOMAIN), "n_jobs": JOBS, "random_state": SEED,
    })  # fmt: skip

    epsilon: float = 1.0
    delta: float = 1e-6
    _: KW_ONLY
    composition: str = "gdp"
    max_bins: int = 32
    learning_rate: float = 0.01
    n_epochs: int = 300
    max_leaves: int = 3
    binning_share: float = 0.1
    empty_first_bin: bool = False
    sensitivity: str = "published"
    adjacency: str = ADJACENCY.value
    monotone: Mapping[str, str] | None = None
    domain: Domain | None = None
    n_jobs: int | None = None
    random_state: int | None = None

    def _train(self, rows: Private[FitRows], domain: Domain, loss: Loss) -> None:
        """Bin and boost: every fitted attribute but ``classes_`` and ``range_``."""
        n_steps = len(domain.features) * self.n_epochs
        noise = calibrate_two_phases(
            self.composition,
            self.epsilon,
            self.delta,
            binning_queries=len(domain.features),
            boosting_queries=n_steps,
            binning_share=self.binning_share,
        )
        self.domain_ = domain
        self.ledger_ = self._open_ledger(domain, loss)
        bins = [finest_bins(f, _inner_edges(f, self.max_bins), MAX_BINS) for f in domain.features]
        uses = [(noise.binning, len(bins)), (noise.boosting, n_steps)]
        require_kept(self, domain, bins, uses, self.monotone)
        settings = FitSettings(self.max_bins, self.learning_rate, n_steps, noise)
        with Threads(self.n_jobs) as threads:
            curator = DPEBMCurator(
                rows, domain, loss, settings, self.ledger_, self.random_state, threads
            )
            with curator:
                self._bin(curator, domain)
                self._boost(curator, loss)
        make_all_monotone(self, self.monotone)

    def _bin(self, curator: DPEBMCurator, domain: Domain) -> None:
        """Set ``bins_`` and ``bin_counts_`` (Algorithm 2, line 7)."""
        adjacency = Adjacency(self.adjacency)
        charged = histogram_sensitivity(adjacency).stated
        histograms = [
            curator.cell_counts(CellCounts(charged, 1.0, k, adjacency)).value
            for k in range(len(domain.features))
        ]
        per_bin = self._number_of_rows(curator, histograms) / self.max_bins
        self.bins_: list[FeatureBins] = []
        self.bin_counts_ = []
        for k, (feature, noisy) in enumerate(zip(domain.features, histograms, strict=True)):
            bins, bin_counts, bin_of_cell = merge_cells(feature, noisy, per_bin, self.max_bins)
            curator.tell(MergeCells(k, bin_of_cell))
            self.bins_.append(bins)
            self.bin_counts_.append(bin_counts)

    def _boost(self, curator: DPEBMCurator, loss: Loss) -> None:
        """Set the functions and their noise (lines 11 to 28)."""
        n_bins = np.array([bins.n_bins for bins in self.bins_])
        cuts = random_cuts(
            curator.public_generator, n_bins, self.n_epochs, self.max_leaves, self.empty_first_bin
        )
        query = LeafSums.of(loss, Adjacency(self.adjacency), self.learning_rate)
        n_features = n_bins.size
        together = max(1, _STEPS // n_features) * n_features
        variances = [np.zeros(size) for size in n_bins]
        for start in range(0, len(cuts), together):
            part = cuts[start : start + together]
            boosted = curator.leaf_sums(query, Steps(part, self.max_leaves, self.bin_counts_))
            inner, scales = part[:, : self.max_leaves - 1], boosted.scales
            for k, counts in enumerate(self.bin_counts_):
                of_feature = inner[k::n_features], scales[k::n_features]
                variances[k] = noise_variance(*of_feature, counts, variances[k])
        self.shape_noise_ = [loss.unit * np.sqrt(np.maximum(v, 0.0)) for v in variances]
        self._set_shapes(
            [loss.unit * shape for shape in boosted.shapes], loss.offset + loss.unit * loss.start
        )

    def _number_of_rows(self, curator: DPEBMCurator, histograms: list[np.ndarray]) -> float:
        """Return n where it is public; else the mean of the histograms' noisy totals."""
        if self.adjacency != ADD_REMOVE:
            return curator.number_of_rows()
        return max(1.0, float(np.mean([noisy.sum() for noisy in histograms])))

    def _open_ledger(self, domain: Domain, loss: Loss) -> Ledger:
        counted = self.adjacency != ADD_REMOVE
        return self._new_ledger(
            Adjacency(self.adjacency),
            [
                NUMBER_OF_ROWS if counted else "that there are at least two rows",
                "names, types and number of features",
                domain.is_public and "bounds, categories and target range or labels",
            ],
            gaps=[] if loss.gap is None else [loss.gap],
        )

    def _check_together(self) -> None:
        if self.learning_rate < LEAST_RATE:
            raise ValueError(
                f"learning_rate must be at least {LEAST_RATE:g}, got {self.learning_rate!r}: steps "
                "would be rounded away"
            )


def _inner_edges(feature: Feature, max_bins: int) -> np.ndarray:
    """Return what can be a cut of a number, float64; of categories none."""
    if isinstance(feature, CategoricalFeature):
        return np.empty(0)
    return cell_edges(feature, max_bins)[1:-1]


@tagged(poor_score=True)
class DPEBMClassifier(_DPEBM, AdditiveClassifier):
    """Differentially private explainable boosting for binary labels.

    Formal guarantee: (epsilon, delta)-DP under the stated adjacency, given a public domain. A row
    lies in one cell of each histogram. It adds a residual y - sigmoid(F(x)) in [-1, 1] to one leaf
    of each step. So each of the K + K E answers has L2 sensitivity 1 under zero-out, times the
    learning rate for a step; `dprepro.privacy.sensitivity` has the other relations.

    With ``sensitivity="sound"`` the sensitivity of a step is the largest residual that the
    functions released so far allow to any row. The noise shrinks in the same proportion. So the
    noise multiplier of every step is the same, whatever was released before, and the composition is
    the same.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    composition : {"gdp", "classic", "classic-boosting", "joint"}
        How the noise is calibrated: Theorem 5 ("gdp") or Theorem 2 ("classic") of the paper for
        each phase; Theorem 5 for binning and Theorem 2 for boosting ("classic-boosting"); or
        Theorem 5 once for both phases ("joint"), which needs the least noise.
    max_bins : int
        Numeric features start from ``2 * max_bins`` cells; bins aim at n / max_bins rows.
    learning_rate, n_epochs, max_leaves
        eta, E, and the leaves (random cuts plus one) of each step.
    binning_share : float
        Share of epsilon that goes to the histograms; delta is halved.
    empty_first_bin : bool
        Draw cuts as the authors' library did in 2021, where every feature had one more bin, for
        missing values, before its first; see `random_cuts`. At most 255 bins.
    sensitivity : {"published", "sound"}
        The bound that scales the noise of the leaf sums: the paper's, or the one described above.
        For regression see `DPEBMRegressor`.
    adjacency : {"zero-out", "add/remove-one", "replace-one"}
        The neighbouring relation. Zero-out is add/remove-one with the number of rows public.
    monotone : dict of str or None
        Features whose functions are made "increasing" or "decreasing" after the fit. This costs no
        budget; see `dprepro.additive.editing`.
    domain : Domain or None
        The public domain. None reads it from the training rows, with a warning.
    n_jobs : int or None
        Number of threads that share the rows; -1 means one for each processor. The
        model is the same for any number.
    random_state : int or None
        None seeds the noise from the operating system. An integer makes the fit repeatable: this
        is for experiments only, and the ledger says so.

    Attributes
    ----------
    ledger_ : Ledger
        Every noisy answer, what was taken as public, and the spent epsilon.
    domain_ : Domain
        The domain used.
    bins_, shape_functions_, shape_noise_, bin_counts_, intercept_
        See `AdditiveModel`; the counts are noisy and may be published.

    Raises
    ------
    ValueError
        On parameters out of range, infinite values, or values and labels that the domain rules
        out; without a public domain on other than two classes.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dprepro.data.domain import Domain, NumericFeature
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = X[["mean radius", "mean texture"]]
    >>> domain = Domain((NumericFeature("mean radius", 0, 40),
    ...                  NumericFeature("mean texture", 0, 50)), ("malignant", "benign"))
    >>> model = DPEBMClassifier(epsilon=4, domain=domain, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.8
    True
    """

    @fitting
    def fit(self, X: Any, y: Any) -> DPEBMClassifier:
        """Fit to X (n, K) and y (n,), the domain's labels or their codes.

        Without a public domain both labels have to occur.

        X can also be a table that is read in chunks: a path, or a dataset of pyarrow. Then y is the
        name of its target column; see `read_training_rows`.
        """
        rows = read_training_rows(self, X, y, self.domain, "binary", in_chunks=True)
        domain = resolve_domain_of(self, rows, "binary")
        self._train(rows, domain, LogisticLoss(adaptive=self.sensitivity == "sound"))
        return self


@tagged(poor_score=True)
class DPEBMRegressor(_DPEBM, AdditiveRegressor):
    """Differentially private explainable boosting for regression.

    ``sensitivity="published"`` has the paper's gap: Theorem 6 bounds a row's part in a leaf sum by
    the label range R, but the part is y - F(x), and neither y (not centred) nor F is bounded by R.
    The noise has the published size; the ledger names the gap.

    ``sensitivity="sound"`` starts from the midpoint of the public target range [a, b] and clips
    residuals to +-R/2, so that no row can move a leaf sum by more than R/2: the guarantee holds,
    with half the noise, at the price of a Huber-like bias where |y - F(x)| > R/2. Predictions are
    clipped to [a, b].

    Parameters, attributes and errors are those of `DPEBMClassifier`. Targets are clipped to the
    domain's target range.

    Examples
    --------
    >>> from dprepro.data.domain import Domain, NumericFeature
    >>> X = np.random.default_rng(0).uniform(size=(5_000, 1))
    >>> domain = Domain((NumericFeature("x", 0, 1),), target=(0, 1))
    >>> model = DPEBMRegressor(sensitivity="sound", domain=domain, random_state=0).fit(X, X[:, 0])
    >>> model.score(X, X[:, 0]) > 0.8
    True
    """

    @fitting
    def fit(self, X: Any, y: Any) -> DPEBMRegressor:
        """Fit to X (n, K) and targets y (n,).

        X can also be a table that is read in chunks: a path, or a dataset of pyarrow. Then y is the
        name of its target column; see `read_training_rows`.
        """
        rows = read_training_rows(self, X, y, self.domain, "regression", in_chunks=True)
        domain = resolve_domain_of(self, rows, "regression")
        sound = self.sensitivity == "sound"
        loss = SquaredLoss.sound(domain) if sound else SquaredLoss.published(domain)
        self._train(rows, domain, loss)
        self.range_ = loss.bounds if sound else None
        return self
