"""`dprepro export` and `export-crate`: a model, or results, in the form of other software."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dprepro.cli.models import ModelFile
from dprepro.cli.options import DEFAULT_FOLDER, Configs, ResultsFolder, assumed_plan, shown_journals
from dprepro.cli.streams import say
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import appearing_complete, builtin, owner_only

if TYPE_CHECKING:
    from dprepro.experiment.journal import JournalContents
    from dprepro.report.crate import Run
    from dprepro.results.folder import Results

_ADDRESS = re.compile(r"https?://\S+$")


class Form(str, Enum):
    """What a model can be exported to."""

    INTERPRET = "interpret"
    ONNX = "onnx"
    SQL = "sql"
    PYTHON = "python"


class Database(str, Enum):
    """The databases that SQL can be written for."""

    POSTGRESQL = "postgresql"
    SQLITE = "sqlite"
    DUCKDB = "duckdb"
    BIGQUERY = "bigquery"
    SNOWFLAKE = "snowflake"


NEW_ROWS = "new_rows"
_KINDS = {Form.ONNX: "an ONNX graph", Form.SQL: "an SQL query", Form.PYTHON: "a Python module"}


def refuse_of_query(form: str, dialect: Database | None, table: str | None) -> None:
    """Raise `DpreproError` on an option about SQL queries, where a `form` writes none."""
    for option, given in (("--dialect", dialect), ("--table", table)):
        if given is not None:
            raise DpreproError(
                f"{option} is about an SQL query, and {form} writes none: leave it out"
            )


def require_dialect(dialect: Database | None) -> str:
    """Return the name of the database of an SQL query. Raises `DpreproError` if there is none."""
    if dialect is None:
        listed = ", ".join(each.value for each in Database)
        raise DpreproError(f"name the database with --dialect, one of: {listed}")
    return dialect.value


def export(
    model: ModelFile,
    to: Annotated[Form, typer.Option("--to", help="The form to write.")],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="Where to write: a file, which is replaced if it exists, in a folder that is made "
            "if there is none; - is standard output, but for onnx. For python it ends in .py.",
        ),
    ],
    dialect: Annotated[
        Database | None, typer.Option(help="For sql: the database.", show_default=False)
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            help="For sql: the table of new rows, by one name, without a schema.",
            show_default=NEW_ROWS,
        ),
    ] = None,
) -> None:
    """Write a saved model for use without this package.

    onnx: a graph in double precision, with one input for each feature. It needs `pip install
    'dprepro\\[onnx]'`. sql: one SELECT, in the dialect of a database. python: a module that
    needs nothing but Python; `python FILE new.csv` writes predictions, contributions and notes as
    `dprepro predict --explain` does, with counts on standard error. interpret has no safe file for
    its models: in Python, `dprepro.load_model(path).to_interpret()` makes one.

    All say what `dprepro predict` says, for missing and unseen values, too. Texts that stand for a
    missing value are those that a card has by default. Columns of a database may have any type. A
    value that is not a number where the model needs one, or is infinite, is an error in Python. In
    SQL prediction, probability and sum of such a row are NULL, and `notes` names the column; ONNX
    gives NaN for an infinite number, and codes as `notes`. To count what a model does not know,
    group by `notes`.

    Example: dprepro export model.json --to sql --dialect sqlite --output model.sql --table people
    """
    from dprepro.additive.file import load_model

    if to is Form.INTERPRET:
        raise DpreproError(
            "interpret has no safe file for its models, so the command writes none. In Python: "
            f"dprepro.load_model(pathlib.Path({str(model)!r})).to_interpret()"
        )
    if to is not Form.SQL:
        refuse_of_query(f"--to {to.value}", dialect, table)
    loaded = load_model(model)
    is_private = "not_for_release" in loaded.origin_
    target = None if output == "-" else Path(output)
    if target is not None and target.resolve() == model.resolve():
        raise DpreproError(f"{output} is the model file: name another place for the export")
    if to is Form.PYTHON and target is not None and target.suffix != ".py":
        raise DpreproError(f"{output}: the name of a module ends in .py, such as {target.stem}.py")
    if to is Form.ONNX:
        from dprepro.additive.export.onnx import save_onnx

        if target is None:
            raise DpreproError("an ONNX file is not text: name a file with --output")
        with owner_only(is_private):
            save_onnx(loaded, target)
    else:
        if to is Form.SQL:
            from dprepro.additive.export.sql import to_sql

            text = to_sql(loaded, table or NEW_ROWS, require_dialect(dialect))
        else:
            from dprepro.additive.export.plain import to_python

            text = to_python(loaded)
        if target is None:
            typer.echo(text, nl=False, color=True)
            return
        with (
            owner_only("not_for_release" in loaded.origin_),
            appearing_complete(target) as unfinished,
        ):
            unfinished.write_text(text, encoding="utf-8", newline="\n")
    say(f"{output}: the model, as {_KINDS[to]}")


def export_crate(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder to write; it must not exist yet.")
    ] = Path("crate"),
    config: Configs = None,
    results: ResultsFolder = DEFAULT_FOLDER,
    licence: Annotated[
        str | None, typer.Option(help="Address of the licence of the results, https://...")
    ] = None,
) -> None:
    """Write journals, configs, environments, verdicts and figures as an RO-Crate 1.1.

    A crate is a folder that archives such as Zenodo take: `ro-crate-metadata.json` says what each
    file is, with its checksum. Nothing is trained. Journals of private rows hold exact scores, so
    they are refused.

    Example: dprepro export-crate --config wine --output wine-crate
    """
    import dprepro.report.draw  # noqa: F401  what it needs is missed now, not at the end
    from dprepro.experiment.journal import read_journal
    from dprepro.results.folder import journal_paths, read_results

    if output.exists():
        raise DpreproError(f"--output {output}: exists already; name a new folder, or remove it")
    if licence is not None and not _ADDRESS.match(licence):
        raise DpreproError(
            f"--licence {licence!r}: give its address, e.g. https://spdx.org/licenses/CC-BY-4.0"
        )
    names = shown_journals(results, config)
    paths = journal_paths(results, names)
    held = {path.stem: read_journal(path) for path in paths}
    _refuse_private(held)
    found = read_results(results, names, assumed_plan)
    try:
        count = _write(output, paths, held, found, licence)
    except OSError as error:
        raise DpreproError(f"--output {output}: cannot be written: {error.strerror}") from error
    say(f"{output}: {len(paths)} journals, {count} files beside the metadata")


def _refuse_private(held: dict[str, JournalContents]) -> None:
    for name, contents in held.items():
        if any(record.task.is_private for record in contents.records):
            raise DpreproError(
                f"the journal {name} is of private rows and holds exact scores, which no epsilon "
                "covers; leave it out: name the others with --config"
            )


def _write(
    folder: Path,
    paths: Sequence[Path],
    held: dict[str, JournalContents],
    found: Results,
    licence: str | None,
) -> int:
    """Write the crate; the metadata comes last, so that a folder without it is not finished."""
    from dprepro.report.crate import METADATA, metadata

    described: dict[str, str] = {}
    for part in ("journals", "configs", "figures"):
        (folder / part).mkdir(parents=True)
    runs = [_run(folder, path, held[path.stem], described) for path in paths]
    environments = [e for contents in held.values() for e in contents.environments]
    _json(folder / "environments.json", environments)
    described["environments.json"] = "Machines, versions and settings of all runs."
    _verdicts(folder, found, described)
    for picture in _pictures(found, folder / "figures"):
        described[f"figures/{picture.name}"] = "The metric against epsilon, with printed values."
    times = [run.time for run in runs if run.time]
    date = max(times) if times else datetime.now(timezone.utc).isoformat(timespec="seconds")
    _json(folder / METADATA, metadata(folder, runs, described, date, licence))
    return len(described)


def _run(folder: Path, path: Path, contents: JournalContents, described: dict[str, str]) -> Run:
    from dprepro.experiment.config import config_names
    from dprepro.report.crate import Run

    name, plan = path.stem, contents.plan
    journal, config = f"journals/{path.name}", None
    (folder / journal).write_bytes(path.read_bytes())
    described[journal] = f"The journal of the config {name}: one line for each finished task."
    if plan is not None and plan.builtin and name in config_names():
        config = f"configs/{name}.yaml"
        (folder / config).write_bytes((builtin("configs") / f"{name}.yaml").read_bytes())
        described[config] = f"The config {name}, as it ships with dprepro now."
    told = contents.environments
    versions = tuple(sorted({str(one["dprepro"]) for one in told if "dprepro" in one}))
    time = max((str(one["time"]) for one in told if "time" in one), default=None)
    return Run(name, plan.title if plan else "", journal, config, time, versions)


def _verdicts(folder: Path, found: Results, described: dict[str, str]) -> None:
    from dprepro.judge.check import check_documents
    from dprepro.judge.deviations import load_reviewed
    from dprepro.judge.snapshot import recorded_text
    from dprepro.papers.document import select_documents
    from dprepro.report.layout import build_tables
    from dprepro.report.rows import recorded_rows
    from dprepro.results.margins import margins

    documents = select_documents(None)
    explained = load_reviewed()
    report = check_documents(
        documents, found, explained.deviations, margins(None), claim_deviations=explained.claims
    )
    rows = recorded_rows(build_tables(found, documents, compare=True), report)
    (folder / "verdicts.csv").write_text(recorded_text(rows), encoding="utf-8", newline="\n")
    described["verdicts.csv"] = "All cells: measured and printed values, and the verdict on each."


def _pictures(found: Results, folder: Path) -> list[Path]:
    from dprepro.papers.document import select_documents
    from dprepro.report.draw.pages import write_figures
    from dprepro.report.draw.panels import build_panels
    from dprepro.report.layout import build_tables

    tables = build_tables(found, select_documents(None), compare=True)
    return write_figures(build_panels(tables, ()), folder, ["png"])


def _json(path: Path, value: Any) -> None:
    path.write_text(
        json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n"
    )
