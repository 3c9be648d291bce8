"""An attack on models like a release: it finds what is there, and reads no private row."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dprepro.audit.result import AuditVerdict
from dprepro.cli import app
from dprepro.data.card import load_card
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature, TaskKind
from dprepro.data.encode import ENCODINGS
from dprepro.experiment.config import load_config
from dprepro.experiment.plan import plan
from dprepro.experiment.record import Task
from dprepro.methods import registry
from dprepro.release import attack as module
from dprepro.release.attack import Shadows, attack, shadows_of
from dprepro.release.budget_book import book_path
from dprepro.release.evidence_words import attack_in_words
from dprepro.release.planning import public_domain
from dprepro.release.statement import Statement
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.private_table import rows_of, write_table
from tests.release.ledgers import gaussian_ledger

FEATURES = (NumericFeature("x", 0.0, 1.0, missing=True), CategoricalFeature("c", ("a", "b", "z")))
UNIT = "unit: ward\nrows_per_unit: 3\n"


def task_of(tmp_path: Path, epsilon: float, kind: str, method: str = "dp-ebm-plus") -> Task:
    table = write_table(tmp_path, kind, rows_of(kind, 9), epsilons=[epsilon], methods=[method])
    return plan(load_config(str(table)), None, identify=False)[0].task


def shadows(tmp_path: Path, epsilon: float, kind: TaskKind = "binary") -> Shadows:
    target = ("no", "yes") if kind == "binary" else (-2.0, 4.0)
    task = task_of(tmp_path, epsilon, kind)
    return shadows_of(task, kind, Domain(FEATURES, target), np.random.default_rng(0))


@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_without_protection_the_canary_is_found(tmp_path: Path, kind: TaskKind) -> None:
    found = attack(shadows(tmp_path, 200.0, kind), 40, seed=1)
    assert (found.shadow_models, found.judged, found.epsilon) == (40, 20, 200.0)
    assert found.auc > 0.95
    assert found.epsilon_lower_bound is not None
    assert 2 < found.epsilon_lower_bound < 200


def test_with_much_noise_it_is_not(tmp_path: Path) -> None:
    found = attack(shadows(tmp_path, 0.05), 40, seed=1)
    assert 0.1 < found.auc < 0.9
    assert found.epsilon_lower_bound == 0
    assert found.false_positive_rate <= module.FALSE_POSITIVES


def test_no_drawn_row_has_a_value_of_the_canary(tmp_path: Path) -> None:
    found = shadows(tmp_path, 1.0)
    (present, y), (absent, _) = found.present, found.absent
    assert (len(present), len(absent)) == (module.ROWS + 1, module.ROWS)
    last = present.iloc[-1]
    assert (last["x"], last["c"]) == (1.0, "z") == tuple(found.canary.iloc[0])
    assert absent["x"].max() <= 0.9
    assert set(absent["c"]) == {"a", "b"}
    assert y[-1] == 1
    assert np.mean(y[:-1]) == pytest.approx(0.1)


class Lies(Shadows):
    """Models that show whether the canary is in, with a ledger of much noise."""

    def fit(self, present: bool, seed: int | None) -> Any:
        return SimpleNamespace(ledger_=gaussian_ledger(0.1, unit="row"), present=present)

    def observe(self, model: Any) -> np.ndarray:
        return np.array([float(model.present)])


def test_what_an_attack_refutes_is_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(module, "Shadows", Lies)
    card = write_table(tmp_path, "binary", rows_of("binary", 60)).with_name("patients.yaml")
    options = ("--delta", "1e-5", "--yes", "-o", str(tmp_path / "out"), "--attack", "60")
    outcome = CliRunner().invoke(app, ["release", str(card), "--epsilon", "0.1", *options])
    assert isinstance(outcome.exception, DpreproError)
    assert "refutes the guarantee" in str(outcome.exception)
    assert "Nothing was spent and nothing was written" in str(outcome.exception)
    assert not book_path().exists()
    assert not (tmp_path / "out").exists()


def test_a_release_states_what_an_attack_showed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "state"))
    card = write_table(tmp_path, "binary", rows_of("binary", 60), UNIT).with_name("patients.yaml")
    card.write_text(
        card.read_text(encoding="utf-8").replace("  ward: {categories: [a, b, c]}\n", "")
    )
    out = tmp_path / "out"
    release = ("release", card, "--epsilon", 1, "--delta", "1e-5", "--yes", "-o", out)
    dprepro(*release, "--attack", 40)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    text = (out / "statement.json").read_text(encoding="utf-8")
    json.loads(text, parse_constant=refuse)  # NaN and infinity are no JSON
    found = Statement.model_validate_json(text).publisher.attack
    assert found is not None
    assert (found.shadow_models, found.judged, found.canary_rows) == (40, 20, 3)
    assert (found.epsilon, found.delta) == (1, 1e-5)
    verdict = AuditVerdict(found.verdict)
    if verdict is AuditVerdict.UNDECIDED:  # so few runs can be so by chance, but not twice
        again = tmp_path / "again"
        dprepro(*release[:-1], again, "--attack", 40)
        second = Statement.model_validate_json((again / "statement.json").read_bytes())
        assert second.publisher.attack is not None
        verdict = AuditVerdict(second.publisher.attack.verdict)
    assert verdict in (AuditVerdict.WITHIN, AuditVerdict.FEW_RUNS)
    assert not found.has_public_rows
    assert "has_public_rows" not in text
    page = " ".join((out / "statement.md").read_text(encoding="utf-8").split())
    assert "40 shadow models were fitted like this one" in page
    assert f"under the ROC curve of its guesses is {found.auc:.3g} (0.5 is chance)" in page
    assert "this says nothing of the people in the table" in page
    assert "agree" in dprepro("verify", out)
    few = CliRunner().invoke(app, [*map(str, release), "--attack", "39"])
    assert few.exit_code == 2
    assert "greater than or equal to 40" in few.output


def public_file(folder: Path, n: int, seed: str = "public") -> Path:
    """Write rows with another order of columns, and one that is not on the card."""
    rows = rows_of("binary", n)[::-1]
    lines = ["y,extra,ward,dose,age", *(f"{y},{seed},{w},{d},{a}" for a, d, w, y in rows)]
    (folder / f"{seed}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / f"{seed}.csv"


def test_public_rows_of_the_publisher_take_the_place_of_drawn_ones(tmp_path: Path) -> None:
    config = load_config(str(write_table(tmp_path, "binary", rows_of("binary", 60))))
    card = load_card(config.card)
    (tmp_path / "patients.csv").unlink()  # the private table is not read
    X, y = module.read_public_rows(public_file(tmp_path, 450), card)
    assert (len(X), list(X)) == (450, ["age", "dose", "ward"])
    task = task_of(tmp_path / "other", 200.0, "binary")
    found = shadows_of(task, "binary", public_domain(card), np.random.default_rng(0), (X, y))
    absent, targets = found.absent
    assert (len(absent), found.crowd, found.has_public_rows) == (module.ROWS, module.ROWS, True)
    given = {(age, dose) for age, dose in zip(X["age"], X["dose"].fillna(-1), strict=True)}
    assert set(zip(absent["age"], absent["dose"].fillna(-1), strict=True)) <= given
    # Hardly a row is older than 108, and the canary is where the fewest are.
    ward = min("abc", key=lambda name: int(np.sum(absent["ward"] == name)))
    assert tuple(found.canary.iloc[0][["age", "ward"]]) == (120.0, ward)
    assert found.present[1][-1] == np.bincount(targets).argmin()
    outcome = SimpleNamespace(
        evidence=SimpleNamespace(scores=np.arange(20.0), present=np.arange(20) > 9), trials=40,
        epsilon=1.0, delta=1e-5, lower_bound=0.5, confidence=0.95, verdict=AuditVerdict.WITHIN,
    )  # fmt: skip
    record = module.record_of(outcome, found)  # type: ignore[arg-type]
    assert (record.rows, record.has_public_rows, record.auc) == (400, True, 1.0)
    said = " ".join(attack_in_words(record))
    assert "400 rows of which the publisher says that they are public" in said


def test_public_rows_that_are_too_few_or_private_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "state"))
    card = write_table(tmp_path, "binary", rows_of("binary", 60)).with_name("patients.yaml")
    release = ["release", str(card), "--epsilon", "1", "--delta", "1e-5", "--yes"]
    shuffled = public_file(tmp_path, 60, "shuffled")  # the rows backwards, with one column more
    for rows, attacks, message in (
        (public_file(tmp_path, 49), ["--attack", "40"], "needs 50 rows or more"),
        (tmp_path / "patients.csv", ["--attack", "40"], "are rows of the release, which are not"),
        (shuffled, ["--attack", "40"], f"half or more of the rows of {shuffled} are rows of"),
        (tmp_path / "none.csv", ["--attack", "40"], "no such file"),
        (tmp_path / "patients.csv", [], "add --attack"),
    ):
        outcome = CliRunner().invoke(app, [*release, *attacks, "--attack-rows", str(rows)])
        assert message in str(outcome.exception)
        assert not book_path().exists()


def test_plan_and_statement_name_what_public_rows_take_for_granted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "state"))
    card = write_table(tmp_path, "binary", rows_of("binary", 60)).with_name("patients.yaml")
    out, rows = tmp_path / "out", public_file(tmp_path, 450)
    said = dprepro(
        "release", card, "--epsilon", 1, "--delta", "1e-5", "--yes", "-o", out,
        "--attack", 40, "--attack-rows", rows,
    )  # fmt: skip
    assert "nor that fewer than half of them are in the table" in " ".join(said.split())
    page = " ".join((out / "statement.md").read_text(encoding="utf-8").split())
    assert "fewer than half of them are, value for value, in the table, which was compared" in page
    assert "No private row is in these models, and nothing was spent" in page
    assert "agree" in dprepro("verify", out)


def test_methods_that_exchange_rows_have_another_in_the_canarys_place(tmp_path: Path) -> None:
    name = next(
        n for n, m in registry.all_methods().items()
        if m.adjacency == "replace-one" and "binary" in m.tasks and not m.is_unverified
    )  # fmt: skip
    task = task_of(tmp_path, 1.0, "binary", name)
    found = shadows_of(task, "binary", Domain(FEATURES, ("no", "yes")), np.random.default_rng(0))
    assert registry.get(name).encoding in ENCODINGS
    assert len(found.present[1]) == len(found.absent[1]) == module.ROWS + 1
