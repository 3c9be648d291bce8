from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dprepro.data.card import load_card
from dprepro.experiment import run as run_module
from dprepro.experiment.config import ExperimentConfig, load_config
from dprepro.experiment.journal import read_journal
from dprepro.experiment.pending import Pending
from dprepro.experiment.record import Record
from dprepro.experiment.run import Options, Summary, look_ahead, run
from dprepro.methods import registry
from dprepro.runtime.errors import DpreproError, DpreproWarning
from tests.in_process import InProcess, in_process
from tests.lab import Lab, of_format_1

__all__ = ["in_process"]


class Watch:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.outlook: Pending | None = None
        self.records: list[Record] = []
        self.ended = 0

    def begin(self, outlook: Pending, jobs: int) -> None:
        self.outlook, self.jobs = outlook, jobs

    def advance(self, record: Record) -> None:
        self.records.append(record)

    def end(self) -> None:
        self.ended += 1


def _run(lab: Lab, config: ExperimentConfig, **options: Any) -> tuple[Summary, Watch]:
    watch = Watch()
    return run(config, Options(results=lab.results, **options), watch), watch


def _load(lab: Lab, **keys: Any) -> ExperimentConfig:
    return load_config(lab.config(**keys))


@pytest.mark.usefixtures("in_process")
class TestWhatIsRun:
    def test_everything_once_and_then_nothing(self, lab: Lab) -> None:
        config = _load(lab, methods=["noisy", "plain", "raises", "lacks-module"])
        summary, watch = _run(lab, config)
        assert summary.ran == len(watch.records) == 15
        assert summary.tally.statuses == {"ok": 9, "failed": 6, "skipped": 6}
        before = (lab.results / "lab.jsonl").read_bytes()
        again, watch = _run(lab, config)
        assert again.ran == 0
        assert watch.records == []
        assert again.tally.statuses == summary.tally.statuses
        assert again.tally.values == summary.tally.values
        assert (lab.results / "lab.jsonl").read_bytes() == before

    def test_missing_values_that_the_card_rules_out_stop_it_before_the_first_task(
        self, lab: Lab
    ) -> None:
        table = lab.folder / "tiny.csv"
        table.write_text(table.read_text(encoding="utf-8") + ",u,yes\n")
        with pytest.raises(DpreproError, match="missing in a, and the card does not allow it"):
            _run(lab, _load(lab, domain="public"))
        assert not (lab.results / "lab.jsonl").exists()
        assert _run(lab, _load(lab, domain="observed"))[0].ran == 6
        card = lab.folder / "tiny.yaml"
        card.write_text(
            card.read_text(encoding="utf-8").replace("[-5, 5]", "[-5, 5], missing: true")
        )
        assert _run(lab, _load(lab, domain="public"))[0].ran == 6

    def test_failed_tasks_only_when_asked(self, lab: Lab) -> None:
        config = _load(lab, methods=["noisy", "unless-fixed"])
        assert _run(lab, config)[0].failed == 6
        (lab.folder / "fixed").touch()
        assert _run(lab, config)[0].failed == 6
        summary, watch = _run(lab, config, retry_failed=True)
        assert summary.failed == 0
        assert {record.task.method for record in watch.records} == {"unless-fixed"}
        assert len(lab.records()) == 12

    def test_a_skipped_task_runs_once_its_obstacle_is_gone(self, lab: Lab) -> None:
        config = _load(lab, methods=["lacks-module"], splits=1)
        assert _run(lab, config)[0].tally.statuses == {"skipped": 2}
        plugin = lab.folder / "methods" / "misbehaviour.py"
        plugin.write_text(
            plugin.read_text(encoding="utf-8").replace("surely_not_installed", "json")
        )
        registry.all_methods.cache_clear()
        assert _run(lab, config)[0].tally.statuses == {"ok": 2}

    def test_what_finished_elsewhere_stays_where_its_module_is_missing(self, lab: Lab) -> None:
        plugin = lab.folder / "methods" / "misbehaviour.py"
        plugin.write_text(
            plugin.read_text(encoding="utf-8").replace("surely_not_installed", "json")
        )
        registry.all_methods.cache_clear()
        config = _load(lab, methods=["lacks-module"], splits=1)
        _run(lab, config)
        before = (lab.results / "lab.jsonl").read_bytes()
        plugin.write_text(
            plugin.read_text(encoding="utf-8").replace('"json"', '"surely_not_installed"')
        )
        registry.all_methods.cache_clear()
        with pytest.warns(DpreproWarning, match="lacks-module: its code differs"):
            assert _run(lab, config)[0].tally.statuses == {"ok": 2}
        assert (lab.results / "lab.jsonl").read_bytes() == before

    def test_fresh_runs_everything_and_keeps_the_old(self, lab: Lab) -> None:
        config = _load(lab)
        _run(lab, config)
        old = (lab.results / "lab.jsonl").read_bytes()
        records = lab.records()
        assert _run(lab, config, fresh=True)[0].ran == 6
        assert (lab.results / "lab.jsonl.bak").read_bytes() == old
        assert lab.records() == records

    def test_fresh_that_cannot_begin_leaves_the_old_in_place(self, lab: Lab) -> None:
        rows, card = lab.folder / "tiny.csv", lab.folder / "tiny.yaml"
        digest = hashlib.sha256(rows.read_bytes()).hexdigest()
        source = f"sources: [{{file: tiny.csv, sha256: {digest}}}]"  # known without the file
        card.write_text(card.read_text(encoding="utf-8").replace("file: tiny.csv", source))
        config = _load(lab)
        _run(lab, config)
        old = (lab.results / "lab.jsonl").read_bytes()
        rows.rename(lab.folder / "elsewhere.csv")
        with pytest.raises(DpreproError, match="none of its sources has it"):
            _run(lab, config, fresh=True)
        assert [place.name for place in lab.results.iterdir()] == ["lab.jsonl"]
        assert (lab.results / "lab.jsonl").read_bytes() == old

    def test_a_part_first_and_the_rest_later_is_the_whole(self, lab: Lab) -> None:
        config = _load(lab, methods=["noisy", "plain"])
        _run(lab, config, splits=1, methods=("noisy",), epsilons=(8.0,))
        assert len(lab.records()) == 1
        _run(lab, config, splits=2)
        _run(lab, config)
        whole = Lab(_subfolder(lab))
        _run(whole, load_config(whole.config(methods=["noisy", "plain"])))
        assert lab.records() == whole.records()

    def test_settings_that_changed_are_counted_as_stale(self, lab: Lab) -> None:
        _run(lab, _load(lab))
        summary, _ = _run(lab, _load(lab, seed=8))
        assert (summary.ran, summary.stale) == (6, 6)
        assert _run(lab, _load(lab, seed=8), splits=1)[0].stale == 6

    def test_looking_ahead_counts_and_writes_nothing(self, lab: Lab) -> None:
        config = _load(lab, methods=["noisy", "raises", "lacks-module"])
        options = Options(results=lab.results)
        outlook = look_ahead(config, options)
        assert (len(outlook.todo), len(outlook.done), len(outlook.skips)) == (12, 0, 6)
        assert not lab.results.exists()
        _run(lab, config, splits=1)
        outlook = look_ahead(config, options)
        assert (len(outlook.todo), len(outlook.done), len(outlook.skips)) == (8, 6, 4)
        assert len(look_ahead(config, Options(results=lab.results, fresh=True)).todo) == 12

    def test_every_run_that_adds_something_notes_its_environment(self, lab: Lab) -> None:
        config = _load(lab)
        _run(lab, config, splits=1)
        _run(lab, config)
        _run(lab, config)
        assert len(read_journal(lab.results / "lab.jsonl").environments) == 2
        kinds = [line["kind"] for line in lab.lines()]
        assert kinds[:3] == ["plan", "environment", "record"]

    def test_the_plan_is_of_the_whole_config_and_stated_when_it_changes(self, lab: Lab) -> None:
        config = _load(lab, methods=["noisy", "plain"])
        _run(lab, config, splits=1, methods=("plain",))
        _run(lab, config)
        (stated,) = [line for line in lab.lines() if line["kind"] == "plan"]
        assert stated["cells"] == [
            {"label": label, "epsilon": epsilon, "keys": keys}
            for label, epsilon in (("noisy", 1.0), ("noisy", 8.0), ("plain", None))
            for keys in [
                [
                    key
                    for split in range(3)
                    for key, record in lab.records().items()
                    if (record["task"]["label"], record["task"]["epsilon"]) == (label, epsilon)
                    and record["task"]["split"] == split
                ]
            ]
        ]
        _run(lab, _load(lab, methods=["noisy"]))
        _run(lab, config)
        labels = [
            list(dict.fromkeys(cell["label"] for cell in line["cells"]))
            for line in lab.lines()
            if line["kind"] == "plan"
        ]
        assert labels == [["noisy", "plain"], ["noisy"], ["noisy", "plain"]]

    def test_a_complete_journal_without_a_plan_gets_one_and_nothing_else(self, lab: Lab) -> None:
        config = _load(lab)
        _run(lab, config)
        journal = lab.results / "lab.jsonl"
        head, *rest = of_format_1(journal.read_bytes()).splitlines(keepends=True)
        journal.write_bytes(b"".join(rest))
        assert _run(lab, config)[0].ran == 0
        assert of_format_1(journal.read_bytes()) == b"".join([*rest, head])

    def test_what_was_not_asked_for_is_part_of_the_whole(self, lab: Lab) -> None:
        config = _load(lab, methods=["noisy", "raises"])
        _run(lab, config)
        summary, _ = _run(lab, config, splits=1, methods=("noisy",))
        assert (summary.failed, sum(summary.tally.statuses.values())) == (0, 2)
        assert summary.whole.statuses == {"ok": 6, "failed": 6}
        assert summary.whole.values == _run(lab, config)[0].tally.values


