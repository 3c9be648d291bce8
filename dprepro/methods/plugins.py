"""Files of methods of the user's own: loads them, and says in one line what is wrong with one.

What is refused here names the file. No rows have been read by then, so a message of the user's own
code is shown.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from dprepro.runtime.errors import DEBUG_VARIABLE, DpreproError

PLUGIN_VARIABLE = "DPREPRO_METHODS"

REFUSALS = (ValueError, TypeError)
"""What an estimator raises that refuses its parameters; see `Method.check_values`."""

PACKAGE_FILE = "__init__.py"
"""What makes a folder a package."""
_PREFIX = "dprepro_plugin_"
_LONGEST = 500
"""Characters of a message of the user's code that are shown."""


def plugin_files() -> list[Path]:
    """Return the files, and those of the packages, in the folder of ``$DPREPRO_METHODS``, sorted.

    Raises
    ------
    DpreproError
        If the variable names no folder.
    """
    folder = os.environ.get(PLUGIN_VARIABLE)
    if not folder:
        return []
    if not Path(folder).is_dir():
        raise DpreproError(
            f"${PLUGIN_VARIABLE} is {folder!r}, which is not a folder; "
            "set it to a folder of Python files or packages that each define METHODS, or unset it"
        )
    return sorted([*Path(folder).glob("*.py"), *Path(folder).glob(f"*/{PACKAGE_FILE}")])


def load_file(path: Path) -> ModuleType:
    """Import a file, or the package whose ``__init__.py`` it is, with the modules beside it."""
    inside = [str(path.parent)] if path.name == PACKAGE_FILE else None
    name = f"{_PREFIX}{path.parent.name if inside else path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=inside)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with blamed_on(path, "cannot be imported"):
        spec.loader.exec_module(module)
    return module


def load_parts(name: str) -> list[ModuleType]:
    """Return the modules called `name` in the packages that are loaded and have one."""
    folder = os.environ.get(PLUGIN_VARIABLE)
    found = []
    for part in sorted(Path(folder).glob(f"*/{name}.py")) if folder else []:
        package = f"{_PREFIX}{part.parent.name}"
        if package in sys.modules:
            with blamed_on(part, "cannot be imported"):
                found.append(importlib.import_module(f"{package}.{name}"))
    return found


@contextmanager
def blamed_on(path: Path, fault: str, passed: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn what the user's code raises into one line about its file, all but the types `passed`."""
    try:
        yield
    except passed:
        raise
    except MemoryError:  # runs out in sound files, too
        raise
    except (Exception, SystemExit) as error:  # a script may end in `sys.exit`
        if os.environ.get(DEBUG_VARIABLE):
            traceback.print_exception(error)
        said = " ".join(str(error).split())[:_LONGEST]
        raise DpreproError(
            f"{path}: {fault}: {type(error).__name__}{': ' if said else ''}{said}"
            f"{_line_of(error, path)}. Mend that; {DEBUG_VARIABLE}=1 prints the traceback"
        ) from error


def kind_of(value: object) -> str:
    """Return what sort of thing a value is, in words, without its content."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"an object of type {type(value).__name__}"


def _line_of(error: BaseException, path: Path) -> str:
    """Return " (line N)", the last line of the file on the way to an error; "" if there is none."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path.absolute())
    ]
    return f" (line {lines[-1]})" if lines else ""
