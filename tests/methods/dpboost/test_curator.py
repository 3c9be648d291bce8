"""The curator: a row moves nothing by more than is charged, and no leaf leaves without noise."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dprepro.methods.dpboost import curator as module
from dprepro.methods.dpboost.curator import AddTree, LeafQuery, SplitQuery, Start, leaf_means
from dprepro.methods.dpboost.estimator import boost, leaf_query, split_query
from dprepro.methods.dpboost.kernel import GAIN_UNIT, UNIT
from dprepro.methods.dpboost.sensitivity import GAIN, gain_sensitivity, leaf_clip, leaf_sensitivity
from dprepro.methods.dpboost.subsets import FixedSizes, IndependentRows
from dprepro.methods.dpboost.tree import Tree
from dprepro.methods.dpboost.variants import (
    AS_PUBLISHED,
    BIN_EDGES,
    EXACT_STOPS,
    FIRST_GAIN,
    FIXED_NUMBERS,
    SOUND,
    of_code,
)
from dprepro.privacy.curator_base import listening
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.query import BudgetError, SensitivityError
from tests.methods.dpboost.lab import curator, of_cuts, params, problem

VARIANTS = pytest.mark.parametrize("variant", [AS_PUBLISHED, SOUND], ids=["as-published", "sound"])


def leaves_of(made, variant=SOUND, t=0, settings=None, **changes):
    """Return the noisy leaf values of the next tree."""
    settings = settings or params()
    made.splits(split_query(variant, 0.1))
    position = t % settings.trees_per_ensemble
    unit = leaf_sensitivity(settings.learning_rate, settings.ridge, position)
    query = leaf_query(t, float(unit), settings, variant)
    return made.leaf_values(dataclasses.replace(query, **changes)).value


# --- what is enforced -----------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [0.5, 0.9, 1.0, 2.0])
@pytest.mark.parametrize("ridge", [0.0, 0.1, 1.0, 0.7])
def test_no_row_moves_a_gain_or_a_leaf_by_more_than_is_enforced(bound, ridge):
    """All nodes of up to three rows and some crowds, and every row that may join them."""
    most = math.floor(bound / UNIT)
    nodes = [
        *(n for size in range(4) for n in itertools.product((-most, 0, most), repeat=size)),
        *((sign * most,) * size for sign in (-1, 1) for size in (40, 41)),
    ]
    largest = 0.0
    splits = SplitQuery(gain_sensitivity(bound), 1.0, bound=bound, complete=True)
    for clip, node, row in itertools.product((0.1, 1.0, 5.0), nodes, (-most, most // 2, most)):
        leaf = LeafQuery(9.0, 1.0, bound=bound, ridge=ridge, clip=clip, independent=True)
        one, two = (
            int(leaf_means(np.array([sum(rows)]), np.array([len(rows)]), ridge, clip)[0])
            for rows in (node, (*node, row))
        )
        assert abs(two - one) * UNIT <= leaf.enforced
        largest = max(largest, abs(two - one) * UNIT / leaf.enforced)
        before, after = (
            of_cuts([(sum(rows), len(rows)), (most // 3, 1)], ridge)[0]
            for rows in (node, (*node, row))
        )
        assert abs(after - before) * GAIN_UNIT <= splits.enforced
    assert largest == pytest.approx(1.0, abs=1e-5)


def test_without_the_unit_for_rounding_a_leaf_would_move_by_more_than_is_charged():
    excess = []
    for ridge in np.random.default_rng(0).random(50):
        for s, n in itertools.product(range(-3, 4), range(5)):
            for g in (-1, 1):
                one, two = (
                    int(leaf_means(np.array([total]), np.array([rows]), float(ridge), 9.0)[0])
                    for total, rows in ((s << 24, n), ((s + g) << 24, n + 1))
                )
                if abs(s) <= n:
                    excess.append(Fraction(abs(two - one)) - 2**24 / (1 + Fraction(float(ridge))))
    assert 0 < max(excess) <= 1


def test_leaf_values_are_rounded_down_and_exact():
    """Where a quotient of doubles would round up to the next whole number."""
    sums, counts = np.array([-(2**52) + 1, 2**52 - 1, 0]), np.array([2**28, 2**28, 0])
    np.testing.assert_array_equal(leaf_means(sums, counts, 0.0, 9.0), [2**24 - 1, -(2**24), 0])
    third = leaf_means(np.array([-1, 1]), np.array([3, 3]), 0.0, 9.0)
    np.testing.assert_array_equal(third, [0, -1])


def test_rows_with_gradients_beyond_the_bound_take_no_part():
    codes, targets = problem(400)
    targets[:] = -1.0
    made = curator(SOUND, codes, targets, params(epsilon=1e9))
    made.tell(Start(0.5))  # gradients of 1.5
    np.testing.assert_allclose(leaves_of(made), 0.0, atol=1e-6)


@VARIANTS
@pytest.mark.parametrize("above", [0, 1])
def test_the_filter_compares_whole_numbers(variant, above):
    """A row takes part if its gradient is at the bound. It does not if it is one unit larger."""
    codes, targets = problem(400)
    targets[:] = -1.0
    taken = []

    class Watched(IndependentRows):
        def draw(self, fits):
            fitting = fits(np.arange(400))
            taken.append(fitting.all() if fitting.any() else False)
            return super().draw(fits)

    made = curator(dataclasses.replace(variant, subsets=Watched), codes, targets)
    made.tell(Start((math.floor((1 + variant.tolerance) / UNIT) + above) * UNIT - 1.0))
    made.splits(split_query(variant, 0.1))
    assert taken == [above == 0]


def test_a_bound_beyond_what_the_sums_hold_is_refused():
    charged = gain_sensitivity(512.0)
    for bound in (511.9, 512.0):
        made = curator(SOUND, *problem(400))
        query = SplitQuery(charged, 1.0, bound=bound, complete=True)
        if bound < 512:
            made.splits(query)
        else:
            with pytest.raises(ValueError, match="bound below 512"):
                made.splits(query)


def test_more_rows_than_the_rounding_errors_allow_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 399)
    curator(SOUND, *problem(399))
    with pytest.raises(ValueError, match="399 rows at most"):
        curator(SOUND, *problem(400))


def test_targets_out_of_range_are_clipped_to_it():
    codes, targets = problem(400)
    far = curator(SOUND, codes, np.where(targets > 0, 1e9, targets))
    near = curator(SOUND, codes, np.where(targets > 0, 1.0, targets))
    np.testing.assert_array_equal(leaves_of(far), leaves_of(near))


def test_a_query_that_charges_less_than_it_enforces_cannot_be_built():
    with pytest.raises(SensitivityError, match="charge at least"):
        SplitQuery(gain_sensitivity(1.0), 1.0, bound=1.1, complete=True)
    for charged in (GAIN, gain_sensitivity(1.0)):
        with pytest.raises(SensitivityError):
            SplitQuery(charged, 1.0, bound=1.0, complete=charged == GAIN)
    leaf = {"bound": 1.0, "ridge": 0.1, "clip": 0.3, "independent": True}
    assert LeafQuery(0.6, 1.0, **leaf).enforced == 0.6
    with pytest.raises(SensitivityError):
        LeafQuery(1 / 1.1, 1.0, **leaf | {"clip": 1.0})
    for change in ({"clip": 0.31}, {"clip": math.inf}, {"independent": False}):
        with pytest.raises(SensitivityError):
            LeafQuery(0.6, 1.0, **leaf | change)


@pytest.mark.parametrize("learning_rate", np.random.default_rng(0).random(20))
def test_every_tree_charges_what_its_clip_enforces(learning_rate):
    settings = params(learning_rate=float(learning_rate))
    units = leaf_sensitivity(learning_rate, 0.1, np.arange(50))
    for t, unit in enumerate(units):
        assert leaf_query(t, float(unit), settings, SOUND).enforced == pytest.approx(unit, 1e-12)


# --- published ways by the names of their gaps ----------------------------------------------------


def test_what_has_no_proof_is_asked_by_the_name_of_its_gap_and_only_where_it_is_listed():
    codes, targets = problem()
    assert split_query(AS_PUBLISHED, 0.1).gap == EXACT_STOPS
    listed = curator(AS_PUBLISHED, codes, targets)
    assert leaves_of(listed, AS_PUBLISHED).size > 1
    for gaps, missing in (([FIXED_NUMBERS], "can make an output"), ([EXACT_STOPS], "in fixed")):
        silent = curator(AS_PUBLISHED, codes, targets, gaps=gaps)
        with pytest.raises(SensitivityError, match=missing):
            leaves_of(silent, AS_PUBLISHED)


def test_rows_dealt_in_fixed_numbers_do_not_pass_for_independent_ones():
    made = curator(dataclasses.replace(SOUND, subsets=FixedSizes), *problem())
    with pytest.raises(BudgetError, match="in fixed numbers"):
        leaves_of(made)


# --- noise ----------------------------------------------------------------------------------------


def check_noise(made):
    """Raise unless every leaf of every tree has noise of its own: there are no rows to tell of.

    Noise in whole numbers can agree by chance: of these 3,200 numbers a few do.
    """
    units = leaf_sensitivity(0.1, 0.1, np.arange(50))
    values = np.concatenate([leaves_of(made, t=t) / units[t] for t in range(50)])
    assert values.size == 50 * 64
    assert np.unique(values.round(9)).size > values.size - 20
    assert (values != 0).all()


def without_rows(seed=0):
    return curator(SOUND, np.zeros((0, 2)), np.zeros(0), seed=seed)


def test_every_leaf_has_noise_of_its_own():
    check_noise(without_rows())


@pytest.mark.parametrize("fault", ["a leaf without noise", "the same noise in two trees"])
def test_planted_faults_of_the_noise_are_caught(fault, monkeypatch):
    answer, noises = NoiseSource.add_laplace, []

    def faulty(self, exact, scale, unit):
        noises.append(answer(self, np.zeros_like(exact), scale, unit))
        if fault == "a leaf without noise":
            noises[-1][7] = 0.0
        elif len(noises) == 10:
            noises[-1] = noises[-2] * 0.9
        return exact * unit + noises[-1]

    monkeypatch.setattr(NoiseSource, "add_laplace", faulty)
    with pytest.raises(AssertionError):
        check_noise(without_rows())


def test_leaf_noise_has_the_scale_of_its_tree():
    settings = params(epsilon=1.5, n_trees=100, max_depth=10)
    made = curator(SOUND, np.zeros((0, 2)), np.zeros(0), settings)
    for t in range(60):
        values = leaves_of(made, t=t, settings=settings)
        if t in (0, 7, 8, 30, 58):
            scale = min(1 / 1.1, 2 * 0.9 ** (t % 50)) / (1.5 / 2 / 2)
            assert stats.kstest(values / scale, "laplace").pvalue > 1e-5


@VARIANTS
def test_split_probabilities_are_those_of_the_documents(variant):
    """Exponent epsilon gain / 72 in the paper, / 144 in the code (one ensemble, depth 6)."""
    release = curator(variant, *problem(), params(epsilon=1.0)).splits(split_query(variant, 0.1))
    assert release.scale == pytest.approx(144 if variant is AS_PUBLISHED else 72)


def test_the_first_bound_on_gains_adds_less_noise_to_choices_and_is_a_gap_of_the_ledger():
    first = of_code("equal", "0..1", "mean", True)
    made = curator(first, *problem(), params(epsilon=1.0))
    release = made.splits(split_query(first, 0.1))
    assert release.scale == pytest.approx(144 * 0.9957 / 3, rel=1e-4)
    assert FIRST_GAIN in made._source.ledger.gaps
    assert FIRST_GAIN not in of_code("equal", "0..1", "mean", False).gaps


@pytest.mark.parametrize(("scale", "mean"), [("-1..1", -0.5), ("0..1", 0.25)])
def test_the_mean_of_the_target_is_that_of_the_scaled_targets(scale, mean):
    targets = np.repeat([-1.0, 1.0], [30, 10])  # the range that the lab states
    made = curator(of_code("equal", scale, "mean", False), np.zeros((40, 2)), targets)
    assert made.mean_target() == mean


# --- the budget -----------------------------------------------------------------------------------


@VARIANTS
@pytest.mark.parametrize(("n_trees", "per_ensemble"), [(50, 50), (100, 50), (120, 50), (3, 1)])
def test_the_ledger_adds_up_to_the_share_of_epsilon_that_a_path_spends(
    variant, n_trees, per_ensemble
):
    settings = params(n_trees=n_trees, trees_per_ensemble=per_ensemble)
    ledger = curator(variant, *problem(), settings)._source.ledger
    splits, leaves = ledger.entries
    ensembles = -(-n_trees // per_ensemble)
    assert (splits.uses, leaves.uses) == (6 * ensembles, ensembles)
    assert splits.budget[0] == pytest.approx(2.0 * variant.split_share)
    assert leaves.budget[0] == pytest.approx(1.0)
    assert ledger.within_budget


def test_composition_forgotten_is_refused():
    with pytest.raises(BudgetError, match="divide the budget"):
        curator(dataclasses.replace(SOUND, split_share=0.6), *problem())
    with pytest.raises(BudgetError):
        curator(SOUND, *problem(), epsilon=1.9)


def test_no_tree_is_grown_and_no_leaf_answered_twice():
    settings = params(n_trees=2, trees_per_ensemble=1)
    made = curator(SOUND, *problem(), settings)
    leaves_of(made, settings=settings)
    query = leaf_query(0, float(leaf_sensitivity(0.1, 0.1, 0)), settings, SOUND)
    with pytest.raises(BudgetError, match="once"):
        made.leaf_values(query)
    leaves_of(made, settings=settings)
    with pytest.raises(BudgetError, match="was answered before"):
        made.splits(split_query(SOUND, 0.1))


def test_leaves_keep_the_bound_of_their_splits():
    with pytest.raises(BudgetError, match="with its bound"):
        leaves_of(curator(SOUND, *problem()), bound=0.5)


def test_each_row_trains_one_tree_of_an_ensemble_at_most(monkeypatch):
    taken = []

    class Watched(IndependentRows):
        def draw(self, fits):
            rows = super().draw(fits)
            taken.append(rows)
            return rows

    settings = params(n_trees=20, trees_per_ensemble=10)
    variant = dataclasses.replace(SOUND, subsets=Watched)
    boost(curator(variant, *problem(), settings), 0.0, settings, variant)
    for ensemble in (taken[:10], taken[10:]):
        rows = np.concatenate(ensemble)
        assert len(np.unique(rows)) == rows.size > 1000


# --- what leaves the curator ----------------------------------------------------------------------


def test_listeners_hear_splits_leaves_and_trees():
    heard = []

    class Listener:
        def asked(self, query, release):
            heard.append(type(query))

        def told(self, instruction):
            heard.append(type(instruction))

    settings = params(n_trees=2)
    with listening(Listener()):
        made = curator(SOUND, *problem(), settings)
    boost(made, 0.0, settings, SOUND)
    assert heard == [Start, *(SplitQuery, LeafQuery, AddTree) * 2]


def test_told_trees_move_the_scores_of_the_rows():
    codes, targets = problem(400)
    made = curator(SOUND, codes, targets)
    alone = np.array([-1]), np.zeros(1, int), np.zeros(1, int)
    made.tell(AddTree(Tree(*alone, np.array([0.25]))))
    made.tell(AddTree(Tree(*alone, np.array([0.5]))))
    exact = made._exact._Private__value
    rows = np.array([0, 7, 399])
    np.testing.assert_array_equal(exact.gradients(rows) + exact.targets[rows], 3 * 2**22)
    made.tell(Start(0.125))
    np.testing.assert_array_equal(exact.gradients(rows) + exact.targets[rows], 2**21)


def test_exact_reads_are_listed():
    made = curator(AS_PUBLISHED, *problem())
    assert made.mean_target() == pytest.approx(problem()[1].mean())
    assert made._source.ledger.unaccounted[1:] == [BIN_EDGES, module.MEAN_OF_TARGET]
    sound = curator(SOUND, *problem())
    assert BIN_EDGES not in sound._source.ledger.unaccounted


def test_leaf_values_lie_within_the_clip():
    sums, counts = np.array([-30, 0, 5, -1]) << 24, np.array([30, 0, 5, 4])
    clip = float(leaf_clip(0.1, 6))
    assert np.abs(leaf_means(sums, counts, 0.0, clip)).max() == math.floor(clip / UNIT)
    values = leaf_means(sums, counts, 0.0, 2.0) * UNIT
    np.testing.assert_array_equal(values, [1, 0, -1, 0.25])
