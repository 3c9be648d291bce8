"""Every way of benchmarks/ebm_plus_choice.py changes what it says, and nothing else."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import Domain
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from tests.benchmark import program
from tests.methods.dp_ebm_plus.test_algorithm import problem

choice = program("ebm_plus_choice")
CASES = {
    "labels": (LOGISTIC, 0.9),
    "numbers": (SQUARED, 0.9),
    "few labels": (LOGISTIC, 0.3),
    "rare labels": (LOGISTIC, 0.9),
    "opposed labels": (LOGISTIC, 8.0),
    "few numbers": (SQUARED, 0.3),
    "fewer numbers": (SQUARED, 0.05),
}
"""A loss and epsilon: of 0.9 the signal is about 210, of 0.3 about 75, of 0.05 about 14, where
bounds are as small as they may be. Of rare labels one in 20
positives is kept, so that rows are few by the labels alone. Opposed labels are rare as well: 5 % of
them are positive, those where two features that mostly go together differ most."""
EPOCHS = 16
"""With fewer, steps of few rows are as long as they may be, whatever the bound."""
FEW_NUMBERS = {"few numbers", "fewer numbers"}
FEW = {"few labels", "rare labels", *FEW_NUMBERS}
LABELS = {"labels", "few labels", "rare labels", "opposed labels"}
CHANGED = {
    "as it is": set(),
    "rival": set(),
    "version 22": set(),
    "coarse": {*CASES} - FEW,
    "fine": FEW,
    "bound 1": LABELS,
    "uncentred": {*CASES},
    "alike": {"labels", "opposed labels"},
    "whole paths": FEW,
    "flat bound": {"few labels"},
    "short steps": {"few labels"},
    "bins apart": FEW,
    "ten bins": FEW,
    "no curves": {*CASES} - FEW,
    "no jumps": {*CASES} - FEW,
    "no strays": {"labels", "opposed labels"},
    "totals as before": {"numbers", *FEW_NUMBERS},
    "strides of 1.5": {"numbers"},
    "few by rows alone": {"few labels", "rare labels"},  # the reach follows from what is few
    "sizes of an epoch": FEW_NUMBERS,
    "each bin": {*CASES} - FEW,
    "wide bins": {*CASES} - FEW,
    "alike over 0.1": {*CASES} - FEW,
    "walks": FEW,
    "steps as before": FEW_NUMBERS,
    "level averaged": FEW_NUMBERS,
    "no middle": FEW_NUMBERS,
    "wide scores": {"opposed labels"},
    "narrow bounds": {"fewer numbers"},
    "longest step 0.1": FEW_NUMBERS,
    "reach 3": FEW,
    "shortest 3": FEW - {"fewer numbers"},  # their reach is the longest
    "few below 40": FEW,
    "unclipped 3": FEW_NUMBERS,
    "8 epochs": {*CASES},
}


def fitted(way: str, case: str) -> list[np.ndarray]:
    loss, epsilon = CASES[case]
    X, y, domain = problem(loss)
    if case == "rare labels":
        y = y * (np.arange(y.size) % 20 == 0)
    if case == "opposed labels":
        difference = np.random.default_rng(0).normal(0, 0.2, y.size)
        X["money"] = 1e5 * np.clip(X["x"].fillna(0.5) - difference, 0, 1)
        y = (difference > np.quantile(difference, 0.95)).astype(int)
    if loss is SQUARED:  # far from both ends of their range: see `Loss.few`
        domain = Domain(domain.features, (-4.0, 4.0))
    estimator = DPEBMPlusClassifier if loss is LOGISTIC else DPEBMPlusRegressor
    params = {"n_epochs": EPOCHS} | choice.epochs(way)
    with choice.taking(way):
        model = estimator(epsilon, 1e-6, domain=domain, random_state=1, **params).fit(X, y)
    return [*model.shape_functions_, np.array([model.intercept_])]


whole = functools.cache(functools.partial(fitted, "as it is"))


def test_the_ways_here_are_all_there_are() -> None:
    without_numbers = {way.rstrip("0123456789.") for way in CHANGED if way not in choice.NAMED}
    assert without_numbers == {way[:-1] for way in choice.NUMBERED} | {"8 epochs"}
    assert {*choice.NAMED} < {*CHANGED}


@pytest.mark.parametrize("way", CHANGED)
def test_a_way_changes_what_it_says_and_nothing_else(way: str) -> None:
    pairs = {case: (whole(case), fitted(way, case)) for case in CASES}
    changed = {
        case
        for case, (whole, other) in pairs.items()
        if any(a.shape != b.shape or (a != b).any() for a, b in zip(whole, other, strict=True))
    }
    assert changed == CHANGED[way]


@pytest.mark.parametrize("way", ["whole", "bound", "bound x", "reach -1", "epochs", "few epochs"])
def test_what_is_no_way_is_refused(way: str) -> None:
    with pytest.raises(SystemExit, match=r"there is no way .*allowed: as"), choice.taking(way):
        pass


LABELS_OF_A_TABLE = np.tile([0, 1, 0, 0, 1], 200)


def thinned(monkeypatch: pytest.MonkeyPatch, *given: int) -> np.ndarray:
    """Return which rows of a table, 400 of them positive, are left; each must keep its label."""
    X = pd.DataFrame({"row": np.arange(1000)})
    table = SimpleNamespace(X=X, y=LABELS_OF_A_TABLE, domain="its domain")
    monkeypatch.setattr(choice, "load", lambda name: {"a table": table}[name])
    rows, labels, domain = choice.thinned("a table", *given)
    assert (list(rows.index), domain) == ([*range(len(labels))], "its domain")
    left = rows["row"].to_numpy()
    assert np.unique(left).size == left.size
    np.testing.assert_array_equal(labels, LABELS_OF_A_TABLE[left])
    return left


@pytest.mark.parametrize(("positives", "kept"), [(0, 0), (1, 1), (30, 30), (400, 400), (999, 400)])
def test_so_many_positives_are_kept_and_all_negatives(monkeypatch, positives, kept) -> None:
    left = thinned(monkeypatch, 1000, positives)
    assert LABELS_OF_A_TABLE[left].sum() == kept
    assert set(np.flatnonzero(LABELS_OF_A_TABLE == 0)) <= set(left)


def test_all_positives_are_kept_unless_their_number_is_given(monkeypatch) -> None:
    assert set(thinned(monkeypatch, 1000)) == set(range(1000))
    np.testing.assert_array_equal(thinned(monkeypatch, 50), thinned(monkeypatch, 1000)[:50])


def test_rows_are_few_after_positives_are(monkeypatch) -> None:
    left = thinned(monkeypatch, 500, 30)
    assert (left.size, LABELS_OF_A_TABLE[left].sum()) == (500, 30)


@pytest.mark.parametrize(
    "words", [["--few-rows"], ["--tables", "cod-rna", "parkinson"], ["--tables", "bike-sharing"]]
)
def test_numbers_have_no_positives(monkeypatch, capsys, words):
    monkeypatch.setattr("sys.argv", ["ebm_plus_choice.py", "--positives", "300", *words])
    with pytest.raises(SystemExit):
        choice.main()
    assert "--positives is for tables of labels; allowed: mammography" in capsys.readouterr().err
