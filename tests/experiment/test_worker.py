from __future__ import annotations

import math
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from dprepro.data.card import load_card
from dprepro.data.dataset import load
from dprepro.experiment import worker
from dprepro.experiment.config import load_config
from dprepro.experiment.plan import plan, task_seed
from dprepro.experiment.record import Record, Task
from dprepro.experiment.splits import split_rows
from dprepro.experiment.worker import DataRef, rows_of, run_task, warm_up
from dprepro.methods import registry
from dprepro.runtime.errors import DpreproError
from tests.lab import CARD, Lab

ERROR = '__import__("dprepro.runtime.errors").runtime.errors.DpreproError'
TOLD = f'{ERROR}("x" * 9999)'


def _task(lab: Lab, method: str = "noisy", **keys: object) -> tuple[Task, DataRef]:
    config = load_config(lab.config(methods=[method], **keys))
    return plan(config)[0].task, DataRef(config.card)


def _run(lab: Lab, method: str = "noisy", **keys: object) -> Record:
    return run_task(*_task(lab, method, **keys))


def test_a_record_is_what_doing_it_by_hand_gives(lab: Lab) -> None:
    task, data = _task(lab)
    record = run_task(task, data)
    dataset = load(data.card)
    train, test = split_rows(len(dataset.y), task.test_share, task.seed, "tiny", task.split)
    noise = np.random.default_rng(task_seed(task)).laplace(size=len(test)) / task.epsilon
    scores = dataset.X["a"].to_numpy()[test] - dataset.X["a"].to_numpy()[train].mean() + noise
    assert record.status == "ok"
    assert record.metrics["auc"] == roc_auc_score(dataset.y[test], scores)
    assert record.metrics["accuracy"] == np.mean((scores > 0) == dataset.y[test])
    assert record.ledger is not None
    assert record.ledger["true_epsilon"] == pytest.approx(1.0)
    assert record.ledger["code"] == registry.get("noisy").code
    assert record.ledger["unpaid"] == ["fixed seed: repeatable, never for release"]
    assert set(record.seconds) == {"encode", "fit", "predict"}


def test_the_same_task_gives_the_same_record_whatever_ran_before(lab: Lab) -> None:
    config = load_config(lab.config(methods=["noisy", "plain"]))
    tasks, data = [entry.task for entry in plan(config)], DataRef(config.card)
    forwards = {task.key: run_task(task, data).metrics for task in tasks}
    backwards = {task.key: run_task(task, data).metrics for task in reversed(tasks)}
    assert forwards == backwards
    assert len({values["auc"] for values in forwards.values()}) > len(tasks) // 2


def test_a_null_seed_gives_new_noise_on_the_same_split(lab: Lab) -> None:
    task, data = _task(lab, seed=None)
    first = run_task(task, data).metrics  # ranks of 16 rows may agree by chance, not five times
    assert any(run_task(task, data).metrics != first for _ in range(5))
    plain, data = _task(lab, "plain", seed=None)
    assert run_task(plain, data).metrics == run_task(plain, data).metrics
    assert math.isinf(plain.epsilon)


def test_an_error_is_told_short_with_its_place_and_no_folders(lab: Lab) -> None:
    record = _run(lab, "raises")
    assert (record.status, record.metrics, record.ledger) == ("failed", {}, None)
    assert record.message.startswith("RuntimeError: (text withheld, as it can quote rows;")
    assert re.search(r"\(misbehaviour.py:\d+ fit\)$", record.message)
    assert "no luck" not in record.message
    assert str(lab.folder) not in record.message


