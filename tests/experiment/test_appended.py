from __future__ import annotations

from pathlib import Path

import pytest

from dprepro.experiment.appended import AppendedFile


def test_a_file_is_locked_cut_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "new" / "x"
    file = AppendedFile(path)
    file.append(b"one\n")
    with pytest.raises(BlockingIOError):
        AppendedFile(path)
    file.cut(2)
    assert path.read_bytes() == file.content == b"on"
    file.replace(b"other")
    with pytest.raises(BlockingIOError):
        AppendedFile(path)
    assert file.keep(b"kept").read_bytes() == b"kept"
    file.close()
    assert path.read_bytes() == b"other"
    AppendedFile(path, fresh=True).close()
    assert not path.exists()
    assert (tmp_path / "new" / "x.bak1").read_bytes() == b"other"
