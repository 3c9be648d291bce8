"""What the operating system refuses is told in one line with exit code 2, whoever asked for it."""

from __future__ import annotations

import errno

import pytest

from dprepro import cli


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENAMETOOLONG, "File name too long", "x" * 5000), "File name too long"),
        (PermissionError(errno.EACCES, "Permission denied", "a[/red].csv"), "a[/red].csv: Perm"),
        (OSError("a text of a library: 17"), "error: OSError. DPREPRO_DEBUG"),
        (MemoryError("Unable to allocate 17 GiB"), "error: memory ran out"),
        (SystemError("error return without exception set"), "stopped this command without a reas"),
        (SystemError("<f 17> returned NULL without setting an exception"), "If it stops again"),
    ],
)
def test_the_line_names_file_and_reason(monkeypatch, capfd, error, said):
    def fail() -> None:
        raise error

    monkeypatch.setattr(cli, "app", fail)
    monkeypatch.delenv("DPREPRO_DEBUG", raising=False)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert said in err
    assert "17" not in err
    assert len(err) < 700
    assert err.count("\n") == 1


def test_another_error_of_the_interpreter_is_a_bug(monkeypatch, capfd):
    def fail() -> None:
        raise SystemError("bad argument to internal function")

    monkeypatch.setattr(cli, "app", fail)
    monkeypatch.delenv("DPREPRO_DEBUG", raising=False)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 70
    assert "This is a bug in dprepro" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "error: memory ran out"),
        (SystemError("error return without exception set"), "error: Python stopped this command"),
        (RuntimeError("can't allocate read lock"), "error: the operating system refused (can't"),
    ],
)
@pytest.mark.parametrize("place", ["Streams", "_show_warnings_as_lines", "_print_error"])
def test_memory_that_runs_out_beside_the_command_is_told_too(
    monkeypatch, capfd, place, error, said
):
    def fail(*_: object) -> None:
        raise error

    def app() -> None:
        raise cli.DpreproError("what the command says")

    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(cli, place, fail)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert capfd.readouterr().err.startswith(said)


def test_an_error_of_the_interpreter_beside_the_command_is_no_lack_of_memory(monkeypatch):
    def fail() -> None:
        raise SystemError("bad argument to internal function")

    monkeypatch.setattr(cli, "Streams", fail)
    with pytest.raises(SystemError, match="bad argument"):
        cli.main()


def test_without_memory_for_the_end_the_exit_code_stays(monkeypatch):
    def no_end(_: object) -> None:
        raise MemoryError

    ended = []
    monkeypatch.setattr(cli, "app", lambda: None)
    monkeypatch.setattr(cli.sys, "exit", no_end)
    monkeypatch.setattr(cli.os, "_exit", ended.append)
    cli.main()
    assert ended == [0]


def test_that_nobody_reads_it_does_not_change_the_exit_code(monkeypatch):
    def fail():
        raise MemoryError

    def full(number, text):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cli, "_code_of_command", fail)
    monkeypatch.setattr(cli.os, "write", full)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2


def test_destructors_without_memory_are_not_shown_and_others_are(monkeypatch, capfd):
    class Bad:
        def __init__(self, error):
            self.error = error

        def __del__(self):
            raise self.error

    def app() -> None:
        Bad(MemoryError())
        Bad(ValueError("of a destructor"))

    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(cli.sys, "unraisablehook", cli.sys.__unraisablehook__)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    said = capfd.readouterr().err
    assert "MemoryError" not in said
    assert "ValueError: of a destructor" in said
