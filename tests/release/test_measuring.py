"""A measurement of a release: what it spends, which rows it holds out, and what a unit can move."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dprepro.additive.file import load_model
from dprepro.cli import app
from dprepro.data.card import load_card
from dprepro.data.dataset import Dataset
from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.methods import registry
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.sensitivity import ADD_REMOVE
from dprepro.release.budget_book import read_book
from dprepro.release.curator import (
    Grouping,
    HeldOut,
    HeldOutCurator,
    Scores,
    Sums,
    _parts,
    measure,
)
from dprepro.release.measured import Measured, in_short, in_words, measured_of, table
from dprepro.release.measuring import HELD_OUT, Measuring, divided
from dprepro.release.statement import Statement, as_json, shipped_schema, state
from dprepro.release.statement_pages import as_markdown
from dprepro.runtime.errors import DpreproError
from tests.additive import small
from tests.commands import dprepro
from tests.privacy import measured
from tests.private_table import rows_of, write_table
from tests.release import models

MANY = 40
"""Rows of one unit, of which two count."""
UNIT = "unit: patient\nrows_per_unit: 2\nsubgroups: [ward, age]\n"


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "state"))


def card_of(folder: Path, task: str, text: str = "", n: int = 1200) -> Path:
    card = write_table(folder, task, rows_of(task, n), text).with_name("patients.yaml")
    if "unit:" in text:
        lines = (folder / "patients.csv").read_text(encoding="utf-8").splitlines()
        owners = ["patient", *(str(k // 3) for k in range(n))]
        joined = [f"{line},{owner}" for line, owner in zip(lines, owners, strict=True)]
        (folder / "patients.csv").write_text("\n".join(joined) + "\n")
    return card


def release(card: Path, *options: object) -> Statement:
    out = card.with_name("out")
    dprepro(
        "release", card, "--epsilon", 4, "--delta", 1e-5, "--clip", "--yes", "-o", out, *options
    )
    return Statement.model_validate_json((out / "statement.json").read_bytes())


def test_a_release_for_patients_says_how_good_it_is_and_what_that_spent(tmp_path: Path) -> None:
    statement = release(card_of(tmp_path, "binary", UNIT), "--measure", 0.6)
    out = tmp_path / "out"
    privacy, found = statement.privacy, statement.measured
    assert (privacy.epsilon, privacy.delta, privacy.rows_per_unit) == (4, 1e-5, 2)
    assert privacy.holds
    assert 3.9 < (privacy.spent.of_unit or 0) <= 4 + 1e-6  # dp_accounting adds up all entries
    assert statement.mechanisms[-1].releases.startswith("of rows that did not train the model")
    (entry,) = read_book().entries
    assert entry.spent.entries[-1].releases == statement.mechanisms[-1].releases
    assert entry.spent.epsilon == 4
    assert found is not None
    assert found.area is not None
    assert found.area.lower <= (found.area.value or 0) <= found.area.upper
    assert [g.feature for g in found.groups] == [None, "ward", "ward", "ward", *["age"] * 4]
    page = " ".join((out / "statement.md").read_text(encoding="utf-8").split())
    assert in_short(found) in page
    assert f"fewer than {found.smallest:,} held-out rows" in page
    assert "but for those of about 20%, chosen by chance" in page
    jsonschema.validate(
        json.loads((out / "statement.json").read_text(encoding="utf-8")), shipped_schema()
    )
    assert "agree" in dprepro("verify", out)
    assert measured_of(load_model(out / "model.json")) == found
    said = load_model(out / "model.json").origin_
    assert (said["epsilon"], said["delta"]) == (4, 1e-5)  # of fit and measurement together
    of_fit = mu_of(said["fit_epsilon"], said["fit_delta"])
    assert math.hypot(of_fit, mu_of(0.6 * 4, 1e-5)) == pytest.approx(mu_of(4, 1e-5))


def test_figures_that_the_counts_do_not_give_are_found(tmp_path: Path) -> None:
    release(card_of(tmp_path, "binary", n=300), "--measure", 0.5)
    path = tmp_path / "out" / "statement.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    values["measured"]["groups"][0]["error"]["value"] = 0.0123
    path.write_text(json.dumps(values))
    failed = CliRunner().invoke(app, ["verify", str(tmp_path / "out")])
    assert failed.exit_code == 1
    assert "groups[0].error.value says 0.0123" in failed.output


def rows_for_model(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return rows of the features of `measured.model`."""
    X = pd.DataFrame({"x": rng.random(n), "z": rng.random(n)})
    X["c"] = rng.choice(["a", "b"], n)
    return X


