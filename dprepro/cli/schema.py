"""`dprepro schema`: JSON Schemas of configs, cards, papers, journals, model files, statements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dprepro.runtime.errors import DpreproError

_ALL = (
    "config", "card", "journal", "model", "statement",
    "paper", "claims", "deviations", "hypotheses",
)  # fmt: skip


def schema(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help=f"One of {', '.join(_ALL)}; default: all of them."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder to write NAME.schema.json to."),
    ] = None,
) -> None:
    """Print the JSON Schema of a file format, or write the schemas to a folder for an editor.

    An editor completes the keys of a file that begins with
    `# yaml-language-server: $schema=schemas/config.schema.json`.

    Example: dprepro schema --output schemas
    """
    from dprepro.judge.paper_check import MODELS
    from dprepro.release.json_schemas import SCHEMAS, json_schema, yaml_schema

    if name is None and output is None:
        raise DpreproError(
            f"give a NAME ({', '.join(_ALL)}) to print one schema, or --output FOLDER to write all"
        )
    found = {
        each: yaml_schema(MODELS[each], f"{each}.yaml of a paper, as dprepro reads it")
        if each in MODELS
        else json_schema(each)
        for each in ([name] if name else (*SCHEMAS, *MODELS))
    }
    texts = {each: json.dumps(one, indent=1, ensure_ascii=False) for each, one in found.items()}
    if output is None:
        typer.echo(texts[str(name)])
        return
    try:
        output.mkdir(parents=True, exist_ok=True)
        for each, text in texts.items():
            file = output / f"{each}.schema.json"
            file.write_text(text + "\n", encoding="utf-8", newline="\n")
            typer.echo(file)
    except OSError as error:
        raise DpreproError(f"--output {output}: cannot be written: {error.strerror}") from error