def _subfolder(lab: Lab) -> Path:
    folder = lab.folder / "other"
    folder.mkdir()
    return folder


@pytest.mark.usefixtures("in_process")
class TestWhatGoesWrong:
    def test_a_dataset_that_is_not_there_leaves_no_journal(self, lab: Lab) -> None:
        config = _load(lab)
        (lab.folder / "tiny.csv").unlink()
        with pytest.raises(DpreproError, match=r"tiny\.csv"):
            _run(lab, config)
        assert not list(lab.results.glob("*.jsonl"))

    def test_a_wrong_config_writes_nothing(self, lab: Lab) -> None:
        with pytest.raises(DpreproError, match="unknown method"):
            _run(lab, _load(lab, methods=["noizy"]))
        assert not lab.results.exists()

    def test_the_observer_hears_of_the_end_even_then(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any) -> Iterator[Record]:
            raise DpreproError("disk full")
            yield

        monkeypatch.setattr(run_module, "_collect", fail)
        watch = Watch()
        with pytest.raises(DpreproError, match="disk full"):
            run(_load(lab), Options(results=lab.results), watch)
        assert watch.ended == 1


class StopsAfter(Watch):
    """Sends this process a signal once so many records are in."""

    def __init__(self, records: int, number: signal.Signals) -> None:
        super().__init__()
        self._after, self._number = records, number

    def advance(self, record: Record) -> None:
        super().advance(record)
        if len(self.records) == self._after:
            os.kill(os.getpid(), self._number)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_signal_ends_the_run_after_writing_what_had_finished(
    lab: Lab, number: signal.Signals
) -> None:
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    watch = StopsAfter(2, number)
    with pytest.raises(KeyboardInterrupt):
        run(_load(lab), Options(results=lab.results), watch)
    # The executor of this test finishes every call at once, so all of them had finished.
    assert len(lab.records()) == len(watch.records) == 6
    assert watch.ended == 1
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers


