from __future__ import annotations

from pathlib import Path

import pytest

from dprepro.runtime import files
from dprepro.runtime.files import builtin


def test_the_checkout_holds_the_cards() -> None:
    assert (builtin("datasets") / "adult.yaml").is_file()


def test_a_folder_inside_the_package_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_PACKAGE", tmp_path / "dprepro")
    assert builtin("configs") == tmp_path / "configs"
    (tmp_path / "dprepro" / "_configs").mkdir(parents=True)
    assert builtin("configs") == tmp_path / "dprepro" / "_configs"
