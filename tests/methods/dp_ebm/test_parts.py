"""Steps are run in parts, with the bits of all at once: memory does not follow their number."""

import tracemalloc
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest

from dprepro.audit import find_case
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm import estimator as dp_ebm
from dprepro.methods.dp_ebm import kernel
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm.losses import LogisticLoss, SquaredLoss
from dprepro.methods.dp_ebm.queries import LeafSums, Steps
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.sensitivity import ADD_REMOVE
from dprepro.rows import table as progress
from dprepro.runtime.threads import Threads
from tests.methods.dp_ebm.lab import problem
from tests.methods.dp_ebm.test_curator import CUTS, LOSSES, RATE, boosted, made, told

DOMAIN = Domain(
    (NumericFeature("x", 0, 1, missing=True), CategoricalFeature("c", ("a", "b")),
     NumericFeature("z", 0, 1)), ("0", "1"),
)  # fmt: skip
NUMBERS = Domain(DOMAIN.features, (0.0, 1.0))


def given(case, loss):
    return kernel.Boosting(
        case.cuts, case.normals, case.scale, case.counts, case.n_bins, case.rate,
        loss.whole_start, loss.is_logistic, loss.whole_bound, loss.adaptive,
    )  # fmt: skip


@pytest.mark.parametrize("max_leaves", [1, 3, 6])
@pytest.mark.parametrize(
    "loss", [LogisticLoss(), LogisticLoss(start=0.5, adaptive=True), SquaredLoss(clip=0.5)], ids=str
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_the_kernel_goes_on_where_the_part_before_ended(jobs, loss, max_leaves):
    case = problem([7, 2, 30], max_leaves)
    targets, every = loss.whole(case.targets), given(case, loss)
    with Threads(jobs) as threads:
        whole = kernel.boost(case.codes, targets, every, threads)
        states, before, parts = np.empty(targets.size, np.int32), None, []
        for part in (slice(0, 3), slice(3, 9), slice(9, 15)):
            asked = replace(
                every, cuts=every.cuts[part], normals=every.normals[part], before=before
            )
            parts.append(kernel.boost(case.codes, targets, asked, threads, states))
            before = parts[-1].shapes
    np.testing.assert_array_equal(parts[-1].shapes, whole.shapes)
    for name in ("noise_factors", "leaf_sums"):
        found = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(found, getattr(whole, name))
    assert np.abs(whole.shapes).max() > 1000


def table(rows):
    rng = np.random.default_rng(0)
    x = np.where(rng.random(rows) < 0.1, np.nan, rng.random(rows))
    frame = {"x": x, "c": rng.choice(["a", "b"], rows), "z": rng.random(rows)}
    return frame, (rng.random(rows) < np.where(x > 0.5, 0.9, 0.2)).astype(int)


def fitted(numbers, place, **settings):
    frame, y = table(400)
    X = pd.DataFrame(frame)
    if place is not None:
        X.assign(y=y).to_parquet(place, row_group_size=150)
        X, y = place, "y"
    estimator, domain = (DPEBMRegressor, NUMBERS) if numbers else (DPEBMClassifier, DOMAIN)
    settings = {"sensitivity": "sound", "n_epochs": 7, **settings}
    return estimator(domain=domain, random_state=0, **settings).fit(X, y)


def bits(model):
    arrays = [*model.shape_functions_, *model.shape_noise_, np.array(model.intercept_)]
    return [array.tobytes() for array in arrays]


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("steps", [1, 6, 10, 20])
def test_a_fit_in_parts_has_the_bits_of_one_at_once(steps, numbers, tmp_path, monkeypatch):
    """Also where each step is a round over the rows of a table, whose progress goes on."""
    whole = bits(fitted(numbers, None))
    monkeypatch.setattr(dp_ebm, "_STEPS", steps)
    assert bits(fitted(numbers, None)) == whole
    heard = []
    with progress.listening(lambda *said: heard.append(said)):
        assert bits(fitted(numbers, tmp_path / "t.parquet")) == whole
    done = [said for said in heard if said[0] == "boosting"]
    assert done == [("boosting", step, 21) for step in range(1, 22)]


def test_memory_follows_the_rows_and_not_the_epochs():
    """Of 60,000 epochs nothing is kept but their cuts, two bytes a step (0.2.0: 240 bytes)."""

    def peak(epochs):
        tracemalloc.start()
        fitted(True, None, n_epochs=epochs)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    fitted(True, None)
    assert peak(60_000) - peak(6_000) < 1e6


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_curator_answers_steps_in_parts_within_one_budget(loss):
    whole = boosted(loss)
    curator, query = told(made(loss)[0]), LeafSums.of(loss, ADD_REMOVE, RATE)
    counts = [np.full(4, 8.0), np.full(2, 15.0)]
    parts = [curator.leaf_sums(query, Steps(CUTS[at], 2, counts)) for at in np.s_[:2, 2:]]
    np.testing.assert_array_equal(np.concatenate([p.value for p in parts]), whole.value)
    np.testing.assert_array_equal(parts[1].shapes[0], whole.shapes[0])
    with pytest.raises(SensitivityError, match="the bins of those before"):
        curator.leaf_sums(query, Steps(CUTS, 2, [np.full(5, 8.0), np.full(2, 15.0)]))
    with pytest.raises(BudgetError):
        curator.leaf_sums(query, Steps(CUTS[:2], 2, counts))


def test_the_adversary_of_an_audit_reads_steps_in_parts(monkeypatch):
    fit = find_case("dp-ebm-sound/transcript", "binary").fit
    whole = list(map(asdict, fit(True, 3).evidence))
    monkeypatch.setattr(dp_ebm, "_STEPS", 1)
    np.testing.assert_equal(list(map(asdict, fit(True, 3).evidence)), whole)
