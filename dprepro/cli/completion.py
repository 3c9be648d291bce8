"""Names for the completion of shells: found in files, without a library and without a config read.

A shell asks while somebody types, so an answer must take a fraction of a second. Importing the
methods takes seconds; here their files are read instead.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator
from inspect import get_annotations
from pathlib import Path
from typing import get_args

import typer
from typer.models import ParameterInfo

from dprepro.runtime.files import builtin

_PACKAGE = Path(__file__).resolve().parent.parent
_PLUGINS = "DPREPRO_METHODS"


def config_names() -> list[str]:
    """Return the names of the built-in configs, sorted."""
    return _stems(builtin("configs"))


def dataset_names() -> list[str]:
    """Return the names of the built-in datasets, sorted."""
    return _stems(builtin("datasets"))


def document_names() -> list[str]:
    """Return the names of the documents, sorted."""
    return sorted(path.parent.name for path in _PACKAGE.glob("papers/library/*/paper.yaml"))


def method_names() -> list[str]:
    """Return the names of all methods, sorted, with those of ``$DPREPRO_METHODS``.

    A method is named by the first argument, or by the argument `name`, of the call that makes it in
    the list ``METHODS`` of its file.
    """
    files = list(_PACKAGE.glob("methods/*/__init__.py"))
    if folder := os.environ.get(_PLUGINS):
        files += [*Path(folder).glob("*.py"), *Path(folder).glob("*/__init__.py")]
    return sorted({name for file in files for name in _methods_in(file)})


def journal_names() -> list[str]:
    """Return the names of the journals in the usual folder, sorted."""
    found = Path("results").glob("*")
    return sorted({path.stem for path in found if path.suffix in (".jsonl", ".parquet")})


def _stems(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))


def _methods_in(file: Path) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):  # a file of somebody's that is half written
        return
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        is_list = isinstance(target, ast.Name) and target.id == "METHODS"
        if is_list and isinstance(node, ast.Assign) and isinstance(node.value, ast.List):
            for made in node.value.elts:
                yield from _name_of(made)


def _name_of(made: ast.expr) -> Iterator[str]:
    if not isinstance(made, ast.Call):
        return
    given = [*made.args[:1], *(word.value for word in made.keywords if word.arg == "name")]
    for value in given:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.value


def _completing(*sources: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return what Typer calls with the beginning of a word; none of `sources` may be slow."""

    def complete(incomplete: str) -> list[str]:
        names = dict.fromkeys(name for source in sources for name in source())
        return [name for name in names if name.startswith(incomplete)]

    return complete


_CONFIG = _completing(config_names, journal_names)
_DATASET = _completing(dataset_names)
_METHOD = _completing(method_names)
_COMPLETED: dict[tuple[str, str], Callable[[str], list[str]]] = {
    ("*", "config"): _CONFIG,
    ("*", "configs"): _CONFIG,
    ("*", "method"): _METHOD,
    ("*", "methods"): _METHOD,
    ("*", "dataset"): _DATASET,
    ("*", "card"): _DATASET,
    ("*", "paper"): _completing(document_names),
    ("methods", "words"): _METHOD,
    ("describe", "name"): _DATASET,
    ("fetch", "names"): _completing(dataset_names, config_names),
    ("verify", "name"): _DATASET,
    ("table", "names"): _completing(dataset_names, journal_names, document_names),
    ("cite", "names"): _completing(dataset_names, method_names, document_names),
}
"""By the names of commands and parameters: what completes a parameter that holds a name."""


def complete_names(commands: typer.Typer) -> None:
    """Let all parameters that hold names complete them; where no name fits, shells take files."""
    for command in commands.registered_commands:
        function = command.callback
        assert function is not None
        name = command.name or function.__name__
        # Typer would make other objects of the annotations, which are strings here. Python 3.10's
        # `get_type_hints` hides an annotation in Optional where the default is None.
        function.__annotations__ = get_annotations(function, eval_str=True)
        for parameter, hint in function.__annotations__.items():
            found = _COMPLETED.get((name, parameter)) or _COMPLETED.get(("*", parameter))
            for said in get_args(hint):
                if found and isinstance(said, ParameterInfo) and said.autocompletion is None:
                    said.autocompletion = found
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            complete_names(group.typer_instance)
