"""The noise is that of the ledger, samples hold their share, and the ledger composes by itself."""

import numpy as np
import pandas as pd
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution as pld

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_sgd.curator import DPSGDCurator, ExactGradients, GradientSum, Noise
from dprepro.methods.dp_sgd.inputs import LongRows
from dprepro.methods.dp_sgd.network import GRADIENT_UNIT, Network
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.sensitivity import ADD_REMOVE, ZERO_OUT
from dprepro.privacy.subsampling import sampled_sigma

DOMAIN = Domain((NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b"))), ("0", "1"))
BUDGET = PrivacyBudget(1.0, 1e-6)
WIDTH, STEPS, RATE, CLIP = 2, 40, 0.3, 0.5
COLUMNS = LongRows(DOMAIN, 3).columns
SIZE = COLUMNS * WIDTH + WIDTH + 1


def table(n=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(n), "c": rng.choice(["a", "b"], n)})
    return frame, (frame["x"] > 0.5).to_numpy().astype(np.float32)


def network(seed=0):
    return Network.of(np.random.default_rng(seed).normal(0, 1, SIZE), COLUMNS, WIDTH)


def query(step, clip=CLIP):
    return GradientSum(clip, 1.0, step, network(), clip)


def sigma():
    return sampled_sigma("pld", *BUDGET, rate=RATE, steps=STEPS)


def curator(seed=0, relation=ADD_REMOVE, multiplier=None):
    ledger = Ledger(*BUDGET, relation)
    made = DPSGDCurator(Private(Rows(*table())), DOMAIN, 3, None, ledger, seed)
    made.enter(Noise(multiplier or sigma(), RATE, STEPS, CLIP), SIZE, BUDGET)
    return made, ledger


def exact():
    frame, y = table()
    return ExactGradients(LongRows(DOMAIN, 3).encode(frame), y, None)


def test_answers_are_sums_of_samples_with_the_noise_of_the_ledger(monkeypatch):
    sums, sampled, plain = ExactGradients.sum, [], []

    def heard(self, asked, rows):
        sampled.append(rows)
        plain.append(sums(self, asked, rows))
        return plain[-1]

    monkeypatch.setattr(ExactGradients, "sum", heard)
    made, ledger = curator()
    answers = [made.answer(query(step)) for step in range(STEPS)]
    noise = np.array([a.value for a in answers]) - np.array(plain) * GRADIENT_UNIT
    (entry,) = ledger.entries
    assert {a.scale for a in answers} == {entry.scale}
    assert entry.scale == pytest.approx(sigma() * CLIP)
    assert noise.std() == pytest.approx(entry.scale, rel=0.1)
    assert abs(noise.mean()) < 5 * entry.scale / noise.size**0.5
    assert np.mean(sampled) == pytest.approx(RATE, abs=5 * (RATE / (300 * STEPS)) ** 0.5)
    assert len({rows.tobytes() for rows in sampled}) == STEPS


def test_a_step_is_answered_once_and_no_step_is_added():
    made, _ = curator()
    made.answer(query(3))
    for step in (3, STEPS, -1):
        with pytest.raises(BudgetError, match="ask for each use once"):
            made.answer(query(step))


def test_the_ledger_is_what_dp_accounting_composes():
    _, ledger = curator()
    (entry,) = ledger.entries
    one = pld.from_gaussian_mechanism(
        entry.scale / CLIP,
        sampling_prob=RATE,
        neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
    )
    assert (entry.sensitivity, entry.uses, entry.sampling) == (CLIP, STEPS, RATE)
    assert one.self_compose(STEPS).get_epsilon_for_delta(1e-6) == pytest.approx(1.0, abs=2e-3)
    assert ledger.is_calibrated
    assert not ledger.gaps
    assert not ledger.floating_point
    assert ledger.spent_epsilon() == pytest.approx(1.0, abs=2e-3)


def test_too_little_noise_is_refused():
    with pytest.raises(BudgetError, match="spend more than it states"):
        curator(multiplier=sigma() * 0.99)


def test_a_bound_above_what_is_charged_is_refused():
    with pytest.raises(SensitivityError, match="charge at least what is enforced"):
        GradientSum(CLIP, 1.0, 0, network(), 2 * CLIP)


def test_a_larger_bound_gets_more_noise():
    made, ledger = curator()
    assert made.answer(query(0, 4 * CLIP)).scale == pytest.approx(4 * ledger.entries[0].scale)


def test_another_relation_is_refused():
    with pytest.raises(SensitivityError, match="add/remove-one"):
        curator(relation=ZERO_OUT)


def test_a_row_more_moves_a_sum_by_its_own_part():
    everybody = np.ones(300, dtype=bool)
    last = np.arange(300) == 299
    whole, alone = exact().sum(query(0), everybody), exact().sum(query(0), last)
    np.testing.assert_array_equal(whole - exact().sum(query(0), ~last), alone)
    assert np.linalg.norm(alone) * GRADIENT_UNIT <= CLIP


def test_targets_beyond_their_range_count_as_its_ends():
    inputs = LongRows(DOMAIN, 3).encode(table(4)[0])
    ends, beyond = (
        ExactGradients(inputs, np.array(y), (10.0, 20.0)).sum(query(0), np.ones(4, dtype=bool))
        for y in ([10, 20, 10, 20], [-1e6, 1e6, 9, 21])
    )
    np.testing.assert_array_equal(ends, beyond)
