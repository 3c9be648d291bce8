"""`dprepro cite`: BibTeX entries of datasets, methods, documents and the software used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dprepro.cli.streams import say
from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.text import latex, one_line

if TYPE_CHECKING:
    from dprepro.data.card import Card
    from dprepro.methods.entry import Method
    from dprepro.papers.document import Document

# An entry begins at "@kind{key," and ends at a brace in the first column.
_ENTRY = re.compile(r"^@\w+\{([^,\s]+),\n.*?^\}$", re.MULTILINE | re.DOTALL)


def cite(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Datasets (or paths of cards), methods, documents (or folders of papers); "
            "default: dprepro itself.",
        ),
    ] = None,
) -> None:
    """Print BibTeX entries: where datasets, methods and documents come from.

    Each entry is printed once. What is not known for certain is left out.

    Example: dprepro cite adult dp-ebm-gdp
    """
    entries = [one for name in names or ["dprepro"] for one in _entries_of(name)]
    say("\n\n".join(dict.fromkeys(entries)))


def _entries_of(name: str) -> list[str]:
    """Return the entries of all that has this name: a method and a dataset can share one."""
    from dprepro.data.card import card_names, load_card
    from dprepro.methods.registry import all_methods, refuse_shared
    from dprepro.papers.document import load_documents, select_documents
    from dprepro.papers.folders import is_folder

    if name == "dprepro":
        return [references()["dprepro"]]
    methods, documents = all_methods(), load_documents()
    found: list[str] = []
    is_card = name in card_names() or name.endswith((".yaml", ".yml"))
    if is_card:
        found += _of_card(load_card(name))
    if name in methods:
        found += _of_method(methods[name])
    if name in documents or (not is_card and is_folder(name)):
        (document,) = select_documents(name)
        found += _of_document(document)
    if not found:
        refuse_shared(name, methods)
        known = [*card_names(), *methods, *documents]
        raise DpreproError(
            f"no dataset, method or document is called {name!r}{nearest(name, known, 3) or '.'} "
            "`dprepro data`, `dprepro methods` and `dprepro documents` list them"
        )
    return found


def _of_keys(keys: list[str] | tuple[str, ...]) -> Iterator[str]:

    for key in keys:
        if key not in references():
            raise DpreproError(
                f"`cite` names {key!r}, not an entry of {FILE.name}; a card of your own says "
                "where its rows come from in `citation` and `url`, and a paper of your own in "
                "`title`: leave `cite` out there"
            )
        yield references()[key]


def _of_card(card: Card) -> list[str]:
    """Return the entries that a card names, else one of what it says itself."""

    if card.cite:
        return list(_of_keys(card.cite))
    fields = (("title", card.title or card.name), ("note", card.citation), ("url", card.url))
    return [entry("misc", card.name, fields)]


def _of_document(document: Document) -> list[str]:
    """Return the entries that a document names, else one of its title: those of one's own."""
    if document.cite:
        return list(_of_keys(document.cite))
    return [entry("misc", document.paper, [("title", document.title)])]


def _of_method(method: Method) -> list[str]:

    if method.cite:
        return list(_of_keys(method.cite))
    return [entry("misc", method.name, (("title", method.title), ("note", method.reference)))]


FILE = Path(__file__).with_name("references.bib")


@cache
def references() -> dict[str, str]:
    """Return the text of every entry by its key, in the order of the file."""
    text = FILE.read_text(encoding="utf-8")
    return {found.group(1): found.group() for found in _ENTRY.finditer(text)}


def entry(kind: str, key: str, fields: Iterable[tuple[str, str]]) -> str:
    """Return a BibTeX entry of these fields, less the empty ones; plain text is escaped."""
    said = ",\n".join(f"  {name} = {{{_escaped(name, text)}}}" for name, text in fields if text)
    return f"@{kind}{{{key},\n{said}\n}}"


def _escaped(name: str, text: str) -> str:
    if name == "url":
        return one_line(text).replace("{", "%7B").replace("}", "%7D")
    return latex(text)
