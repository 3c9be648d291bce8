"""Where papers lie: the folders that come with dprepro, and folders of a user's own."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import dprepro
from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.files import is_file, written_as_path
from dprepro.runtime.yaml_files import read_yaml

FOLDER = Path(dprepro.__file__).resolve().parent / "papers" / "library"
"""The papers that are reproduced here, a folder each; its README says which files one has."""

LAYOUT = "paper.yaml"
"""The file that makes a folder a paper."""

_own: dict[str, Path] = {}


def paper_folders(folder: Path = FOLDER) -> dict[str, Path]:
    """Return the folders of papers by name: those in `folder`, sorted, then those opened."""
    return {path.parent.name: path.parent for path in sorted(folder.glob("*/cells.csv"))} | _own


def files_of(name: str, path: Path | None = None, folder: Path = FOLDER) -> list[Path]:
    """Return `path` alone if it is given, else the files called `name` of `paper_folders`."""
    if path is not None:
        return [path]
    own = (place / name for place in _own.values())
    return [*sorted(folder.glob(f"*/{name}")), *filter(is_file, own)]


def table_names(paper: str) -> list[str]:
    """Return the names of the tables that a paper lays out; its layout is not checked."""
    path = paper_folders()[paper] / LAYOUT
    return _tables(path, path.stat().st_mtime_ns)


@cache  # hundreds of configs answer to a few papers
def _tables(path: Path, changed: int) -> list[str]:
    found = read_yaml(path, text_only=True).values
    tables = found.get("tables") if isinstance(found, dict) else None
    return list(map(str, tables or ()))


def find_paper(given: str, beside: Path = Path()) -> str:
    """Return the name of the paper that a user means; a folder of their own counts as opened.

    From then on its cells, claims and deviations are found by its name in this process.

    Parameters
    ----------
    given
        The name of a paper of `FOLDER`, the beginning of one, or the path of a folder.
    beside
        Where a relative path starts.

    Raises
    ------
    DpreproError
        If there is no such paper, several have a name that begins so, or the folder has no
        ``paper.yaml`` that names the paper; the message lists the names.
    """
    names = [path.parent.name for path in sorted(FOLDER.glob(f"*/{LAYOUT}"))]
    if given in names:
        return given
    if is_folder(given, beside):
        return _open(beside / Path(given).expanduser(), names)
    known = [*names, *_own]
    found = [name for name in known if given and name.startswith(given)]
    if given in _own or len(found) == 1:
        return given if given in _own else found[0]
    if found:
        raise DpreproError(
            f"document {given!r} could be {' or '.join(found)}; give more of the name"
        )
    raise DpreproError(
        f"no document {given!r}{nearest(given, known) or '.'} Allowed: {', '.join(known)}, or the "
        "folder of a paper of your own, such as ./mypaper: `dprepro new paper NAME` writes one"
    )


def folder_beside(name: str, place: Path = Path()) -> Path | None:
    """Return the folder in `place` that is a paper of this name; None if there is none."""
    for path in sorted(place.glob(f"*/{LAYOUT}")):
        try:
            found = read_yaml(path, text_only=True).values
        except DpreproError:  # of another paper, perhaps
            continue
        if isinstance(found, dict) and found.get("paper") == name:
            return path.parent
    return None


def own_folder(name: str) -> str | None:
    """Return the folder of a user's own paper that was opened, as they name it, else None."""
    if name not in _own:
        return None
    found, here = _own[name], Path().resolve()
    return f"./{found.relative_to(here)}" if found.is_relative_to(here) else str(found)


def is_folder(given: str, beside: Path = Path()) -> bool:
    """Whether a user means a folder: it is written as a path, or holds a paper."""
    is_path = given.startswith((".", "~")) or written_as_path(given)
    return is_path or (bool(given) and is_file(beside / Path(given).expanduser() / LAYOUT))


def _open(place: Path, names: list[str]) -> str:
    path = place.parent / LAYOUT if is_file(place) else place / LAYOUT
    if not is_file(path):
        raise DpreproError(
            f"{place}: no folder of a paper: there is no {path}. `dprepro new paper NAME` writes a "
            f"folder; papers that come with dprepro: {', '.join(names)}"
        )
    folder = path.parent.resolve()
    if folder.parent == FOLDER:
        return folder.name
    source = read_yaml(path, text_only=True)
    name = source.values.get("paper") if isinstance(source.values, dict) else None
    if not isinstance(name, str) or not name:
        raise DpreproError(f"{path}: the key `paper`, the name of the paper, is missing; add it")
    if name in names:
        raise DpreproError(
            f"{source.where('paper')}: a paper that comes with dprepro is called {name!r}; give "
            "yours another name, here and in its other files"
        )
    _own[name] = folder
    return name