def hold(found: Any, truth: float) -> None:
    """Assert that an interval holds what is true of all rows; it is half as wide again.

    It is of a fifth of the rows, by chance, and at 95 %.
    """
    assert found.value is not None
    room = (found.upper - found.lower) / 4
    assert found.lower - room < truth < found.upper + room


def test_a_regression_has_the_root_of_its_mean_squared_error(tmp_path: Path) -> None:
    card = card_of(tmp_path, "regression", "subgroups: {age: [30, 60], ward: }\n", 6000)
    found = release(card, "--measure", 0.7).measured
    assert found is not None
    assert (found.area, found.bins) == (None, [])
    whole = found.groups[0].error
    assert whole.value is not None
    assert whole.lower < 0.5 < whole.upper  # the noise of the rows
    assert whole.upper - whole.lower < 0.4
    assert [g.group for g in found.groups[1:4]] == ["below 30", "30 to 60", "60 and above"]
    page = " ".join((tmp_path / "out" / "statement.md").read_text(encoding="utf-8").split())
    # On the first sheet, and where the figures are explained.
    assert f"did not train it; a residual beyond {found.bound:.4g} counts as that" in page
    assert "may lie above the interval" in page


def test_counts_have_the_root_of_their_mean_squared_error(tmp_path: Path) -> None:
    card = card_of(tmp_path, "counts", "subgroups: [ward]\n", 6000)
    statement = release(card, "--measure", 0.7, "--config", tmp_path / "study.yaml")
    found, out = statement.measured, tmp_path / "out"
    assert found is not None
    assert found.bound is not None
    assert found.bound <= 20
    model, rows = load_model(out / "model.json"), pd.read_csv(tmp_path / "patients.csv")
    residuals = rows.y - model.predict(rows[["age", "dose", "ward"]])
    limited = np.clip(residuals, -found.bound, found.bound)
    groups = [rows.ward != "", *(rows.ward == ward for ward in "abc")]
    for group, of in zip(found.groups, groups, strict=True):
        hold(group.error, float(np.sqrt(np.mean(limited[of] ** 2))))
    assert found.groups[0].error.upper < 4
    page = " ".join((out / "statement.md").read_text(encoding="utf-8").split())
    assert f"did not train it; a residual beyond {found.bound:.4g} counts as that" in page
    assert "agree" in dprepro("verify", out)
    assert measured_of(model) == found
    assert statement.privacy.holds


def test_sums_of_counts_are_those_of_the_rows() -> None:
    made, rng = measured.model("counts"), np.random.default_rng(0)
    X = rows_for_model(300, rng)
    y = rng.poisson(1.0, 300).clip(0, 2).astype(float)
    ledger = Ledger(1e9, 1e-6, ADD_REMOVE)
    budget = PrivacyBudget(1e5, 1e-6)
    found = measure(made, HeldOut(X, y), ledger, budget, (), 0.2, (0.0, 2.0), seed=0)
    made.measurement_ = found
    figures = measured_of(made)
    assert figures is not None
    residuals = y - made.predict(X)
    assert figures.bound == 2.0
    assert figures.groups[0].rows == 300
    assert figures.groups[0].error.value == pytest.approx(np.sqrt((residuals**2).mean()), abs=2e-3)
    assert figures.groups[0].difference is not None
    assert figures.groups[0].difference.value == pytest.approx(residuals.mean(), abs=2e-3)


