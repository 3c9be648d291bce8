"""All noisy answers of DP-EBM+: they hold all of mu, and a fault in any of them shows."""

import numpy as np
import pytest

from dprepro.audit import Verdict, audit, find_case
from dprepro.audit.case import MethodPair
from dprepro.audit.cases import dp_ebm_plus as dp_ebm_plus_case
from dprepro.ebm_plus import booster as batch_boosting
from dprepro.ebm_plus import estimator as dp_ebm_plus
from dprepro.ebm_plus import groups as grouped_counts
from dprepro.ebm_plus.booster import BatchBooster
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.mechanisms import NoiseSource

NAME, STRONG = "dp-ebm-plus/answers", 8.0
TASKS = pytest.mark.parametrize("task", ["binary", "regression"])


def verdict(task, trials):
    return audit(find_case(NAME, task, epsilon=STRONG), trials, seed=1).verdict


def noise_times(factor, monkeypatch, words):
    """Scale the noise of the releases that begin with `words`, behind the ledger's back."""
    gaussian = NoiseSource.gaussian

    def changed(self, shape, *, releases, **settings):
        noise = gaussian(self, shape, releases=releases, **settings)
        return noise * (factor if releases.startswith(words) else 1.0)

    monkeypatch.setattr(NoiseSource, "gaussian", changed)


@TASKS
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 8.0, 100.0])
def test_the_parts_of_the_canary_come_to_all_of_mu_and_no_more(task, epsilon):
    fit = find_case(NAME, task, epsilon=epsilon).fit
    found = np.sqrt([fit(seed % 2 == 0, seed).mu_squared for seed in range(20)])
    assert (found <= mu_of(epsilon, 1e-6) * (1 + 1e-5)).all()
    assert found.mean() > 0.97 * mu_of(epsilon, 1e-6)


@TASKS
def test_the_evidence_is_that_of_gaussian_noise_about_all_parts(task):
    """The same noise in both worlds: what differs is the canary alone, the shift in full."""
    mu = mu_of(STRONG, 1e-6)
    fit = find_case(NAME, task, epsilon=STRONG).fit
    worlds = [[fit(present, seed).evidence for seed in range(60)] for present in (True, False)]
    present, absent = np.array(worlds)
    assert np.mean(present - absent) == pytest.approx(mu**2, rel=0.1)
    assert np.std([present - mu**2 / 2, absent + mu**2 / 2]) == pytest.approx(mu, rel=0.3)


@TASKS
def test_listening_changes_nothing(task):
    pair = find_case(NAME, task).fit.__self__
    heard = []
    train = MethodPair.fit

    def kept(self, present, seed):
        heard.append(train(self, present, seed))
        return heard[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MethodPair, "fit", kept)
        pair.fit(True, 3)
    alone = train(pair, True, 3)
    assert heard[0].intercept_ == alone.intercept_
    for one, other in zip(heard[0].shape_functions_, alone.shape_functions_, strict=True):
        np.testing.assert_array_equal(one, other)


@TASKS
def test_sound_answers_pass_with_a_bound_near_the_truth(task):
    result = audit(find_case(NAME, task, epsilon=STRONG), 600, seed=2)
    assert result.verdict is Verdict.WITHIN
    assert 0.5 * result.true_epsilon < result.lower_bound < result.true_epsilon


@TASKS
def test_half_the_noise_of_the_epochs(task, monkeypatch):
    noise_times(0.5, monkeypatch, "an epoch")
    assert verdict(task, 300) is Verdict.EXCEEDED


@TASKS
@pytest.mark.parametrize("words", ["number of rows", "rows per cell"])
def test_no_noise_in_totals_or_histograms(task, words, monkeypatch):
    noise_times(0.0, monkeypatch, words)
    assert verdict(task, 300) is Verdict.EXCEEDED


@TASKS
def test_the_last_group_of_a_number_counted_without_noise(task, monkeypatch):
    gaussian = NoiseSource.gaussian

    def changed(self, shape, *, releases, **settings):
        noise = gaussian(self, shape, releases=releases, **settings)
        return np.append(noise[:-1], 0.0) if releases.startswith("rows per cell") else noise

    monkeypatch.setattr(NoiseSource, "gaussian", changed)
    assert verdict(task, 600) is Verdict.EXCEEDED


def test_a_number_counted_twice_for_the_price_of_once(monkeypatch):
    """A cell and its group over sqrt(2) come to 1: without that the parts exceed all of mu."""
    whole = grouped_counts.exact_answers
    for module in (dp_ebm_plus, dp_ebm_plus_case):
        monkeypatch.setattr(module, "exact_answers", lambda *of: np.sqrt(2) * whole(*of))
    fit = find_case(NAME, "binary", epsilon=1.0).fit
    assert np.sqrt(fit(True, 0).mu_squared) > 1.02 * mu_of(1.0, 1e-6)


@TASKS
def test_the_exact_number_of_rows_beside_the_noisy_one(task, monkeypatch):
    release = dp_ebm_plus._DPEBMPlus._release_totals

    def exact(self, source, targets, logistic):
        return (float(targets.size), *release(self, source, targets, logistic)[1:])

    monkeypatch.setattr(dp_ebm_plus._DPEBMPlus, "_release_totals", exact)
    assert verdict(task, 600) is Verdict.EXCEEDED


@TASKS
def test_one_answer_of_one_epoch_without_noise(task, monkeypatch):
    epoch = BatchBooster._epoch

    def quiet(self, number, noise):
        # Last come the second feature's bins.
        noise = np.append(noise[:-1], 0.0) if number == 2 else noise
        epoch(self, number, noise)

    monkeypatch.setattr(BatchBooster, "_epoch", quiet)
    assert verdict(task, 300) is Verdict.EXCEEDED


def test_composition_over_features_forgotten(monkeypatch):
    monkeypatch.setattr(
        BatchBooster, "_feature_shares", lambda self: [self.shares[0]] * len(self.functions)
    )
    assert verdict("binary", 600) is Verdict.EXCEEDED


def test_a_sensitivity_of_half_the_truth(monkeypatch):
    whole = batch_boosting.answer_sensitivity
    monkeypatch.setattr(batch_boosting, "answer_sensitivity", lambda *a, **k: whole(*a, **k) / 2)
    assert verdict("binary", 400) is Verdict.EXCEEDED


def test_residuals_that_are_not_clipped(monkeypatch):
    sums = BatchBooster._sums
    monkeypatch.setattr(BatchBooster, "_sums", lambda self, function, _: sums(self, function, 9.0))
    assert verdict("regression", 400) is Verdict.EXCEEDED
