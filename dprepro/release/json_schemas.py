"""JSON Schemas of the files that people and programs write and read; editors complete keys by them.

They follow from the classes that read the files, and from their docstrings. What a class takes
beside its fields, such as a method that is only a name, is added here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel, TypeAdapter

from dprepro.additive.record import ModelRecord
from dprepro.data.card import Card, card_names
from dprepro.data.card_parts import Distinct, Expect, FeatureDomain, Format, Source
from dprepro.experiment.config import ExperimentConfig, MethodEntry, config_names
from dprepro.experiment.plan_record import KEY_SCHEMA, StatedPlan
from dprepro.experiment.record import FORMAT, Record, Task
from dprepro.release import statement
from dprepro.runtime.errors import DpreproError, nearest

Schema = dict[str, Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SCALAR = ["string", "number", "boolean"]
_NEXT_KEY = re.compile(r"^(\w+(?:, \w+)*)$")


def config_schema() -> Schema:
    """Return the schema of configs: the keys of an experiment, and `include`."""
    found = ExperimentConfig.model_json_schema()
    parts, properties = found["$defs"], found["properties"]
    _describe(properties, ExperimentConfig)
    entry = {**parts["MethodEntry"], "description": inspect.getdoc(MethodEntry)}
    parts["MethodEntry"] = {"anyOf": [{"type": "string", "minLength": 1}, entry]}
    for keys in (properties, entry["properties"]):
        one = {"anyOf": [{"const": "row"}, {"type": "integer", "minimum": 1}]}
        given = {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}, {"type": "null"}]}
        keys["rows_per_unit"] = keys["rows_per_unit"] | given
    _offer(properties["dataset"], card_names())
    properties["include"] = {
        "type": "array",
        "items": _offer({"type": "string"}, config_names()),
        "description": "Other configs, which are run as well.",
    }
    # A file that only includes others has none of the keys that an experiment needs.
    needed = found.pop("required")
    found["anyOf"] = [{"required": needed}, {"required": ["include"]}]
    return _finish(found, "A config of dprepro: one experiment")


def card_schema() -> Schema:
    """Return the schema of cards. A card reads every scalar as text, so numbers are texts, too."""
    found = yaml_schema(Card, "A card of dprepro: one dataset")
    for model in (FeatureDomain, Source, Format, Distinct, Expect):
        found["$defs"][model.__name__]["description"] = inspect.getdoc(model)
    return _finish(found, found["title"])


def yaml_schema(model: type[BaseModel], title: str) -> Schema:
    """Return the schema of a YAML file that is read as a `model`, which takes scalars as text."""
    found = model.model_json_schema()
    for keys in _mappings(found):
        if keys.get("type") == "string":
            keys["type"] = _SCALAR
    return _finish(found, title)


def model_schema() -> Schema:
    """Return the schema of model files."""
    return _finish(ModelRecord.model_json_schema(), "A model file of dprepro: an additive model")


def journal_schema() -> Schema:
    """Return the schema of one line of a journal: an environment, a plan or a record."""
    record, task = _fields(Record), _fields(Task)
    plan = _fields(StatedPlan)
    parts: Schema = {**plan.pop("$defs"), "Task": task}
    record.pop("$defs")
    task["properties"]["epsilon"] = parts["StatedCell"]["properties"]["epsilon"]
    told = record["properties"]
    told |= {
        "key": {**KEY_SCHEMA, "description": "The same for equal tasks, and only for those."},
        "task": {"$ref": "#/$defs/Task"},
        "exact": {
            "type": "array",
            "items": {"type": "string"},
            "description": _said(Record)["exact"],
        },
    }
    record["required"] = ["key", "task", "status", "metrics", "seconds", "ledger", "message"]
    environment = "Machine, versions and settings of the run that added the next records."
    kinds = {
        "environment": {"type": "object", "description": environment},
        "plan": plan,
        "record": record,
        "end": {
            "type": "object",
            "description": "A run has ended. Lines that follow are of a later one.",
        },
    }
    for kind, part in kinds.items():
        own = part.get("properties", {})
        part["properties"] = {"kind": {"const": kind}, **own, **_OF_EVERY_LINE}
        part["required"] = ["kind", *part.get("required", [])]
        part["additionalProperties"] = kind == "environment"
        parts[kind] = part
    found = {"oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in kinds], "$defs": parts}
    return _finish(found, "One line of a journal of dprepro")


_OF_EVERY_LINE: Schema = {
    "format": {
        "enum": [2, FORMAT],
        "description": "Of the line; lines of format 1 have none of these fields.",
    },
    "after": {
        "type": "string",
        "pattern": "^[0-9a-f]{8}$",
        "description": "The checksum of the line before; of all before, if that states none. From "
        "format 3 on.",
    },
    "crc32": {
        "type": "string",
        "pattern": "^[0-9a-f]{8}$",
        "description": "A checksum of all that stands before it.",
    },
}
"""What `dprepro.experiment.record` writes at the end of a line."""


SCHEMAS: dict[str, Callable[[], Schema]] = {
    "config": config_schema,
    "card": card_schema,
    "journal": journal_schema,
    "model": model_schema,
    "statement": statement.shipped_schema,
}
"""By name, what makes the schema."""


def json_schema(name: str) -> Schema:
    """Return a schema by its name, one of `SCHEMAS`.

    Raises
    ------
    DpreproError
        If there is none of this name.
    """
    if name not in SCHEMAS:
        raise DpreproError(
            f"no schema {name!r}{nearest(name, list(SCHEMAS)) or '.'} Allowed: {', '.join(SCHEMAS)}"
        )
    return SCHEMAS[name]()


def _finish(found: Schema, title: str) -> Schema:
    for keys in _mappings(found):
        if "description" in keys and isinstance(keys["description"], str):
            text, _, _ = keys["description"].partition("Attributes\n---")
            paragraphs = (" ".join(part.split()) for part in text.strip().split("\n\n"))
            keys["description"] = "\n\n".join(paragraphs).replace("``", "`")
    return {"$schema": DRAFT, **found, "title": title}


def _fields(kind: type) -> Schema:
    """Return the schema of a dataclass, with what its docstring says of each field."""
    found = TypeAdapter(kind).json_schema()
    _describe(found["properties"], kind)
    return found


def _offer(keys: Schema, names: list[str]) -> Schema:
    """Make editors offer names, where any other text is allowed, too."""
    kind = {name: keys.pop(name) for name in ("type", "minLength") if name in keys}
    keys["anyOf"] = [{"enum": names}, kind]
    return keys


def _describe(properties: Schema, kind: type) -> None:
    """Give each key the text under `Attributes` in the docstring of its class."""
    for name, text in _said(kind).items():
        if name in properties:
            properties[name]["description"] = text


def _said(kind: type) -> dict[str, str]:
    """Return the text of each name under `Attributes` in the docstring of a class."""
    names: list[str] = []
    texts: dict[str, list[str]] = {}
    _, _, attributes = (inspect.getdoc(kind) or "").partition("Attributes\n----------\n")
    for line in attributes.splitlines():
        if named := _NEXT_KEY.match(line):
            names = named[1].split(", ")
        for name in names if line.startswith("    ") else ():
            texts.setdefault(name, []).append(line.strip())
    return {name: " ".join(lines) for name, lines in texts.items()}


def _mappings(value: Any) -> Iterator[Schema]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            yield from _mappings(item)