def test_the_terminal_shows_an_error_whole_to_who_asks(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert _run(lab, "raises").status == "failed"
    assert "no luck today" not in capfd.readouterr().err
    monkeypatch.setenv("DPREPRO_DEBUG", "1")
    record = _run(lab, "raises")
    assert "RuntimeError: no luck today" in capfd.readouterr().err
    assert "no luck" not in record.message


def test_a_long_error_is_cut(lab: Lab) -> None:
    plugin = lab.folder / "methods" / "misbehaviour.py"
    plugin.write_text(
        plugin.read_text(encoding="utf-8").replace('RuntimeError("no luck today")', TOLD)
    )
    record = _run(lab, "raises")
    assert record.message == "x" * 600


def test_a_method_that_leaves_python_is_a_failure_like_any_other(lab: Lab) -> None:
    plugin = lab.folder / "methods" / "misbehaviour.py"
    plugin.write_text(
        plugin.read_text(encoding="utf-8").replace('RuntimeError("no luck', 'SystemExit("no luck')
    )
    assert _run(lab, "raises").message.startswith("SystemExit: (text withheld")


def test_a_ledger_that_strict_json_cannot_hold_is_a_failure(lab: Lab) -> None:
    plugin = lab.folder / "methods" / "misbehaviour.py"
    plugin.write_text(
        plugin.read_text(encoding="utf-8").replace(
            "scale, budget = 1", 'scale, budget = float("inf")'
        )
    )
    record = _run(lab)
    assert record.status == "failed"
    assert record.message.startswith("ValueError: (text withheld")


@pytest.mark.parametrize(("kind", "categories"), [("public", "uv"), ("observed", "uv")])
def test_the_domain_is_the_cards_or_that_of_the_training_rows(
    lab: Lab, kind: str, categories: str
) -> None:
    plugin = lab.folder / "methods" / "misbehaviour.py"
    plugin.write_text(
        plugin.read_text(encoding="utf-8").replace(
            "return Noisy(epsilon=setting.epsilon, seed=setting.seed, **params)",
            f'raise {ERROR}(f"{{setting.domain.features[0].upper}} {{setting.domain.is_public}}")',
        )
    )
    task, data = _task(lab, domain=kind)
    dataset = load(data.card)
    train, _ = split_rows(len(dataset.y), task.test_share, task.seed, "tiny", task.split)
    upper = 5.0 if kind == "public" else dataset.X["a"].to_numpy()[train].max()
    assert f"{upper} {kind == 'public'}" in run_task(task, data).message


def test_one_class_among_the_training_rows_is_told(lab: Lab) -> None:
    header, *rows = (lab.folder / "tiny.csv").read_text(encoding="utf-8").splitlines()
    rows = [row.replace("yes", "no") for row in rows]
    task, _ = _task(lab)
    _, test = split_rows(len(rows), task.test_share, task.seed, "tiny", task.split)
    rows[test[0]] = rows[test[0]].replace("no", "yes")
    (lab.folder / "tiny.csv").write_text("\n".join([header, *rows]) + "\n")
    task, data = _task(lab)
    message = run_task(task, data).message
    assert message == "the training rows of split 0 hold one class only"
    others = [run_task(replace(task, split=split), data).message for split in range(1, 4)]
    assert any("the test rows hold one class only" in other for other in others)


def test_warm_up_leaves_nothing_to_load(lab: Lab, tmp_path: Path) -> None:
    task, data = _task(lab)
    warm_up(data)
    (lab.folder / "tiny.csv").unlink()
    start = time.perf_counter()
    assert run_task(task, data).status == "ok"
    assert time.perf_counter() - start < 5


def test_warm_up_refuses_other_data_than_planned(lab: Lab) -> None:
    task, data = _task(lab)
    nonce = "0f" * 32
    data = replace(data, nonce=nonce, seal=load_card(data.card).seal(nonce))
    assert task.is_private
    warm_up(data, ["noisy", "plain"])
    with (lab.folder / "tiny.csv").open("a") as file:
        file.write("0.5,u,yes\n")
    with pytest.raises(DpreproError, match=r"data of tiny .* are not those that the run was"):
        warm_up(data)


def test_a_worker_needs_no_register_to_see_whether_it_has_the_same_data(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, data = _task(lab)
    monkeypatch.setenv("DPREPRO_STATE", str(lab.folder / "tiny.csv" / "no folder"))
    with pytest.raises(DpreproError, match="cannot use the register"):
        load_card(data.card).fingerprint()
    nonce = "0f" * 32
    warm_up(replace(data, nonce=nonce, seal=load_card(data.card).seal(nonce)))
    with pytest.raises(DpreproError, match="are not those that the run was planned with"):
        warm_up(replace(data, nonce="0e" * 32, seal=load_card(data.card).seal(nonce)))


def test_warm_up_refuses_where_a_method_is_missing(lab: Lab) -> None:
    _, data = _task(lab)
    with pytest.raises(DpreproError, match="unknown method 'only-elsewhere'"):
        warm_up(data, ["noisy", "only-elsewhere"])


def test_the_donors_test_set_is_scored_whole_and_trains_nothing(lab: Lab) -> None:
    rows = (lab.folder / "tiny.csv").read_text(encoding="utf-8").splitlines()
    (lab.folder / "tests.csv").write_text("\n".join([rows[0], *rows[1:31]]) + "\n")
    card = lab.folder / "tiny.yaml"
    card.write_text(card.read_text(encoding="utf-8") + "test: {sources: [{file: tests.csv}]}\n")
    plugin = lab.folder / "methods" / "misbehaviour.py"
    plugin.write_text(plugin.read_text(encoding="utf-8") + "\nNoisy.figures_ = {'n_features': 2}\n")
    config = load_config(lab.config(evaluation="test-set", splits=2, epsilons=[1]))
    tasks = [p.task for p in plan(config)]
    data = DataRef(config.card, fingerprint=tasks[0].data_fingerprint, with_test=True)
    warm_up(data)
    dataset = load(config.card, with_test=True)
    assert dataset.test is not None
    assert (len(dataset.y), len(dataset.test.y)) == (80, 30)
    metrics = [run_task(task, data).metrics for task in tasks]
    hits = [m["accuracy"] * 30 for m in metrics]
    assert hits == pytest.approx([round(h) for h in hits])
    assert metrics[0]["auc"] != metrics[1]["auc"]  # the noise differs, the rows do not
    assert metrics[0]["n_features"] == 2.0


def test_the_labels_are_counted_by_the_card_and_not_by_the_rows(lab: Lab) -> None:
    for labels, counted in (("", 2), ("labels: [u, v, w]\n", 3)):
        card = lab.folder / "tiny.yaml"
        text = (
            card.read_text(encoding="utf-8")
            .partition("features:")[0]
            .replace("target: y", "target: b")
        )
        text = text.replace("task: binary", "task: multiclass").replace('positive: "yes"\n', labels)
        card.write_text(text + ("drop: [y]\nfeatures: {a: {numeric: [-5, 5]}}\n" if labels else ""))
        kind = "public" if labels else "observed"
        config = load_config(lab.config(methods=["llm"], metric="accuracy", domain=kind))
        task, data = plan(config)[0].task, DataRef(config.card, fingerprint=str(counted))
        assert rows_of(task, data).n_classes == counted
        card.write_text(CARD)


@pytest.mark.parametrize(
    ("methods", "compiled"),
    [(["logistic-standardized", "dp-ebm-gdp"], 1), (["logistic-standardized"], 0)],
)
def test_the_process_that_plans_compiles_kernels_and_loads_none(
    methods: list[str], compiled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    for name in ("compile_once", "prepare"):
        monkeypatch.setattr(worker, name, lambda name=name: called.append(name))
    worker.compile_kernels(methods, "binary")
    assert called == ["compile_once"] * compiled


def test_a_method_that_is_missing_is_named_whatever_stands_before_it() -> None:
    with pytest.raises(DpreproError, match="no-such-method"):
        worker.compile_kernels(["dp-ebm-gdp", "no-such-method"], "binary")