def test_what_a_row_of_counts_adds_is_the_same_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of an array, a library may round the exponential by the place of a number in it."""
    usual = np.exp

    def by_place(values: Any, *more: Any, **options: Any) -> Any:
        found = usual(values, *more, **options)
        return found * (1 + np.arange(np.size(found)) / 7) if np.ndim(found) else found

    monkeypatch.setattr(np, "exp", by_place)
    made, rng = measured.model("counts"), np.random.default_rng(0)
    X = rows_for_model(50, rng)
    y = rng.integers(0, 3, 50).astype(float)
    parts = _parts(made, HeldOut(X, y), 2.0)
    back = _parts(made, HeldOut(X[::-1].reset_index(drop=True), y[::-1]), 2.0)
    np.testing.assert_array_equal(parts, back[::-1])
    assert not np.array_equal(made.predict(X), made.predict(X[::-1])[::-1])  # it would be found


def test_several_classes_have_their_errors_class_by_class(tmp_path: Path) -> None:
    card = card_of(tmp_path, "multiclass", "subgroups: [ward]\n", 6000)
    statement, out = release(card, "--measure", 0.6), tmp_path / "out"
    found = statement.measured
    assert found is not None
    assert [g.feature for g in found.groups] == [None, "y", "y", "y", "ward", "ward", "ward"]
    assert [g.group for g in found.groups[:4]] == ["all rows", "low", "middle", "high"]
    assert found.of_features == found.groups[4:]
    assert {(g.share, g.difference) for g in found.groups} == {(None, None)}
    model, rows = load_model(out / "model.json"), pd.read_csv(tmp_path / "patients.csv")
    y = rows.y.map({"low": 0, "middle": 1, "high": 2}).to_numpy()
    wrong = model.predict(rows[["age", "dose", "ward"]]) != y
    truth = [wrong.mean(), *(wrong[y == c].mean() for c in range(3))]
    for share, group in zip(truth, found.groups[:4], strict=True):
        hold(group.error, share)
    page = " ".join((out / "statement.md").read_text(encoding="utf-8").split())
    assert "the likeliest class is wrong for " in page
    assert "| y: middle |" in page
    assert "Whom the model serves worse was not measured" not in page
    assert "agree" in dprepro("verify", out)
    assert measured_of(model) == found
    assert statement.privacy.holds


def test_counts_of_several_classes_are_those_of_the_rows() -> None:
    made, rng = measured.model("multiclass"), np.random.default_rng(0)
    X = rows_for_model(300, rng)
    y = rng.integers(0, 3, 300)
    by_class = Grouping("y", ("0", "1", "2"), by_class=True)
    ledger = Ledger(1e9, 1e-6, ADD_REMOVE)
    found = measure(made, HeldOut(X, y), ledger, PrivacyBudget(1e5, 1e-6), (by_class,), 0.2, seed=0)
    made.measurement_ = found
    figures = measured_of(made)
    assert figures is not None
    wrong = made.predict(X) != y
    expected = [wrong.mean(), *(wrong[y == c].mean() for c in range(3))]
    np.testing.assert_allclose([g.error.value for g in figures.groups], expected, atol=2e-3)
    assert [g.rows for g in figures.groups] == [300, *np.bincount(y)]
    assert "Whom the model serves worse was not measured" in in_words(figures)[-1]
    assert in_short(figures).startswith(
        f"the likeliest class is wrong for {100 * wrong.mean():.1f}%"
    )
    assert table(figures)[2][0] == "y: 1"
    assert len(table(figures)[0]) == 3


def test_without_it_the_statement_says_that_nothing_was_measured() -> None:
    statement = state(models.model(), b"", models.publisher())
    assert statement.measured is None
    assert "measured" not in json.loads(as_json(statement))
    assert "nothing was measured: that would have spent privacy" in as_markdown(statement)


def counted(wrong: int, noise: float, high: int = 800) -> Measured:
    """Return the figures of 2,000 rows in two bins; the upper one has so many of each class."""
    sums = [2000, 0, 0, wrong - 1000]
    found = measured_of(
        small.model(
            "binary",
            measurement={
                "about": "", "held_out": 0.25, "power": 0,
                "scores": {"edges": [0.0], "counts": [[high, 200], [200, high]], "noise": noise},
                "sums": [{"feature": None, "groups": ["all"], "sums": [sums], "noise": noise}],
            },
        )
    )  # fmt: skip
    assert found is not None
    return found


def test_figures_are_put_into_words() -> None:
    near, far, hidden = counted(400, 1.0), counted(400, 1.0, 200), counted(400, 300.0)
    assert in_short(near).startswith("area under the ROC curve 0.8 (0.7")
    assert "Of 2 bins of predicted probabilities 2 have enough rows" in " ".join(in_words(near))
    assert "meets the prediction in all of them" in " ".join(in_words(near))
    assert "misses the prediction in" not in " ".join(in_words(far))  # 1/2 is in both bins
    assert in_short(hidden) == "it was measured, and the noise hides it"
    assert "0 have enough rows to compare with what happened." in " ".join(in_words(hidden))
    assert table(hidden) == [("all", "2,000", *3 * ["hidden by noise"])]
    assert table(near)[0][2].startswith("50.0% (47.")  # of the second class
    assert table(near)[0][3].startswith("20.0% (18.")
    assert "names no `subgroups`" in in_words(near)[-1]
    swapped = counted(400, 1.0, 20)
    assert "misses the prediction in 2 of them; by chance one" in " ".join(in_words(swapped))


def test_groups_that_the_model_serves_worse_are_named() -> None:
    sums = [[1000, 0, 0, wrong - 500] for wrong in (150, 400)]
    groups = [*sums, [20, 0, 0, 0]]
    found = measured_of(
        small.model(
            "binary",
            measurement={
                "about": "", "held_out": 0.25, "power": 0,
                "scores": {"edges": [0.0], "counts": [[800, 200], [200, 800]], "noise": 10.0},
                "sums": [
                    {"feature": None, "groups": ["all"], "sums": [[2020, 0, 0, -460]],
                     "noise": 10.0},
                    {"feature": "ward", "groups": ["A", "B", "C"], "sums": groups, "noise": 10.0},
                ],
            },
        )
    )  # fmt: skip
    assert found is not None
    said = " ".join(in_words(found, "yes"))
    assert "beyond both intervals: ward B. Of 2 groups" in said
    assert "Hidden by noise: ward C." in said
    assert "never predicts yes is wrong as often as yes occurs" in said
    assert "by up to about 20, so they do not add up" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--measure", 1), "between 0 and 1"),
        (("--measure", 0), "between 0 and 1"),
        (("--measure", 0.5, "--delta", 0), "delta above 0"),
    ],
)
def test_what_cannot_be_measured_spends_nothing(
    tmp_path: Path, options: tuple[object, ...], said: str
) -> None:
    with pytest.raises(DpreproError, match=said):
        release(card_of(tmp_path, "binary", n=60), *options)
    assert read_book().entries == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[wards]", "'wards', which is not under `features`.*; did you mean 'ward'"),
        ("{ward: [1]}", "whose groups are its categories"),
        ("{age: [60, 30]}", "must ascend between its bounds, 0 and 120"),
        ("{age: [0]}", "must ascend between"),
        ("[[age]]", "subgroups"),
    ],
)
def test_groups_that_are_not_public_are_refused(tmp_path: Path, text: str, said: str) -> None:
    card = card_of(tmp_path, "binary", f"subgroups: {text}\n", 60)
    with pytest.raises(DpreproError, match=said):
        load_card(str(card))


def test_the_budget_is_divided_by_mu_where_all_noise_is_gaussian(tmp_path: Path) -> None:
    card = load_card(str(card_of(tmp_path, "binary", n=60)))
    found = Measuring.of(card, registry.get("dp-ebm-plus"), PrivacyBudget(1, 1e-6), 0.3)
    squares = mu_of(*found.of_fit) ** 2 + mu_of(*found.own) ** 2
    assert math.sqrt(squares) == pytest.approx(mu_of(1, 1e-6), rel=1e-6)
    assert found.own == (0.3, 1e-6)
    assert 0.9 < found.of_fit.epsilon < 0.97


# --- which rows are held out, and what a unit can move --------------------------------------------


def owned(owners: np.ndarray, seed: int = 0) -> Dataset:
    rng, n = np.random.default_rng(seed), len(owners)
    X = pd.DataFrame({"x": rng.random(n), "z": rng.random(n)})
    X["c"] = rng.choice(["a", "b"], n)
    y = rng.integers(0, 2, n)
    return Dataset("t", X, y, "binary", None, "", "", units=owners.astype(str).astype(object))


def without(dataset: Dataset, unit: str) -> Dataset:
    assert dataset.units is not None
    kept = np.flatnonzero(dataset.units != unit)
    X = dataset.X.iloc[kept].reset_index(drop=True)
    return Dataset("t", X, dataset.y[kept], "binary", None, "", "", units=dataset.units[kept])


@pytest.fixture
def one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the same key decide for neighbours: what holds for every key holds for a secret one."""
    monkeypatch.setattr("dprepro.experiment.splits.bounding_key", lambda: b"k" * 32)
    monkeypatch.setattr("dprepro.release.measuring.bounding_key", lambda: b"k" * 32)


