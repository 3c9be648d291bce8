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
