"""Methods by the names that tables show: ``DPEBM-GDP (2021 code)`` is ``dp-ebm-gdp-2021``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from dprepro.papers.document import load_documents
from dprepro.runtime.errors import DpreproError, nearest_names
from dprepro.runtime.text import MOST_NAMED, in_short


def name_meant(given: str, known: Collection[str]) -> str:
    """Return the label or method that a user means: `given`, or the one that tables show so.

    Letter case and spaces at the ends do not matter in what tables show. What is neither is
    returned as it is.

    Raises DpreproError if tables show several of the known names so.
    """
    if given in known:
        return given
    wanted = given.strip().casefold()
    names = sorted({name for name, title in _shown(known) if title.casefold() == wanted})
    if len(names) > 1:
        raise DpreproError(f"tables show several methods as {given!r}: name {' or '.join(names)}")
    return names[0] if names else given


def split_names(given: Iterable[str], known: Collection[str]) -> list[str]:
    """Return the names in an option that is repeated, or holds a list between commas, or both.

    What is known as a whole is one name, commas and all; so is what holds no name.
    """
    names: list[str] = []
    for text in given:
        is_one = text in known or name_meant(text, known) in known
        parts = [part.strip() for part in text.split(",") if part.strip()]
        names += [text] if is_one else parts or [text]
    return list(dict.fromkeys(names))


def nearest_meant(given: str, known: Collection[str], most: int = 1) -> str:
    """Return ``"; did you mean 'x'?"`` for the known names that are, or are shown, most alike."""
    titles = {title: name for name, title in _shown(known)}
    near = nearest_names(given, [*known, *titles], most)
    names = list(dict.fromkeys(name if name in known else titles[name] for name in near))
    return f"; did you mean {' or '.join(map(repr, names))}?" if names else ""


def any_name_meant(given: str) -> str:
    """Return the method, or the label of a printed column, that tables show as `given`.

    Raises DpreproError as `name_meant`.
    """
    from dprepro.methods import registry

    printed = (
        c.method for d in load_documents().values() for t in d.tables.values() for c in t.columns
    )
    return name_meant(given, {*registry.all_methods(), *printed})


def _shown(known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield known names with their titles: those of methods, and those of printed columns."""
    from dprepro.methods import registry  # late: the report, which imports this, trains nothing

    for name, method in registry.all_methods().items():
        if name in known:
            yield name, method.title
    for document in load_documents().values():
        for layout in document.tables.values():
            for column in layout.columns:
                if column.method in known:
                    yield column.method, column.title


def names_in_config(given: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the names that a user means, of the methods and labels of a config.

    What is given may hold lists between commas; see `split_names`.

    Raises DpreproError if the config has no such method; the message says which it has.
    """
    from dprepro.methods import registry

    names = list(dict.fromkeys(known))
    meant = [name_meant(name, names) for name in split_names(given, names)]
    for name in meant:
        registry.refuse_shared(name, names)
        if name not in names:
            raise DpreproError(
                f"no method {name!r} in the config{nearest_meant(name, names) or '.'} "
                f"Allowed: {in_short(names, MOST_NAMED)}"
            )
    return meant