@pytest.mark.usefixtures("one_key")
def test_a_unit_moves_its_own_side_and_answers_by_no_more_than_its_rows_are_charged() -> None:
    """The unit has many rows, all alike, so that they would add up if they were not bounded."""
    whole = owned(np.append(np.arange(60) // 2, [999] * MANY))
    whole.X.loc[60:, ["x", "z"]], whole.X.loc[60:, "c"], whole.y[60:] = 0.1, "a", 1
    groupings = [Grouping(), *measured.GROUPINGS]
    reached = {"training": 0.0, "held out": 0.0}
    for unit in map(str, [*range(0, 30, 5), 999]):
        sides = [divided(each, "patient", 2) for each in (whole, without(whole, unit))]
        fewer = [len(one) - len(two) for one, two in ([t.y for t, _ in sides],)]
        parts = [answers(held, groupings) for _, held in sides]
        moved = [np.linalg.norm(a - b) / norm for (a, norm), (b, _) in zip(*parts, strict=True)]
        assert (fewer[0] == 0) != (max(moved) == 0)  # one side alone
        reached["training"] = max(reached["training"], float(fewer[0]))
        reached["held out"] = max(reached["held out"], *moved)
        assert max(moved) <= 2 * (1 + 1e-9)
    assert reached["training"] >= 2
    assert 1.4 < reached["held out"] <= 2


def answers(held: HeldOut, groupings: list[Grouping]) -> list[tuple[np.ndarray, float]]:
    """Return each exact answer in rows, with the part of one row that is charged for."""
    ledger = Ledger(1, 1e-6, ADD_REMOVE)
    curator: Any = HeldOutCurator(Private(held), ledger, PrivacyBudget(1, 1e-6))
    model = measured.model("binary")
    scores = Scores(1.0, 0.5, (-1.0, 0.0, 1.0))
    found = [(curator._score_counts(model, scores), scores.charged)]
    for grouping in groupings:
        query = Sums(math.sqrt(1.75), 0.1, grouping, 3)
        found.append((curator._sums(model, query, None) * 2.0**-16, query.charged))
    return found


@pytest.mark.usefixtures("one_key")
def test_a_unit_that_is_not_bounded_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dprepro.release.measuring.kept_rows", lambda X, *_: np.arange(len(X)))
    monkeypatch.setattr("dprepro.release.measuring.HELD_OUT", 0.999)
    with pytest.raises(AssertionError):
        test_a_unit_moves_its_own_side_and_answers_by_no_more_than_its_rows_are_charged()


def test_all_rows_of_a_unit_are_on_one_side_and_about_a_fifth_is_held_out() -> None:
    owners = np.arange(6000) // 3
    training, held = divided(owned(owners), "patient", 3)
    assert len(training.y) + len(held.targets) == 6000
    assert training.units is not None
    sizes = np.unique(training.units, return_counts=True)[1]
    assert set(sizes.tolist()) == {3}
    assert 0.17 < len(held.targets) / 6000 < 0.23
    training, held = divided(owned(np.arange(6000)), "row", 1)
    assert abs(len(held.targets) / 6000 - HELD_OUT) < 0.03


def test_another_release_holds_out_other_rows() -> None:
    owners = np.arange(400)
    sides = [divided(owned(owners), unit, 1)[0].X.to_numpy() for unit in ("row", "patient") * 2]
    assert not np.array_equal(sides[0], sides[2])
    assert not np.array_equal(sides[1], sides[3])


def held(frame: pd.DataFrame) -> HeldOut:
    return HeldOut(frame, np.array([2, 0, 1, 7, -3]))


def test_every_row_is_in_one_group_or_in_none() -> None:
    frame = pd.DataFrame({"x": [0.0, 0.3, 0.49, 0.9, np.nan], "c": ["a", "b", None, "z", "a"]})
    numeric = Grouping.of(NumericFeature("x", 0, 1, missing=True), (0.3, 0.5))
    assert numeric.names == ("below 0.3", "0.3 to 0.5", "0.5 and above", "(missing)")
    assert numeric.cells(held(frame)).tolist() == [0, 1, 1, 2, 3]
    assert Grouping.of(NumericFeature("x", 0, 1)).cells(held(frame)).tolist() == [0, 1, 1, 3, -1]
    letters = Grouping.of(CategoricalFeature("c", ("a", "b"), missing=True))
    assert letters.cells(held(frame)).tolist() == [0, 1, 2, -1, 0]
    as_category = frame.astype({"c": "category"})
    assert letters.cells(held(as_category)).tolist() == [0, 1, 2, -1, 0]
    assert Grouping().cells(held(frame)).tolist() == [0] * 5
    by_class = Grouping("y", ("low", "middle", "high"), by_class=True)
    assert by_class.cells(held(frame)).tolist() == [2, 0, 1, 2, 0]
