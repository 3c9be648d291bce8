"""No feature gets more bins than a byte can number, so that a row is in one leaf of every step."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprepro.additive.bins import MISSING, OTHER
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm import curator
from dprepro.methods.dp_ebm.binning import histogram, merge_cells, random_cuts
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm.kernel import boost
from dprepro.methods.dp_ebm.losses import LogisticLoss
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier
from dprepro.methods.dp_ebm_plus.grid import fine_cells
from dprepro.privacy.sampling import Bits, ExactSampler
from dprepro.rows.partition import MAX_BINS, recode
from tests.methods.dp_ebm.lab import Problem, boost_whole

NAMES = tuple(map(str, range(1000)))
FEATURES = tuple(CategoricalFeature(f"x{k}", NAMES) for k in range(14))


def many_categories(rows=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({f.name: pd.Categorical(rng.choice(NAMES, rows), NAMES) for f in FEATURES})
    return X, rng.integers(0, 2, rows)


def leaves_of_codes(cuts, n_bins, max_leaves):
    """Return how often a row of each code is in each leaf that is released, (codes, leaves).

    The sum of a leaf is that of the rows from its first bin on, less that of the next leaf.
    """
    n_leaves = min(max_leaves, n_bins)
    reached = np.arange(n_bins)[:, None] >= np.append(0, cuts[: n_leaves - 1].astype(int))
    return reached - np.column_stack([reached[:, 1:], np.zeros(n_bins, int)])


@pytest.mark.parametrize("max_leaves", [3, 6])
@pytest.mark.parametrize("numbers", [False, True])
def test_a_row_is_in_one_leaf_of_every_step(numbers, max_leaves, monkeypatch):
    """14 features of 1,000 categories: before, noise lifted more than 256 of them over a bin."""
    heard = []
    monkeypatch.setattr(curator, "boost", lambda *given: heard.append(given) or boost(*given))
    X, y = many_categories()
    estimator = DPEBMRegressor if numbers else DPEBMClassifier
    model = estimator(
        0.5, composition="joint", domain=Domain(FEATURES, (0.0, 1.0) if numbers else ("0", "1")),
        max_leaves=max_leaves, sensitivity="sound", random_state=0,
    ).fit(X, y)  # fmt: skip
    codes, _, given, *_ = heard[0]
    counts, n_bins = given.counts, given.n_bins
    cuts = np.concatenate([part.cuts for _, _, part, *_ in heard])
    assert len(cuts) == 14 * 300
    assert model.ledger_.gaps == []
    assert model.ledger_.spent_epsilon() <= 0.5 + 1e-6
    assert n_bins.max() == MAX_BINS
    for k, bins in enumerate(model.bins_):
        assert codes[k].max() < n_bins[k] == bins.n_bins == model.bin_counts_[k].size
        assert (counts[k, : n_bins[k]] > 0).all()
        # Rows come in the order of their labels.
        encoded = bins.encode(X[FEATURES[k].name])
        np.testing.assert_array_equal(
            np.bincount(codes[k], minlength=256), np.bincount(encoded, minlength=256)
        )
    for step, step_cuts in enumerate(cuts):
        member = leaves_of_codes(step_cuts, n_bins[step % 14], max_leaves)
        assert ((member == 0) | (member == 1)).all()
        assert (member.sum(axis=1) == 1).all()


def test_dp_ebm_plus_numbers_thousands_of_categories_too():
    X, y = many_categories()
    model = DPEBMPlusClassifier(0.5, n_epochs=2, domain=Domain(FEATURES, ("0", "1"))).fit(X, y)
    assert model.ledger_.spent_epsilon() <= 0.5 + 1e-6
    assert all(1 < bins.n_bins <= MAX_BINS for bins in model.bins_)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("above", [254, 255, 256, 257, 300, 400])
def test_the_largest_categories_are_kept(missing, above):
    """400 categories, of which `above` reach the target; one cell more is of missing values."""
    feature = CategoricalFeature("x", NAMES[:400], missing)
    noisy = np.append(np.where(np.arange(400) < above, 1000.0 - np.arange(400), 1.0), 2000.0)
    bins, counts, bin_of_cell = merge_cells(feature, noisy, 500.0, 32)
    # Where they all fit, what is left over is less than a bin and takes in the smallest of them.
    kept = above + missing - 1 if above + missing < MAX_BINS else MAX_BINS - 1
    assert bins.n_bins == kept + 1 <= MAX_BINS
    assert (MISSING in bins.labels) == missing
    assert bins.labels[-1] == OTHER
    assert bins.labels[: kept - missing] == NAMES[: kept - missing]
    assert (bin_of_cell[kept - missing : 400] == kept).all()
    assert counts.sum() == pytest.approx(noisy.sum() - (not missing) * 2000)


def test_256_categories_need_no_other_bin():
    feature = CategoricalFeature("x", NAMES[:256])
    bins, _, bin_of_cell = merge_cells(feature, np.full(257, 9.0), 5.0, 32)
    assert bins.labels == NAMES[:256]
    np.testing.assert_array_equal(bin_of_cell[:-1], np.arange(256))


@settings(max_examples=50, deadline=None)
@given(
    st.integers(100, MAX_BINS), st.booleans(), st.integers(0, 2**32), st.sampled_from([0.1, 1, 30])
)
def test_numeric_cells_never_make_more_bins_than_a_byte_can_number(max_bins, missing, seed, scale):
    """2 `max_bins` cells with noise that is clipped at 0: more than is there, in all."""
    rng = np.random.default_rng(seed)
    feature = NumericFeature("x", 0, 1, missing)
    values = pd.Series(rng.random(1000), name="x")
    if missing:
        values[:50] = np.nan
    cells, exact = histogram(values, feature, max_bins)
    noisy = exact + rng.normal(0, scale, exact.size)
    bins, counts, bin_of_cell = merge_cells(feature, noisy, 1000 / max_bins / 2, max_bins)
    assert bins.n_bins <= MAX_BINS
    assert bins.n_bins == counts.size == bin_of_cell.max() + 1
    np.testing.assert_array_equal(bins.encode(values), bin_of_cell[cells])
    assert (counts > 0).all()


def test_numeric_cells_are_not_joined_where_they_fit():
    feature = NumericFeature("x", 0, 1, missing=True)
    assert merge_cells(feature, np.full(255, 5.0), 5.0, 127)[0].n_bins == 254 + 1
    bins, counts, _ = merge_cells(feature, np.full(513, 5.0), 5.0, 256)
    # 512 cells in at most 255 bins: three each, and the rest.
    assert bins.n_bins == 170 + 1
    assert counts[:-2].min() == 15.0


def test_equal_counts_do_not_make_more_bins_either():
    """Whole numbers are often equal, and the last to be kept then is as large as the next."""
    feature = CategoricalFeature("x", NAMES)
    noisy = np.append(np.full(1000, 9.0), 0.0)
    bins, _, bin_of_cell = merge_cells(feature, noisy, 5.0, 32)
    assert bins.n_bins == bin_of_cell.max() + 1 <= MAX_BINS
    assert bins.labels[:250] == NAMES[:250]


@pytest.mark.parametrize("wrong", [256, 300, -1])
def test_a_bin_that_does_not_fit_into_a_byte_is_refused(wrong):
    codes = np.zeros(2, np.uint8)
    cells = np.arange(2, dtype=np.uint16)
    with pytest.raises(ValueError, match=r"do not fit into a byte: a feature has at most 256 bins"):
        recode(cells, np.array([0, wrong]), np.arange(2), codes)
    recode(cells, np.array([7, 255]), np.arange(2), codes)
    np.testing.assert_array_equal(codes, [7, 255])


@pytest.mark.parametrize("sort", [histogram, fine_cells])
def test_more_categories_than_two_bytes_number_have_a_cell_each(sort):
    names = tuple(map(str, range(2**16 + 5)))
    feature = CategoricalFeature("x", names, missing=True)
    column = pd.Series([names[0], names[-1], None, names[2**16]])
    cells, counts = sort(column, feature, 32) if sort is histogram else sort(column, feature)
    np.testing.assert_array_equal(cells, [0, 2**16 + 4, 2**16 + 5, 2**16])
    assert counts.size == 2**16 + 6
    assert counts.sum() == 4


@pytest.mark.parametrize("max_leaves", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("ascending", [False, True])
def test_the_padding_of_cuts_is_no_cut_for_the_last_of_256_bins(max_leaves, ascending):
    """Padding is 255, the last code; next to it a feature with fewer leaves than others."""
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(250, 256, 500), rng.integers(0, 2, 500)]).astype(np.uint8)
    targets = rng.integers(0, 2, 500)
    if ascending:
        targets.sort()
    n_bins, leaves = np.array([256, 2]), max_leaves
    cuts = random_cuts(rng, n_bins, 8, leaves)
    if leaves > 1:
        cuts[4, leaves - 2] = 255
    normals = ExactSampler(Bits(0)).normals((16, leaves))
    counts = np.ones((2, 256)) * 9.0
    case = Problem(codes, targets, cuts, normals, 2.0**20, counts, n_bins)
    np.testing.assert_array_equal(
        case.boost(LogisticLoss())[0], boost_whole(case, LogisticLoss())[0]
    )
