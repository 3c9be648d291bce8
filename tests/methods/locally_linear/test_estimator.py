"""The estimators: what they promise, what they release, and the models they contain."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression

from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.locally_linear.estimator import DPLLMClassifier, LLMClassifier
from dprepro.privacy.curator_base import listening
from dprepro.privacy.subsampling import moments_epsilon, pld_epsilon, sampled_sigma

SMALL = {"n_maps": 2, "n_projected": None, "inverse_temperature": 1.0, "learning_rate": 0.03}


FEATURES = tuple(NumericFeature(f"x{k}", 0, 1) for k in range(64))
DIGITS = Domain(FEATURES, tuple("0123456789"))


def digits():
    X, y = load_digits(return_X_y=True)
    return (X / 16).astype(np.float32), y


def private(**params):
    """Return a small private model; the moments accountant finds its noise quickly."""
    given = {"batch_size": 100, "epochs": 5, "accountant": "moments", "random_state": 0}
    return DPLLMClassifier(**{**given, **SMALL, **params})


def test_one_map_without_privacy_is_multinomial_logistic_regression():
    X, y = load_iris(return_X_y=True)
    y = np.where(np.random.default_rng(0).random(150) < 0.3, (y + 1) % 3, y)  # not separable
    model = LLMClassifier(
        n_maps=1, n_projected=None, epochs=3000, batch_size=150, learning_rate=0.1, decay=0.5,
        decay_every=500, centre=3.0, spread=3.0, random_state=0,
    ).fit(X, y)  # fmt: skip
    reference = LogisticRegression(C=np.inf, max_iter=10_000, tol=1e-8).fit((X - 3) / 3, y)
    np.testing.assert_allclose(
        model.predict_proba(X), reference.predict_proba((X - 3) / 3), atol=2e-3
    )


def test_little_noise_and_no_clipping_come_close_to_no_privacy():
    X, y = digits()
    exact = LLMClassifier(**SMALL, batch_size=100, epochs=5, random_state=0).fit(X, y).score(X, y)
    noisy = private(epsilon=None, noise_multiplier=1e-6, clip_norm=100.0).fit(X, y).score(X, y)
    assert exact > 0.95
    assert abs(noisy - exact) < 0.03


class Heard:
    """Keeps all releases."""

    def __init__(self):
        self.releases = []

    def asked(self, query, release):
        self.releases.append(release)

    def told(self, instruction):
        pass


@pytest.mark.parametrize("projected", [None, 20])
def test_the_noise_of_a_fit_has_the_scale_that_the_ledger_states(projected, monkeypatch):
    def nothing(X, labels, norms, theta, *_):
        return np.zeros_like(theta)

    monkeypatch.setattr("dprepro.methods.locally_linear.gradients.clipped_sum", nothing)
    X, y = digits()
    model = private(epsilon=None, noise_multiplier=3.0, clip_norm=0.2, n_projected=projected)
    heard = Heard()
    with listening(heard):
        (entry,) = model.fit(X[:950], y[:950]).ledger_.entries
    assert (entry.sensitivity, entry.scale) == (0.2, pytest.approx(0.6))
    assert {release.scale for release in heard.releases} == {entry.scale}
    noise = np.array([release.value for release in heard.releases])
    assert noise.shape == (entry.uses, 2, 10, (projected or X.shape[1]) + 1)
    assert entry.uses == 5 * 10
    assert np.std(noise) == pytest.approx(entry.scale, rel=0.02)
    assert np.abs(np.mean(noise)) < 0.02
    steps = np.corrcoef(noise.reshape(entry.uses, -1))
    assert np.abs(steps - np.eye(entry.uses)).max() < 0.25  # each step has its own


@pytest.mark.parametrize("accountant", ["pld", "moments"])
def test_the_budget_is_kept_and_the_guarantee_holds(accountant):
    X, y = digits()
    model = private(
        epsilon=2.0, delta=1e-5, accountant=accountant, random_state=None, domain=DIGITS
    ).fit(X, y)
    rate, steps = 100 / len(X), 5 * math.ceil(len(X) / 100)
    assert model.noise_multiplier_ == sampled_sigma(accountant, 2.0, 1e-5, rate=rate, steps=steps)
    assert model.ledger_.holds
    assert model.ledger_.spent_epsilon() == pytest.approx(
        pld_epsilon(model.noise_multiplier_, rate, steps, 1e-5)
    )
    assert model.figures_["moments_epsilon"] == pytest.approx(
        moments_epsilon(model.noise_multiplier_, rate, steps, 1e-5)
    )
    tight = accountant == "pld"
    assert (model.ledger_.spent_epsilon() > 1.95) == tight
    assert (model.figures_["moments_epsilon"] > 2.05) == tight


def test_a_given_noise_multiplier_states_what_it_spends_or_is_held_to_the_claim():
    X, y = digits()
    tight = private(epsilon=None, noise_multiplier=1.0, accountant="pld")
    stated = tight.fit(X, y).ledger_
    assert stated.epsilon == pytest.approx(stated.spent_epsilon())
    claimed = private(epsilon=stated.epsilon / 2, noise_multiplier=1.0).fit(X, y).ledger_
    assert not claimed.within_budget


def test_samples_may_be_empty():
    X, y = digits()
    model = private(batch_size=2, noise_multiplier=1.0).fit(X[:50], y[:50])  # (1 - 1/25)^50 = 0.13
    assert np.isfinite(model.filters_).all()


def test_shuffled_batches_keep_no_promise_of_the_accountant():
    X, y = digits()
    model = private(epsilon=2.0, sampling="shuffle", random_state=None).fit(X, y)
    (entry,) = model.ledger_.entries
    assert (entry.uses, entry.sampling) == (5, 1.0)
    assert model.ledger_.spent_epsilon() > 2.0
    assert not model.ledger_.holds
    assert "does not apply" in model.ledger_.gaps[0]


def test_a_fit_that_fails_leaves_no_ledger_of_the_one_before():
    model = private().fit(*digits())
    with pytest.raises(ValueError, match="epsilon"):
        model.set_params(epsilon=-1).fit(*digits())
    assert not hasattr(model, "ledger_")


def test_labels_that_no_domain_names_are_unpaid():
    X, y = np.random.default_rng(0).random((60, len(FEATURES))), np.arange(60) % 3
    ledger = private(epsilon=1.0).fit(X, y).ledger_
    assert "labels that occur" in ledger.unaccounted
    assert "labels" not in ledger.assumed_public
    domain = Domain(FEATURES, ("0", "1", "2"))
    ledger = private(epsilon=1.0, domain=domain).fit(X, y).ledger_
    assert "labels that occur" not in ledger.unaccounted
    assert "labels" in ledger.assumed_public


def test_a_fixed_seed_and_an_observed_domain_are_unpaid():
    X, y = digits()
    domain = Domain(FEATURES, tuple("0123456789"), ("bounds",))
    ledger = private(epsilon=1.0, domain=domain).fit(X, y).ledger_
    assert ledger.unaccounted[0] == "bounds"
    assert "fixed seed" in ledger.unaccounted[1]
    assert "bounds and categories" not in ledger.assumed_public
    public = private(epsilon=1.0, domain=Domain(FEATURES, ("0", "1"))).planned_ledger(100)
    assert "bounds and categories" in public.assumed_public


@pytest.mark.parametrize("labels", [np.arange(10), np.array(list("0123456789"))])
def test_the_labels_are_those_of_the_domain_whichever_occur(labels):
    X, y = digits()
    domain, few = Domain(FEATURES, tuple("0123456789")), y < 8
    model = private(epsilon=1.0, domain=domain).fit(X[few], labels[y[few]])
    np.testing.assert_array_equal(model.classes_, labels)
    assert model.predict_proba(X[:3]).shape == (3, 10)
    with pytest.raises(ValueError, match=r"y must hold the domain's labels '0', '1' as text"):
        model.set_params(domain=Domain(FEATURES, ("0", "1"))).fit(X, labels[y])


def test_planning_the_ledger_needs_no_rows():
    X, y = digits()
    model = private(epsilon=2.0, accountant="pld")
    planned = model.planned_ledger(len(X))
    assert planned.summary() == model.fit(X, y).ledger_.summary()


@pytest.mark.parametrize("model", [private(epsilon=8.0), LLMClassifier(**SMALL, random_state=1)])
def test_a_seed_repeats_the_fit(model):
    X, y = digits()
    first = model.fit(X, y).filters_.copy()
    np.testing.assert_array_equal(first, model.fit(X, y).filters_)


def test_inputs_enter_normalised():
    X, y = digits()
    model = LLMClassifier(**SMALL, epochs=2, centre=0.3, spread=0.4, random_state=0).fit(X, y)
    same = LLMClassifier(**SMALL, epochs=2, random_state=0).fit((X - 0.3) / 0.4, y)
    np.testing.assert_allclose(model.filters_, same.filters_, atol=2e-3)


@pytest.mark.parametrize("projected", [None, 5])
def test_a_row_of_huge_numbers_spoils_no_filter(projected):
    X, y = digits()
    X[7] = 1e25
    model = private(n_projected=projected, spread=1e-10, random_state=None, domain=DIGITS).fit(X, y)
    assert np.isfinite(model.filters_).all()
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.ledger_.holds


def test_inputs_are_cut_off_at_a_public_constant():
    X, y = digits()
    X[7, :5] = (-1e25, -101, 101, 1e9, 1e25)
    found = private().fit(X, y).filters_
    np.testing.assert_array_equal(found, private().fit(X.clip(-100, 100), y).filters_)


def test_local_explanations_are_the_maps_that_make_the_score():
    X, y = digits()
    model = LLMClassifier(**{**SMALL, "n_maps": 4}, epochs=5, random_state=0).fit(X, y)
    local = model.explain_local(X[:50])
    np.testing.assert_array_equal(local.classes, model.predict(X[:50]))
    np.testing.assert_allclose(local.weights.sum(axis=1), 1, rtol=1e-5)
    assert (np.diff(local.weights, axis=1) <= 0).all()
    # f_k = sum_m s_m (w_m x + b_m), by the maps in the explained order.
    maps = model.explain_global()
    offsets = maps.offsets[local.classes[:, None], local.order]
    values = np.einsum("nmd,nd->nm", local.filters, X[:50]) + offsets
    scores = (local.weights * values).sum(axis=1)
    np.testing.assert_allclose(scores, model.decision_function(X[:50]).max(axis=1), rtol=1e-3)
    np.testing.assert_allclose(
        local.weighted, np.einsum("nm,nmd->nd", local.weights, local.filters), atol=1e-5
    )


def test_any_class_can_be_explained_and_unknown_ones_are_refused():
    X, y = digits()
    model = LLMClassifier(**SMALL, epochs=1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.explain_local(X[:3], [7, 7, 2]).classes, [7, 7, 2])
    with pytest.raises(ValueError, match="classes must be among"):
        model.explain_local(X[:1], [11])


def test_two_classes_have_one_score_and_two_probabilities():
    X, y = digits()
    model = LLMClassifier(**SMALL, epochs=3, random_state=0).fit(X, y > 4)
    score, probabilities = model.decision_function(X), model.predict_proba(X)
    assert score.shape == (len(X),)
    np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-score)), atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), score > 0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": None}, "both are None"),
        ({"epsilon": 0.0}, "epsilon must be positive and finite"),
        ({"delta": 1.0}, "delta must lie strictly between 0 and 1"),
        ({"sampling": "poison"}, "sampling must be one of 'poisson', 'shuffle', got 'poison'"),
        ({"accountant": "rdp"}, "accountant must be one of 'pld', 'moments', got 'rdp'"),
        ({"n_projected": 0}, "n_projected must be an integer of at least 1"),
        ({"clip_norm": None}, "clip_norm must be a number from 1e-15"),
        ({"decay": 1.5}, "decay must be a number above 0 and at most 1"),
    ],
)
def test_errors_say_what_was_given_and_what_is_allowed(params, message):
    with pytest.raises(ValueError, match=message):
        private(**params).fit(*digits())