@pytest.mark.usefixtures("in_process")
def test_a_run_says_how_long_it_took(lab: Lab) -> None:
    assert 0.0 <= run(_load(lab), Options(results=lab.results), Watch()).wall_seconds < 300.0


@pytest.mark.usefixtures("in_process")
def test_a_run_works_in_a_thread_where_signals_cannot_be_handled(lab: Lab) -> None:
    config = _load(lab)
    with ThreadPoolExecutor(1) as pool:
        summary, _ = pool.submit(_run, lab, config).result()
    assert summary.ran == 6


@pytest.mark.usefixtures("in_process")
def test_two_datasets_of_one_name_do_not_share_results(lab: Lab) -> None:
    _run(lab, _load(lab))
    card = lab.folder / "tiny.yaml"
    card.write_text(card.read_text(encoding="utf-8").replace('positive: "yes"', 'positive: "no"'))
    summary, _ = _run(lab, _load(lab))
    assert (summary.ran, summary.stale) == (6, 6)


@pytest.mark.usefixtures("in_process")
def test_the_datasets_folder_may_be_given(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (lab.folder / "tiny.csv").rename(folder / "tiny.csv")
    config = _load(lab)
    with pytest.raises(DpreproError):
        _run(lab, config)
    assert _run(lab, config, data_dir=folder)[0].tally.statuses == {"ok": 6}


def test_jobs_order_and_bad_neighbours_do_not_change_results(lab: Lab) -> None:
    """This process against two workers with methods that take their workers down."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "LocalExecutor", InProcess)
        _run(lab, _load(lab, name="calm", methods=["noisy", "plain"]), jobs=1)
    calm = lab.records("calm")
    (lab.results / "calm.jsonl").unlink()  # or its results would be taken over
    bad = ["raises", "exits", "sleeps"]
    config = _load(lab, name="wild", methods=[*bad, "plain", "noisy"], epsilons=[8, 1], splits=3)
    summary, watch = _run(lab, config, jobs=2, methods=("noisy", "plain"))
    assert watch.jobs == 2
    assert lab.records("wild") == calm

    summary, _ = _run(lab, config, jobs=2, splits=1, epsilons=(1.0,), time_limit=1.5)
    messages = {label: text for (_, label, text) in summary.tally.problems}
    assert set(messages) == set(bad)
    assert messages["exits"] == "the worker process died (EXIT(3))"
    assert messages["sleeps"] == "time limit of 1.5 s exceeded"
    assert messages["raises"].startswith("RuntimeError: (text withheld")
    good = {k: r for k, r in lab.records("wild").items() if r["status"] == "ok"}
    assert good == calm


def test_a_real_dataset_through_a_real_worker(lab: Lab) -> None:
    config = _load(lab, dataset="breast-cancer", methods=["logistic-fair"], splits=2)
    summary, _ = _run(lab, config, jobs=1)
    assert summary.failed == 0
    assert summary.tally.mean(("logistic-fair", float("inf"))) > 0.97


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"executor": "dask"}, "go together"),
        ({"address": "127.0.0.1:8786"}, "go together"),
        ({"executor": "dask", "address": "127.0.0.1:8786", "jobs": 2}, "machine: leave it out"),
    ],
)
def test_options_that_contradict_each_other(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DpreproError, match=message):
        Options(**given)


@pytest.mark.usefixtures("in_process")
def test_workers_are_told_absolute_paths(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr("dprepro.experiment.worker.warm_up", lambda *given: told.append(given))

    class Prepares(InProcess):
        def __init__(
            self, jobs: int, time_limit: float | None, warm_up: Any, processors: int
        ) -> None:
            super().__init__(jobs, time_limit, warm_up)
            warm_up()

    monkeypatch.setattr(run_module, "LocalExecutor", Prepares)
    monkeypatch.chdir(lab.folder)
    lab.config(methods=["plain", "noisy"])
    config = load_config("lab.yaml")
    run(config, Options(results=lab.results, data_dir=Path()), Watch())
    [(data, methods)] = told
    assert (data.card, data.data_dir) == (str(lab.folder / "tiny.yaml"), lab.folder)
    assert methods == ["noisy", "plain"]
    assert {r["task"]["data_fingerprint"] for r in lab.records().values()} == {data.fingerprint}


@pytest.mark.usefixtures("in_process")
def test_workers_are_told_by_a_seal_of_this_run_which_data_are_meant(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    make = run_module._data_of
    monkeypatch.setattr(
        run_module, "_data_of", lambda *given: told.append(make(*given)) or told[-1]
    )
    for name in ("one", "two"):
        config = load_config(lab.config(name, methods=["plain"]))
        run(config, Options(results=lab.results / name), Watch())
    first, second = told
    assert first.seal == load_card(first.card).seal(first.nonce)
    assert len(first.nonce) == 64
    assert (first.nonce, first.seal) != (second.nonce, second.seal)
    written = "".join(path.read_text(encoding="utf-8") for path in lab.results.rglob("*.jsonl"))
    assert not any(text in written for data in told for text in (data.nonce, data.seal))


@pytest.mark.usefixtures("in_process")
def test_refused_parameters_are_told_before_anything_is_written(lab: Lab) -> None:
    for params, problem in (({"max_bins": 0}, "refuses its"), ({"bins": 3}, "has no parameter")):
        config = load_config(lab.config(methods=[{"method": "dp-ebm-gdp", "params": params}]))
        with pytest.raises(DpreproError, match=problem):
            run(config, Options(results=lab.results), Watch())
    assert not lab.results.exists()


@pytest.mark.usefixtures("in_process")
def test_parameters_are_tried_anew_where_tasks_of_a_stated_plan_are_left(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, tried = load_config(lab.config(methods=["plain"])), list[str]()
    monkeypatch.setattr(run_module, "check_parameters", lambda config: tried.append(config.name))
    run(config, Options(results=lab.results, splits=1), Watch())
    run(config, Options(results=lab.results, splits=1), Watch())
    assert len(tried) == 1
    run(config, Options(results=lab.results), Watch())
    assert len(tried) == 2
