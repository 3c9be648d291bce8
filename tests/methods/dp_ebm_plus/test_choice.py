"""Every way of benchmarks/ebm_plus_ways.py changes what it says, and nothing else."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from tests.benchmark import program
from tests.methods.dp_ebm_plus.test_algorithm import problem

choice, ways = program("ebm_plus_choice"), program("ebm_plus_ways")
CASES = {
    "labels": (LOGISTIC, 2.0, True),
    "numbers": (SQUARED, 2.0, True),
    "few labels": (LOGISTIC, 0.1, True),
    "few numbers": (SQUARED, 0.1, True),
    "categories": (LOGISTIC, 2.0, False),
}
"""A loss, epsilon, and whether there are numeric features; `categories` has one feature alone."""

EPOCHS = 8
NUMBERS = {"numbers", "few numbers"}
NUMERIC = {*CASES} - {"categories"}
CHANGED = {
    "as it is": set(),
    "each bin": NUMERIC,
    "each cell": NUMERIC,
    "uncentred": {*CASES},
    "bare counts": {*CASES},
    "coarse bins": NUMERIC,
    "fine bins": NUMERIC,
    "no curves": NUMERIC,
    "no long reach": NUMERIC,
    "no short reach": NUMERIC,
    "sizes alike": {*CASES},
    "even averages": {*CASES},
    "steep averages": {*CASES},
    "no damping": {*CASES},
    "no wait": NUMBERS,
    "no middle": NUMBERS,
    "histograms 0.06": {*CASES},
    "usual size 0.33": {*CASES},
    "clipped at 0.5": {*CASES} - NUMBERS,
    "clipped at 1": {*CASES} - NUMBERS,
    "unclipped 6": NUMBERS,
    "32 epochs": {*CASES},
}


def fitted(way: str, case: str) -> list[np.ndarray]:
    loss, epsilon, numeric = CASES[case]
    X, y, domain = problem(loss)
    if not numeric:
        X, domain = X[["c"]], type(domain)(domain.features[2:3], domain.target)
    estimator = DPEBMPlusClassifier if loss is LOGISTIC else DPEBMPlusRegressor
    params = {"n_epochs": EPOCHS} | ways.epochs(way)
    with ways.taking(way):
        model = estimator(epsilon, 1e-6, domain=domain, random_state=1, **params).fit(X, y)
    return [*model.shape_functions_, np.array([model.intercept_])]


whole = functools.cache(functools.partial(fitted, "as it is"))


def test_the_ways_here_are_all_there_are() -> None:
    without_numbers = {way.rstrip("0123456789.") for way in CHANGED if way not in ways.NAMED}
    assert without_numbers == {way[:-1] for way in ways.NUMBERED} | {"32 epochs"}
    assert {*ways.NAMED} < {*CHANGED}
    assert {*choice.ALL} == {*CHANGED}


@pytest.mark.parametrize("way", CHANGED)
def test_a_way_changes_what_it_says_and_nothing_else(way: str) -> None:
    pairs = {case: (whole(case), fitted(way, case)) for case in CASES}
    changed = {
        case
        for case, (whole, other) in pairs.items()
        if any(a.shape != b.shape or (a != b).any() for a, b in zip(whole, other, strict=True))
    }
    assert changed == CHANGED[way]


@pytest.mark.parametrize(
    "way", ["whole", "rival", "clipped at", "clipped at x", "unclipped -1", "epochs", "few epochs"]
)
def test_what_is_no_way_is_refused(way: str) -> None:
    with pytest.raises(SystemExit, match=r"there is no way .*allowed: as"), ways.taking(way):
        pass


def test_nothing_is_left_of_a_way() -> None:
    before = fitted("as it is", "numbers")
    for way in CHANGED:
        with ways.taking(way):
            pass
    for one, other in zip(before, fitted("as it is", "numbers"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_changes_are_means_over_tables_with_their_errors() -> None:
    found = {
        "as it is": {"phishing": [0.8], "diabetes": [0.6], "parkinson": [2.0]},
        "each bin": {"phishing": [0.81], "diabetes": [0.63], "parkinson": [2.1]},
    }
    assert choice.changes(found, False) == [
        ["binary", "each bin", "+0.0200 ± 0.0100"],
        ["regression", "each bin", "+5.00"],
    ]
    (first, _) = choice.changes(found, True)
    assert first == ["binary", "each bin", "+3.12 ± 1.88"]


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
