"""What one journal holds, no other run of the folder computes again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dprepro.experiment import environment
from dprepro.experiment.config import load_config
from dprepro.experiment.journal import read_journal
from dprepro.experiment.run import Options, look_ahead, run
from dprepro.runtime.errors import DpreproError
from tests.experiment.test_run import Watch, in_process
from tests.lab import Lab, of_format_1

__all__ = ["in_process"]


def both(lab: Lab, **keys: object) -> tuple[Path, Path]:
    """Return two configs of the same tasks under different names."""
    return lab.config(**keys), lab.config("second", **keys)


@pytest.mark.usefixtures("in_process")
class TestTakingOver:
    def test_finished_tasks_are_taken_with_their_environment(self, lab: Lab) -> None:
        first, second = map(load_config, both(lab, methods=["noisy", "raises"]))
        options = Options(results=lab.results)
        run(first, options, Watch())
        outlook = look_ahead(second, options)
        assert (len(outlook.done), len(outlook.todo)) == (6, 6)  # what failed is tried again
        assert not (lab.results / "second.jsonl").exists()
        watch = Watch()
        assert run(second, options, watch).ran == 6
        assert {record.task.method for record in watch.records} == {"raises"}
        ours = read_journal(lab.results / "second.jsonl")
        theirs = read_journal(lab.results / "lab.jsonl")
        assert ours.environments[0]["taken_from"] == "lab"
        taken = [r for r in theirs.records if r.status == "ok"]
        assert [r for r in ours.records if r.status == "ok"] == taken

    def test_nothing_is_taken_twice_or_into_a_fresh_journal(self, lab: Lab) -> None:
        first, second = map(load_config, both(lab))
        options = Options(results=lab.results)
        run(first, options, Watch())
        run(second, options, Watch())
        before = (lab.results / "second.jsonl").read_bytes()
        run(second, options, Watch())
        assert (lab.results / "second.jsonl").read_bytes() == before
        assert run(second, Options(results=lab.results, fresh=True), Watch()).ran == 6

    def test_tasks_without_a_seed_are_run_again(self, lab: Lab) -> None:
        first, second = map(load_config, both(lab, seed=None))
        options = Options(results=lab.results)
        run(first, options, Watch())
        assert run(second, options, Watch()).ran == 6

    def test_other_settings_and_broken_neighbours_are_passed_over(self, lab: Lab) -> None:
        first, second = lab.config(), lab.config("second", seed=8)
        options = Options(results=lab.results)
        run(load_config(first), options, Watch())
        (lab.results / "broken.jsonl").write_text(json.dumps({"kind": "nonsense"}) + "\n")
        assert run(load_config(second), options, Watch()).ran == 6

    def test_only_the_records_asked_for_are_read(self, lab: Lab) -> None:
        config, options = load_config(lab.config()), Options(results=lab.results)
        run(config, options, Watch())
        journal = lab.results / "lab.jsonl"
        key = read_journal(journal).records[0].task.key
        *lines, last, end = journal.read_text(encoding="utf-8").splitlines(keepends=True)
        assert key not in last
        changed = last.replace('"status":"ok"', '"status":"good"')
        journal.write_text("".join([*lines, changed, end]))
        assert [record.task.key for record in read_journal(journal, {key}).records] == [key]
        with pytest.raises(DpreproError, match="checksum"):
            read_journal(journal)


def run_on(cpu: str, lab: Lab, path: Path, monkeypatch: pytest.MonkeyPatch, splits: int) -> None:
    """Run the first splits of a config on a machine with this processor."""
    describe = environment.describe
    with monkeypatch.context() as patch:
        patch.setattr(environment, "describe", lambda *given: {**describe(*given), "cpu": cpu})
        run(load_config(path), Options(results=lab.results, splits=splits), Watch())


def where_computed(journal: Path) -> list[tuple[str, str | None, int]]:
    """Return (processor, journal named, split) of each record, by the line order of a journal."""
    found, cpu, origin = [], "", None
    for line in map(json.loads, journal.read_text(encoding="utf-8").splitlines()):
        if line["kind"] == "environment":
            cpu, origin = line["cpu"], line.get("taken_from")
        elif line["kind"] == "record":
            found.append((cpu, origin, line["task"]["split"]))
    return found


@pytest.mark.usefixtures("in_process")
class TestWhereRecordsCameFrom:
    def test_each_record_keeps_the_environment_it_was_computed_in(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, second = both(lab, methods=["noisy"])
        run_on("old", lab, first, monkeypatch, splits=1)
        run_on("new", lab, first, monkeypatch, splits=2)
        run_on("mine", lab, second, monkeypatch, splits=3)
        found = where_computed(lab.results / "second.jsonl")
        machines = {split: (cpu, origin) for cpu, origin, split in found}
        assert machines == {0: ("old", "lab"), 1: ("new", "lab"), 2: ("mine", None)}

    def test_what_was_taken_over_twice_names_the_journal_it_was_computed_for(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, second = both(lab, methods=["noisy"])
        run_on("old", lab, first, monkeypatch, splits=1)
        run_on("new", lab, second, monkeypatch, splits=1)
        (lab.results / "lab.jsonl").unlink()
        run_on("mine", lab, lab.config("third", methods=["noisy"]), monkeypatch, splits=1)
        found = where_computed(lab.results / "third.jsonl")
        assert {(cpu, origin) for cpu, origin, _ in found} == {("old", "lab")}

    def test_a_record_without_an_environment_is_run_again(self, lab: Lab) -> None:
        first, second = map(load_config, both(lab))
        options = Options(results=lab.results)
        run(first, options, Watch())
        journal = lab.results / "lab.jsonl"
        plan, head, record, *rest = of_format_1(journal.read_bytes()).splitlines(keepends=True)
        journal.write_bytes(b"".join([plan, record, head, *rest]))
        assert run(second, options, Watch()).ran == 1

    def test_a_torn_neighbour_gives_its_whole_lines(self, lab: Lab) -> None:
        first, second = map(load_config, both(lab))
        options = Options(results=lab.results)
        run(first, options, Watch())
        with (lab.results / "lab.jsonl").open("ab") as journal:
            journal.write(b"\x00" * 40 + b"\n")
        assert run(second, options, Watch()).ran == 0
