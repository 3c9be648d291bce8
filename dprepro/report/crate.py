"""The metadata of an RO-Crate 1.1 (https://w3id.org/ro/crate/1.1): what each file of a folder is.

A crate says in a form that archives read what was run, by which software, and what came of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

METADATA = "ro-crate-metadata.json"
PROFILE = "https://w3id.org/ro/crate/1.1"
SOFTWARE = "#dprepro"

_MEDIA = {
    ".csv": "text/csv", ".json": "application/json", ".jsonl": "application/jsonl",
    ".png": "image/png", ".yaml": "application/yaml",
}  # fmt: skip

Entity = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One journal of the crate: name and title of its config, and paths within the crate.

    `config` is None where it does not ship with dprepro. `time` is when the last run began, None in
    a journal that does not say it, and `versions` of dprepro are those that wrote it.
    """

    name: str
    title: str
    journal: str
    config: str | None
    time: str | None
    versions: tuple[str, ...]


def metadata(
    folder: Path, runs: Sequence[Run], described: Mapping[str, str], date: str, licence: str | None
) -> Entity:
    """Return the metadata of a crate whose files lie in `folder`.

    `described` has a sentence for each file of the crate, by its path within it, `date` is when it
    was made, in ISO 8601, and `licence` an address; None where whoever made the crate has not said.
    """
    names = ", ".join(run.name for run in runs)
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Results of dprepro: {names}",
        "description": "Journals of experiments on interpretable models with differential privacy, "
        "the environments that they ran in, and verdicts on printed numbers.",
        "datePublished": date,
        "license": {"@id": licence or "#licence"},
        "hasPart": [{"@id": quote(path)} for path in described],
        "mentions": [{"@id": _action(run)} for run in runs],
    }
    said = licence or "Not stated: ask whoever made this crate"
    about = {"@id": METADATA, "@type": "CreativeWork", "about": {"@id": "./"}}
    return {
        "@context": f"{PROFILE}/context",
        "@graph": [
            about | {"conformsTo": {"@id": PROFILE}},
            root,
            {
                "@id": licence or "#licence",
                "@type": "CreativeWork",
                "name": said,
                "description": said,
            },
            *_software(runs),
            *(_file(folder, path, text) for path, text in described.items()),
            *(_run(run) for run in runs),
        ],
    }


def _file(folder: Path, path: str, text: str) -> Entity:
    content = (folder / path).read_bytes()
    return {
        "@id": quote(path),
        "@type": "File",
        "name": path,
        "description": text,
        "encodingFormat": _MEDIA[Path(path).suffix],
        "contentSize": str(len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _software(runs: Sequence[Run]) -> list[Entity]:
    versions = sorted({version for run in runs for version in run.versions})
    return [
        {
            "@id": f"{SOFTWARE}-{version}",
            "@type": "SoftwareApplication",
            "name": "dprepro",
            "softwareVersion": version,
        }
        for version in versions
    ]


def _action(run: Run) -> str:
    return f"#run-{quote(run.name)}"


def _run(run: Run) -> Entity:
    """Return a run as an action: the config is its object, the journal its result."""
    made = {
        "@id": _action(run),
        "@type": "CreateAction",
        "name": run.title or run.name,
        "instrument": [{"@id": f"{SOFTWARE}-{version}"} for version in run.versions],
        "result": {"@id": quote(run.journal)},
    }
    if run.config:
        made["object"] = {"@id": quote(run.config)}
    if run.time:
        made["startTime"] = run.time
    return made
