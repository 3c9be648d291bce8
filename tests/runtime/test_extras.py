import re
from pathlib import Path

import pytest

from dprepro.runtime.errors import DpreproError
from dprepro.runtime.extras import EXTRAS, needs_extra

ROOT = Path(__file__).resolve().parents[2]


def test_the_extras_are_those_of_the_package_and_all_stands_for_them() -> None:
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["optional-dependencies"].keys() == EXTRAS | {"all", "bench", "dev"}
    assert project["optional-dependencies"]["all"] == [f"dprepro[{','.join(sorted(EXTRAS))}]"]


def test_every_extra_is_asked_for_somewhere() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "dprepro").rglob("*.py")]
    asked = {name for t in texts for name in re.findall(r'needs_extra\(\s*"(\w+)"', t)}
    assert asked | {"aplr"} == EXTRAS  # whose method is skipped: tests/experiment/test_plan.py


def test_what_is_missing_is_told_with_the_command_that_brings_it() -> None:
    class OwnError(DpreproError):
        pass

    with (
        pytest.raises(OwnError, match=r"^it needs X: pip install 'dprepro\[plot\]', twice$"),
        needs_extra("plot", "it needs X", ", twice", OwnError),
    ):
        import surely_not_installed  # noqa: F401


def test_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), needs_extra("plot", "it needs X"):
        _ = 1 / 0
