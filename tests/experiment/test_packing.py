"""Packed journals take the place of lines, runs go on from them, and folders are joined."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.experiment.config import load_config
from dprepro.experiment.journal import Journal, as_it_lies, journal_bytes, read_journal
from dprepro.experiment.maintenance import merge, pack, prune, repair, unpack
from dprepro.experiment.run import Options, look_ahead, run
from dprepro.runtime.errors import DpreproError
from tests.cli.test_results import FIRST, RECORDS, SECOND, _plan
from tests.experiment.test_run import Watch
from tests.in_process import in_process
from tests.lab import Lab

__all__ = ["in_process"]


def journal(folder: Path, *entries, name: str = "x") -> Path:
    path = folder / f"{name}.jsonl"
    with Journal(path) as journal:
        for entry in entries:
            journal.append(entry)
    return path


ENTRIES = (_plan(*RECORDS), FIRST, RECORDS[0], RECORDS[3], SECOND, *RECORDS[:3])


def results(*arguments: object):
    return CliRunner().invoke(app, ["results", *map(str, arguments)])


class TestPacking:
    def test_there_and_back(self, tmp_path: Path) -> None:
        path = journal(tmp_path, *ENTRIES)
        path.chmod(0o640)
        raw = path.read_bytes()
        file = pack(path)
        assert (sorted(tmp_path.iterdir()), journal_bytes(file)) == ([file], raw)
        assert file.stat().st_mode & 0o777 == 0o640
        assert pack(file) is None
        assert unpack(file) == path
        assert (sorted(tmp_path.iterdir()), path.read_bytes()) == ([path], raw)
        assert path.stat().st_mode & 0o777 == 0o640
        assert unpack(path) is None

    def test_only_sound_journals_are_packed(self, tmp_path: Path) -> None:
        path = journal(tmp_path, *ENTRIES)
        damaged = path.read_bytes().replace(b'"split":3', b'"split":7')
        path.write_bytes(damaged)
        with pytest.raises(DpreproError, match=r"x\.jsonl, line 4: damaged: .* results verify x"):
            pack(path)
        assert (list(tmp_path.iterdir()), path.read_bytes()) == ([path], damaged)

    def test_none_that_a_run_is_writing(self, tmp_path: Path) -> None:
        path = journal(tmp_path, *ENTRIES)
        with Journal(path), pytest.raises(DpreproError, match="another run is writing"):
            pack(path)
        assert path.is_file()

    def test_none_that_no_run_has_ended(self, tmp_path: Path) -> None:
        path = journal(tmp_path, *ENTRIES)
        killed = path.read_bytes().rsplit(b"\n", 2)[0] + b"\n"
        path.write_bytes(killed)
        with pytest.raises(DpreproError, match=r"no run has ended here: .* Only sound journals"):
            pack(path)
        assert (list(tmp_path.iterdir()), path.read_bytes()) == ([path], killed)

    @pytest.mark.parametrize("command", ["pack", "repair", "prune", "verify"])
    @pytest.mark.parametrize("ended", [True, False])
    def test_none_beside_a_packed_one_of_other_records(
        self, tmp_path: Path, command: str, ended: bool
    ) -> None:
        file = pack(journal(tmp_path, *ENTRIES))
        other = journal(tmp_path / "other", FIRST, RECORDS[0], RECORDS[1], RECORDS[0])
        lines = other.read_bytes() if ended else other.read_bytes() + b"{torn"
        (tmp_path / "x.jsonl").write_bytes(lines)
        before = file.read_bytes()
        outcome = results(command, "--results", tmp_path)
        if command == "verify":
            assert "are two journals of one config: move one of them" in outcome.stdout
        elif (command, ended) != ("repair", True):
            assert "are two journals of one config" in str(outcome.exception)
        assert file.read_bytes() == before
        assert (tmp_path / "x.jsonl").read_bytes() == lines
        with pytest.raises(DpreproError, match="two journals of one config"):
            merge([tmp_path, tmp_path / "other"], tmp_path / "into")

    def test_the_other_journals_are_still_seen_to(self, tmp_path: Path) -> None:
        pack(journal(tmp_path, *ENTRIES, name="a"))
        (tmp_path / "a.jsonl").write_bytes(journal(tmp_path / "b", FIRST).read_bytes())
        journal(tmp_path, *ENTRIES, name="c")
        outcome = results("verify", "--results", tmp_path)
        assert outcome.exit_code == 1
        assert "a.parquet are two journals of one config: move one of them" in outcome.stdout
        assert "a torn" not in outcome.stdout
        assert ["c", "4"] in [line.split()[:2] for line in outcome.stdout.splitlines()]
        for command, done in (("prune", "c.jsonl"), ("pack", "c.parquet")):
            outcome = results(command, "--results", tmp_path)
            assert "two journals of one config" in str(outcome.exception)
            assert outcome.stdout.startswith(str(tmp_path / done))

    def test_a_second_process_loses_nothing(self, tmp_path: Path) -> None:
        path = journal(tmp_path, *ENTRIES)
        raw, file = path.read_bytes(), pack(path)
        with pytest.raises(DpreproError, match="no journal"):
            pack(path)
        assert (list(tmp_path.iterdir()), journal_bytes(file)) == ([file], raw)

    def test_folders_called_so_are_no_journals(self, tmp_path: Path) -> None:
        file = pack(journal(tmp_path, *ENTRIES))
        (tmp_path / "y.parquet").mkdir()
        outcome = results("verify", "--results", tmp_path)
        assert (outcome.exit_code, file.is_file()) == (0, True)

    def test_none_is_unpacked_that_a_run_has_open(self, tmp_path: Path) -> None:
        path = journal(tmp_path, *ENTRIES)
        file = pack(path)
        with Journal(path), pytest.raises(DpreproError, match="another run is writing"):
            unpack(file)
        assert file.is_file()

    def test_a_packed_journal_can_be_repaired_and_pruned(self, tmp_path: Path) -> None:
        file = pack(journal(tmp_path, *ENTRIES))
        assert repair(file)[1] is None
        assert file.is_file()
        found, backup = prune(file)
        assert (found.superseded, backup) == (1, tmp_path / "x.jsonl.bak")
        assert not file.exists()
        assert len(read_journal(tmp_path / "x.jsonl").records) == 4

    def test_commands(self, tmp_path: Path) -> None:
        journal(tmp_path, *ENTRIES)
        outcome = results("pack", "--results", tmp_path)
        assert (outcome.exit_code, outcome.output.count("x.parquet: ")) == (0, 1)
        assert "packed already" in results("pack", "x", "--results", tmp_path).output
        verified = results("verify", "--results", tmp_path)
        assert verified.exit_code == 0
        assert verified.output.split()[-7:-5] == ["x", "4"]
        assert results("unpack", "--results", tmp_path).exit_code == 0
        assert "no packed journal" in results("unpack", "--results", tmp_path).output
        damaged = pack(tmp_path / "x.jsonl")
        damaged.write_bytes(damaged.read_bytes()[:-9])
        outcome = results("verify", "--results", tmp_path)
        assert outcome.exit_code == 1
        assert "x.parquet: it is damaged: it has not the checksum it states" in outcome.output


class TestGoingOn:
    def test_lines_are_added_behind_what_was_packed(self, tmp_path: Path) -> None:
        path = journal(tmp_path, *ENTRIES[:4])
        raw, file = path.read_bytes(), pack(path)
        with Journal(path) as opened:
            assert opened.content == raw
            assert as_it_lies(path) == file
            opened.append(RECORDS[2])
        assert list(tmp_path.iterdir()) == [path]
        assert path.read_bytes().startswith(raw)
        assert len(read_journal(path).records) == 3

    def test_a_run_that_adds_nothing_leaves_it_packed(self, tmp_path: Path) -> None:
        file = pack(journal(tmp_path, *ENTRIES))
        content = file.read_bytes()
        with Journal(tmp_path / "x.jsonl"):
            pass
        assert (list(tmp_path.iterdir()), file.read_bytes()) == ([file], content)

    def test_a_fresh_journal_keeps_the_packed_one(self, tmp_path: Path) -> None:
        file = pack(journal(tmp_path, *ENTRIES))
        with Journal(tmp_path / "x.jsonl", fresh=True):
            pass
        assert list(tmp_path.iterdir()) == [file]
        with Journal(tmp_path / "x.jsonl", fresh=True) as opened:
            opened.append(RECORDS[0])
        assert sorted(p.name for p in tmp_path.iterdir()) == ["x.jsonl", "x.parquet.bak"]

    def test_a_crash_between_the_two_forms_loses_nothing(self, tmp_path: Path) -> None:
        path = journal(tmp_path, *ENTRIES[:4])
        raw, file = path.read_bytes(), pack(path)
        path.write_bytes(raw)  # the packed one was not yet removed
        with Journal(path) as opened:
            opened.append(RECORDS[2])
        assert list(tmp_path.iterdir()) == [path]
        assert not file.exists()

    def test_two_journals_of_one_config_are_refused(self, tmp_path: Path) -> None:
        other = tmp_path / "other"
        other.mkdir()
        pack(journal(other, *ENTRIES)).rename(tmp_path / "x.parquet")
        path = journal(other, FIRST, RECORDS[3]).rename(tmp_path / "x.jsonl")
        with Journal(path) as opened, pytest.raises(DpreproError, match="results merge"):
            opened.append(RECORDS[2])
        assert (tmp_path / "x.parquet").is_file()

    @pytest.mark.usefixtures("in_process")
    def test_a_run_resumes(self, lab: Lab) -> None:
        config = load_config(lab.config(methods=["noisy", "plain"]))
        options = Options(results=lab.results)
        run(config, replace(options, splits=1), Watch())
        (path,) = lab.results.glob("*.jsonl")
        raw, file = path.read_bytes(), pack(path)
        todo = len(look_ahead(config, options).todo)
        assert todo
        run(config, options, Watch())
        assert path.read_bytes().startswith(raw)
        assert not file.exists()
        whole = read_journal(path)
        pack(path)
        assert look_ahead(config, options).todo == ()
        run(config, options, Watch())
        assert list(lab.results.iterdir()) == [file]
        assert read_journal(file) == whole


class TestMerging:
    def test_records_of_two_machines(self, tmp_path: Path) -> None:
        a, b, out = (tmp_path / name for name in ("a", "b", "out"))
        failed = replace(RECORDS[1], status="failed", metrics={}, message="killed")
        other = replace(RECORDS[0], metrics={"auc": 0.6})
        journal(a, _plan(*RECORDS), FIRST, RECORDS[0], failed)
        pack(journal(b, _plan(*RECORDS), SECOND, other, *RECORDS[1:]))
        journal(b, FIRST, RECORDS[2], name="y")
        found = merge([a, b], out)
        assert [(m.name, m.folders, m.records, m.repeated, m.differing) for m in found] == [
            ("x", 2, 4, 1, 1),
            ("y", 1, 1, 0, 0),
        ]
        joined = read_journal(out / "x.jsonl")
        assert sorted(joined.records, key=lambda r: r.task.split) == RECORDS
        assert joined.plan == _plan(*RECORDS)
        pythons = {key: told["python"] for key, told in joined.computed_in.items()}
        assert pythons == {r.task.key: "34"[r.task.split > 0] for r in RECORDS}

    def test_in_the_command(self, tmp_path: Path) -> None:
        journal(tmp_path / "a", FIRST, RECORDS[0])
        journal(tmp_path / "b", FIRST, replace(RECORDS[0], metrics={"auc": 0.6}))
        outcome = results("merge", tmp_path / "a", tmp_path / "b", "--into", tmp_path / "out")
        assert outcome.exit_code == 0
        assert outcome.output.split()[5:10] == ["x", "2", "1", "1", "1"]
        assert "Differing tasks have" in outcome.output

    def test_what_cannot_be_joined(self, tmp_path: Path) -> None:
        a, b = tmp_path / "a", tmp_path / "b"
        journal(a, _plan(*RECORDS), FIRST, RECORDS[0])
        journal(b, _plan(*RECORDS[:2]), FIRST, RECORDS[0])
        with pytest.raises(DpreproError, match=r"have other plans of x: the config changed"):
            merge([a, b], tmp_path / "out")
        with pytest.raises(DpreproError, match="has journals already"):
            merge([a], b)
        with pytest.raises(DpreproError, match="no journals"):
            merge([a, tmp_path / "nowhere"], tmp_path / "new")
