"""Threads share the rows of a fit, and change no bit of it."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm.ebm import EBMClassifier, EBMRegressor
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC
from dprepro.methods.dp_ebm_plus.queries import Merge, Start
from dprepro.rows import backends as holders
from dprepro.rows.backends import LEAST_ROWS, MemoryBackend, even_parts
from dprepro.runtime.threads import Threads
from tests.released import published

FEATURES = (
    NumericFeature("x", 0, 1, missing=True),
    NumericFeature("z", -5, 5),
    CategoricalFeature("c", ("a", "b", "d")),
)
FEW, MANY = {"n_epochs": 3}, {"n_epochs": 20, "outer_bags": 3}
MODELS = [
    (DPEBMClassifier, FEW),
    (DPEBMClassifier, FEW | {"sensitivity": "sound", "composition": "joint", "max_leaves": 5}),
    (DPEBMRegressor, FEW | {"sensitivity": "sound"}),
    (DPEBMRegressor, FEW),
    (DPEBMPlusClassifier, FEW),
    (DPEBMPlusRegressor, FEW),
    (EBMClassifier, MANY),
    (EBMRegressor, MANY),
]


def table(rows, labels):
    rng = np.random.default_rng(rows)
    X = pd.DataFrame(
        {
            "x": np.where(rng.random(rows) < 0.1, np.nan, rng.random(rows)),
            "z": rng.normal(0, 3, rows),
            "c": pd.Categorical(rng.choice(["a", "b", "d"], rows)),
        }
    )
    targets = X["z"] + 3 * (X["c"] == "a") + rng.normal(size=rows)
    return X, (targets > 1).astype(int).to_numpy() if labels else targets.to_numpy()


def fitted(model, settings, rows, n_jobs):
    labels = "Classifier" in model.__name__
    if not model.__name__.startswith("EBM"):
        domain = Domain(FEATURES, ("0", "1") if labels else (-12.0, 12.0))
        settings = settings | {"domain": domain}
    made = model(n_jobs=n_jobs, random_state=0, **settings)
    return made.fit(*table(rows, labels))


@pytest.fixture(autouse=True)
def threads_that_share_few_rows(monkeypatch):
    """So that tests with few rows have several partitions."""
    monkeypatch.setattr(holders, "LEAST_ROWS", 1)


@pytest.mark.parametrize(("model", "settings"), MODELS)
def test_any_number_of_threads_gives_the_same_bits(model, settings):
    private = not model.__name__.startswith("EBM")
    one = fitted(model, settings, 20_011, 1)
    for n_jobs in (2, 3, 16):
        other = fitted(model, settings, 20_011, n_jobs)
        for a, b in zip(one.shape_functions_, other.shape_functions_, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)
        assert one.intercept_ == other.intercept_
        if private:
            assert repr(published(one)) == repr(published(other))


@pytest.mark.parametrize("rows", [2, 3, 17])
@pytest.mark.parametrize(("model", "settings"), [m for m in MODELS if "DPEBM" in m[0].__name__])
def test_more_threads_than_rows_do_no_harm(model, settings, rows):
    one, many = (fitted(model, settings, rows, n_jobs) for n_jobs in (1, 16))
    assert repr(published(one)) == repr(published(many))


@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("rows", [0, 1, 4, 11])
def test_parts_are_all_rows_once(rows, parts):
    found = list(even_parts(rows, parts))
    assert len(found) == parts
    assert np.concatenate([np.arange(rows)[part] for part in found]).tolist() == list(range(rows))
    sizes = [part.stop - part.start for part in found]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("rows", "parts"),
    [(0, 1), (2 * LEAST_ROWS - 1, 1), (2 * LEAST_ROWS, 2), (9 * LEAST_ROWS, 3)],
)
def test_a_thread_is_not_woken_for_few_rows(rows, parts, monkeypatch):
    monkeypatch.setattr(holders, "LEAST_ROWS", LEAST_ROWS)
    with Threads(3) as threads:
        found = MemoryBackend(lambda part: part, rows, threads).partitions
    assert len(found) == parts
    assert (found[0].start, found[-1].stop) == (0, rows)


def test_moves_wake_no_thread_and_bins_do(monkeypatch):
    """A move is remembered until the next question, which also updates the scores."""
    shared = []
    together = Threads.together
    monkeypatch.setattr(
        Threads, "together", lambda *given, **more: shared.append(1) or together(*given, **more)
    )
    X, y = table(40, True)
    domain, loss = Domain(FEATURES, ("0", "1")), LOGISTIC
    rows = Rows(X, y.astype(np.float32))
    with Threads(2) as threads:
        holder = MemoryBackend(
            lambda part: ExactAnswers.of(rows.part(part), domain, loss), len(rows), threads
        )
        told = [len(shared)]
        cells = len(FEATURES[2].categories) + 1
        for instruction in (Merge(2, np.zeros(cells, np.int64), 1), Start(7)):
            holder.follow(instruction)
            told.append(len(shared))
    assert np.diff(told).tolist() == [1, 0]
