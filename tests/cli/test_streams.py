from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dprepro import cli
from dprepro.cli.streams import Streams
from dprepro.judge.verdicts import Verdict
from tests.in_process import in_process
from tests.lab import Lab, lab

__all__ = ["in_process", "lab"]


@pytest.fixture(autouse=True)
def _own_streams() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
        patch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO()))
        yield


def _text(path: Path | str, encoding: str = "utf-8") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(io.FileIO(path, "w")), encoding=encoding)


def _closed_pipe() -> io.TextIOWrapper:
    reads, writes = os.pipe()
    os.close(reads)
    return io.TextIOWrapper(io.BufferedWriter(io.FileIO(writes, "w")))


def test_what_is_printed_arrives(tmp_path: Path) -> None:
    sys.stdout = _text(tmp_path / "said")
    streams = Streams()
    print("one ± two")
    assert streams.lost_output() == ""
    assert (tmp_path / "said").read_text(encoding="utf-8") == "one ± two\n"


def test_ascii_gets_signs_that_say_the_same(tmp_path: Path) -> None:
    sys.stdout = _text(tmp_path / "said", "ascii")
    streams = Streams()
    print("0.9 ±0.1 at ε=1 ☂")
    assert streams.lost_output() == ""
    assert (tmp_path / "said").read_text(encoding="utf-8") == "0.9 +-0.1 at epsilon=1 ?\n"


def test_the_signs_of_verdicts_stay_apart_in_ascii(tmp_path: Path) -> None:
    sys.stdout = _text(tmp_path / "said", "ascii")
    streams = Streams()
    print("|".join(verdict.symbol for verdict in Verdict))
    assert streams.lost_output() == ""
    assert (tmp_path / "said").read_text(encoding="utf-8") == "~|^|v|?|...|.|x\n"


def test_a_full_output_is_noted_and_ends_nothing() -> None:
    sys.stdout = _text("/dev/full")
    streams = Streams()
    print("a" * 100_000)
    assert streams.lost_output() == "No space left on device"


def test_nobody_misses_what_nobody_reads() -> None:
    sys.stdout = _closed_pipe()
    streams = Streams()
    print("a" * 100_000)
    assert streams.lost_output() == ""


def test_a_closed_output_takes_everything() -> None:
    sys.stdout = None  # type: ignore[assignment]  # as Python starts with `>&-`
    streams = Streams()
    print("a", flush=True)
    assert streams.lost_output() == ""


@pytest.mark.parametrize(("columns", "then"), [("1", "20"), ("0", None), ("70", "70")])
def test_no_output_is_too_narrow(
    monkeypatch: pytest.MonkeyPatch, columns: str, then: str | None
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    Streams()
    assert os.environ.get("COLUMNS") == then


def _main(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> object:
    monkeypatch.setattr(sys, "argv", ["dprepro", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return end.value.code


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("output", ["full", "closed", "pipe", "ascii", "narrow"])
def test_a_run_does_its_job_whatever_its_output(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    match output:
        case "full":
            sys.stdout, sys.stderr = _text("/dev/full"), _text("/dev/full")
        case "closed":
            sys.stdout = sys.stderr = None  # type: ignore[assignment]
        case "pipe":
            sys.stdout, sys.stderr = _closed_pipe(), _closed_pipe()
        case "ascii":
            sys.stdout = _text(lab.folder / "said", "ascii")
        case "narrow":
            monkeypatch.setenv("COLUMNS", "1")
    run = ("run", lab.config(methods=["noisy", "plain"]), "--results", lab.results)
    assert _main(monkeypatch, *run) == 0
    assert len(lab.records()) == 9


def test_a_list_that_cannot_be_printed_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sys.stdout, sys.stderr = _text("/dev/full"), _text(tmp_path / "error")
    assert _main(monkeypatch, "configs") == 2
    sys.stderr.flush()
    assert "standard output could not be written: No space" in (tmp_path / "error").read_text(
        encoding="utf-8"
    )
