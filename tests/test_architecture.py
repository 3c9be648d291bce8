"""Rules about the project as a whole."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path, PureWindowsPath

import click
import pytest
import typer.main

from dprepro.cli import app
from dprepro.experiment.config import config_names, load_experiments
from dprepro.experiment.plan import plan

ROOT = Path(__file__).resolve().parent.parent
_ONLY_PYTHON = shutil.ignore_patterns("__pycache__", "*.csv", "*.yaml", "_configs", "_datasets")


def _commands(group: click.Command, path: str = "dprepro") -> dict[str, click.Command]:
    found = {path: group}
    for name, command in getattr(group, "commands", {}).items():
        found.update(_commands(command, f"{path} {name}"))
    return found


COMMANDS = _commands(typer.main.get_command(app))


def _lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_nothing_imports_upwards() -> None:
    done = _lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_table_of_layers_is_the_one_that_imports_are_checked_against() -> None:
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    layers = [
        {(str(number), name) for name in re.findall(r"\w+", names)}
        for number, names in enumerate(contract["layers"][1:], start=1)  # below `__main__`
    ]
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| `dprepro/(\w+)` \|", text, re.MULTILINE)
    assert set(rows) == set().union(*layers)
    assert [number for number, _ in rows] == sorted((n for n, _ in rows), key=int)
    assert len(text.split()) <= 1200


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Nor by imports inside functions; those for type checkers alone do not count.

    Nor does what a package's face imports of its own modules, as an entry does its estimator.
    """
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (ROOT / "dprepro").rglob("*.py")
    }
    graph = {
        module: {
            name for name in _imported(path, set(files)) if not f"{name}.".startswith(f"{module}.")
        }
        for module, path in files.items()
    }
    TopologicalSorter(graph).prepare()


def _imported(path: Path, modules: set[str]) -> Iterator[str]:
    left: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while left:
        node = left.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            left.extend(node.orelse)
        else:
            left.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in modules else node.module for name in names)


def test_what_a_docstring_or_comment_refers_to_is_there() -> None:
    """Of `module.name` the module has such a name; any other `owner` is named in the same file.

    Names of libraries are left alone.
    """
    words, texts = {}, {}
    for path in (ROOT / "dprepro").rglob("*.py"):
        texts[path] = path.read_text(encoding="utf-8")
        words[path] = set(re.findall(r"\w+", re.sub(r"`[^`\n]*`", "", texts[path])))
    modules: dict[str, set[str]] = {}
    for path, found in words.items():
        name = path.parent.name if path.stem == "__init__" else path.stem
        modules.setdefault(name, set()).update(
            found, (other.stem for other in path.parent.iterdir())
        )
    stale = [
        f"{path.relative_to(ROOT)}: `{owner}.{name}`"
        for path, text in texts.items()
        for owner, name in re.findall(r"(?<!`)`([a-z]\w*)\.(\w+)[\w.]*`(?!`)", text)
        if (name not in modules[owner] if owner in modules else owner not in words[path])
        and not find_spec(owner)
    ]
    assert not stale


def test_a_module_that_no_layer_names_is_refused(tmp_path: Path) -> None:
    """A new module beside the packages, and a new method."""
    shutil.copytree(ROOT / "dprepro", tmp_path / "dprepro", ignore=_ONLY_PYTHON)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for place in ("elsewhere.py", "methods/newcomer.py"):
        (tmp_path / "dprepro" / place).write_text('"""A module of no layer."""\n')
    done = _lint(tmp_path)
    assert done.returncode != 0
    assert "dprepro.elsewhere" in done.stdout
    assert "dprepro.methods.newcomer" in done.stdout


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_every_command_gives_an_example_of_itself(path: str) -> None:
    command = COMMANDS[path]
    text = " ".join((command.help or "", command.epilog or ""))
    assert "Example: dprepro" in text


@pytest.mark.parametrize("name", config_names())
def test_every_built_in_config_makes_a_plan(name: str) -> None:
    for config in load_experiments(name):
        planned = plan(config, identify=False)  # the private records of henan are not here
        asked = {entry.label for method in config.methods for entry in method.expanded}
        assert {entry.task.label for entry in planned} == asked
        assert len({entry.task.key for entry in planned}) == len(planned)


def test_help_is_quick_because_nothing_heavy_is_imported() -> None:
    heavy = {"sklearn", "pandas", "numba", "scipy", "matplotlib"}
    code = "import sys, dprepro.cli; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert not heavy & set(done.stdout.split())


@pytest.mark.parametrize("folder", ["dprepro", "benchmarks"])
def test_mocks_are_for_tests(folder: str) -> None:
    users = [
        path.name
        for path in (ROOT / folder).rglob("*.py")
        if "mock" in path.read_text(encoding="utf-8")
    ]
    assert not users


WRITES = re.compile("[wax]t?[+]?")
NEEDED = {"read_text": {"encoding"}, "write_text": {"encoding", "newline"}}


def test_texts_are_read_and_written_alike_on_every_system() -> None:
    """Windows has another encoding and other ends of lines, and so other checksums."""
    seen, wrong = Counter(), []
    for path in (ROOT / "dprepro").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", "")
            modes = [given.value for given in node.args if isinstance(given, ast.Constant)]
            is_opened = name == "open" and any(WRITES.fullmatch(str(mode)) for mode in modes)
            if is_opened or name in NEEDED:
                given = {keyword.arg for keyword in node.keywords}
                given |= {"encoding"} if name == "read_text" and node.args else set()
                seen[name] += 1
                if not NEEDED.get(name, NEEDED["write_text"]) <= given:
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}: {name}")
    assert not wrong
    assert set(seen) == {*NEEDED, "open"}


def test_every_file_can_be_checked_out_on_windows_and_macos() -> None:
    """No name that Windows refuses, none that differs from another in capitals alone."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode()
    names = [name for name in listed.split("\0") if name]
    assert len(names) > 1000
    parts = {part for name in names for part in name.split("/")}
    assert not [part for part in parts if set(part) & set('<>:"\\|?*') or part[-1] in ". "]
    assert not [part for part in parts if PureWindowsPath(part).is_reserved()]
    assert not [name for name in names if len(name) > 150]  # of 260, with the folder above
    assert not [n for n, count in Counter(map(str.casefold, names)).items() if count > 1]


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    lines = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n")
        for path in (ROOT / "dprepro").rglob("*.py")
    }
    assert not {name: count for name, count in lines.items() if count > 700}
    assert len(lines) > 100


def test_tests_mirror_the_package() -> None:
    sources = {
        path.relative_to(ROOT / "dprepro")
        for path in (ROOT / "dprepro" / "experiment").glob("*.py")
        if path.name != "__init__.py"
    }
    missing = [s for s in sources if not (ROOT / "tests" / s.parent / f"test_{s.name}").is_file()]
    assert not missing
