"""A config may ask for more metrics: what that does to tasks, records and runs."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from dprepro.data import PRIVATE_PREFIX
from dprepro.experiment.config import load_config
from dprepro.experiment.display import PlainDisplay, cells_table, notes, pending_table
from dprepro.experiment.forecast import Forecast
from dprepro.experiment.journal import read_journal
from dprepro.experiment.plan import asked_metrics, plan
from dprepro.experiment.record import Record
from dprepro.experiment.run import Options, Tally, look_ahead, run
from dprepro.runtime.errors import DpreproError
from tests.experiment.test_record import TASK
from tests.experiment.test_run import Watch
from tests.in_process import in_process
from tests.lab import Lab

__all__ = ["in_process"]

ALL = ["plain", {"method": "noisy", "epsilons": [1]}]
MORE = ["f1", "neg_brier_score", "roc_auc"]


def lab_config(lab: Lab, name: str = "lab", **keys: Any) -> Any:
    return load_config(lab.config(name, methods=ALL, splits=2, **keys))


def keys_of(config: Any) -> list[str]:
    return [planned.task.key for planned in plan(config)]


def test_names_are_those_of_records_and_come_once(lab: Lab) -> None:
    config = lab_config(lab, metrics=[*MORE, "f1"])
    assert asked_metrics(config) == ("auc", "f1", "brier_score")


def test_keys_of_tasks_do_not_depend_on_metrics(lab: Lab) -> None:
    before = keys_of(lab_config(lab))
    assert keys_of(lab_config(lab, metrics=MORE)) == before
    assert keys_of(lab_config(lab, metric="average_precision")) == before


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"metrics": ["recal"]}, r"line \d+, metrics\[0\]: 'recal' is no metric of tiny, a binary "
         r"dataset; did you mean 'recall'\?"),
        ({"metrics": ["f1", "balanced_acuracy"]}, r"metrics\[1\].*mean 'balanced_accuracy'"),
        ({"metrics": ["max_error"]}, "no metric of tiny, .*Allowed: auc, .* scorers: .*jaccard"),
        ({"metrics": ["adjusted_rand_score"]}, "is no metric of tiny"),
        ({"metrics": ["f1_samples"]}, "is no metric of tiny"),
        ({"metric": "mae"}, "'mae' does not exist for tiny, a binary dataset"),
    ],
)  # fmt: skip
def test_other_names_are_refused_with_what_there_is(
    lab: Lab, keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(DpreproError, match=message):
        plan(lab_config(lab, **keys))


@pytest.mark.usefixtures("in_process")
class TestRuns:
    def test_records_hold_what_was_asked_for_or_why_not(self, lab: Lab) -> None:
        config = lab_config(lab, metrics=MORE)
        run(config, Options(results=lab.results), Watch())
        records = read_journal(lab.results / "lab.jsonl").records
        assert len(records) == 4
        for record in records:
            assert set(record.metrics) == {"auc", "accuracy", "average_precision", "f1"}
            assert record.absent == {"brier_score": "the method gives no probabilities"}
            assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record

    def test_tasks_whose_records_lack_a_metric_are_run_again_once(self, lab: Lab) -> None:
        options = Options(results=lab.results)
        run(lab_config(lab), options, Watch())
        before = {r.task.key: r for r in read_journal(lab.results / "lab.jsonl").records}
        assert not any(record.absent for record in before.values())
        more = lab_config(lab, metrics=MORE)
        outlook = look_ahead(more, options)
        assert (len(outlook.todo), outlook.again, len(outlook.done)) == (4, 4, 0)
        assert run(more, options, Watch()).ran == 4
        after = {r.task.key: r for r in read_journal(lab.results / "lab.jsonl").records}
        assert after.keys() == before.keys()
        for key, record in after.items():
            assert "f1" in record.metrics
            assert before[key].metrics.items() <= record.metrics.items()
        for config in (more, lab_config(lab), lab_config(lab, metrics=["precision"])):
            expected = 4 if "precision" in config.metrics else 0
            assert len(look_ahead(config, options).todo) == expected

    def test_what_a_neighbour_has_is_taken_over_only_with_the_metrics(self, lab: Lab) -> None:
        options = Options(results=lab.results)
        run(lab_config(lab), options, Watch())
        second = lab_config(lab, "second", metrics=["f1"])
        assert run(second, options, Watch()).ran == 4
        # `lab` itself asks for it now: its neighbour has it.
        assert run(lab_config(lab, metrics=["f1"]), options, Watch()).ran == 0
        records = read_journal(lab.results / "lab.jsonl").records
        assert all("f1" in record.metrics for record in records)

    def test_a_run_says_why_tasks_are_run_again(self, lab: Lab) -> None:
        options = Options(results=lab.results)
        run(lab_config(lab), options, Watch())
        config = lab_config(lab, metrics=["f1"])
        outlook = look_ahead(config, options)
        reason = "records lack a metric that the config asks for (auc, f1)"
        console = Console(file=io.StringIO(), width=200, _environ={})
        PlainDisplay(config, console).begin(outlook, 1)
        lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
        assert "0 done before, 0 skipped, 4 to run" in lines[0]
        assert "4 of the tasks to run have finished before" in lines[1]
        assert reason in lines[1]
        console.print(pending_table(config, outlook, Forecast(())))
        printed = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
        assert printed.count("4 of the tasks to run") == 2

    def test_a_metric_that_no_record_has_is_said_below_an_empty_table(self, lab: Lab) -> None:
        config = lab_config(lab, metric="brier_score")
        summary = run(config, Options(results=lab.results), Watch())
        assert summary.ran == 4
        said = "\n".join(notes(summary, Path("journal")))
        assert "without brier_score: noisy, 2 task(s): the method gives no probabilities" in said
        assert cells_table(config, summary.whole) is not None
        assert summary.whole.values == {}


def test_a_tally_counts_records_from_before_a_metric_was_recorded() -> None:
    tally = Tally("brier_score")
    tally.add(Record(TASK, "ok", metrics={"auc": 0.5}))
    assert tally.values == {}
    assert tally.problems == {("without brier_score", "l", "run before it was recorded"): 1}


def test_only_finished_records_lack_metrics() -> None:
    record = Record(TASK, "ok", metrics={"auc": 0.5}, absent={"f1": "why"})
    assert record.lacks(["auc", "f1"]) == []
    assert record.lacks(["auc", "recall"]) == ["recall"]
    assert Record(TASK, "failed", message="boom").lacks(["auc"]) == []


def test_reasons_of_private_rows_are_named_as_exact() -> None:
    private = replace(TASK, data_fingerprint=f"{PRIVATE_PREFIX}abc-def")
    with_reason = Record(private, "ok", metrics={"auc": 0.5}, absent={"f1": "why"})
    assert any(text.startswith("absent:") for text in with_reason.exact)
    assert not any(text.startswith("absent:") for text in replace(with_reason, absent={}).exact)


def test_a_record_without_reasons_is_written_as_before() -> None:
    assert "absent" not in Record(TASK, "ok", metrics={"auc": 0.5}).to_json()
