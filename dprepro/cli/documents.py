"""`dprepro documents`: the papers and slides whose printed numbers are compared."""

from __future__ import annotations

import typer

from dprepro.cli.finding import Words, select, show_list


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("documents")(documents)


def documents(words: Words = None) -> None:
    """List the documents whose printed numbers are compared: printed cells, and titles.

    `dprepro table NAME` shows our results in their tables, and `dprepro check --paper NAME` gives a
    verdict on each number.

    Example: dprepro documents boosted
    """
    from dprepro.published.document import load_documents

    known = load_documents()
    found = select(words or (), {name: one.title for name, one in known.items()}, "document")
    rows = [(name, f"{len(known[name].cells()):,} cells", known[name].title) for name in found]
    show_list(rows, figures=[1])
