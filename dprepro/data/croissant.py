"""The card of a dataset in Croissant 1.0 (https://docs.mlcommons.org/croissant), as JSON-LD.

No row is read: all that is written stands on the card.
"""

from __future__ import annotations

from typing import Any

from dprepro.data.card import Card
from dprepro.data.card_parts import FeatureDomain, Source
from dprepro.errors import DpreproError

PROFILE = "http://mlcommons.org/croissant/1.0"
_TERMS = (
    "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field", "fileObject",
    "fileProperty", "fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key", "md5",
    "parentField", "path", "recordSet", "references", "regex", "repeated", "replace",
    "samplingRate", "separator", "source", "subField", "transform",
)  # fmt: skip
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    **{term: f"cr:{term}" for term in _TERMS},
}
"""Croissant's own context, in full: readers warn of any other."""

_MEDIA = {
    "arff": "text/x-arff", "csv": "text/csv", "idx": "application/octet-stream",
    "npz": "application/zip", "parquet": "application/vnd.apache.parquet",
    "svmlight": "text/plain",
}  # fmt: skip


def croissant(card: Card) -> dict[str, Any]:
    """Return a card as a Croissant dataset: its file, and one field for each column.

    Raises
    ------
    DpreproError
        If the card has no single file with a checksum, or no public domain: Croissant needs both.
    """
    if card.features is None:
        raise DpreproError(f"the card of {card.name} has no `features`, so it names no columns")
    source = _described(card)
    file = {
        "@type": "cr:FileObject",
        "@id": "file",
        "name": source.filename,
        "contentUrl": source.http or source.file,
        "encodingFormat": _MEDIA[str(card.format_of(source).kind)],
        "sha256": source.sha256,
    }
    columns = {name: _field(name, domain) for name, domain in card.features.items()}
    columns[card.target] = _target(card)
    names = {ours: theirs for theirs, ours in source.rename.items()}
    for name, field in columns.items():
        field["source"] = {
            "fileObject": {"@id": "file"},
            "extract": {"column": names.get(name, name)},
        }
    notes = (card.title, card.domain_note, card.cleaning_note)
    found = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": PROFILE,
        "name": card.name,
        "description": "\n\n".join(" ".join(note.split()) for note in notes if note) or card.name,
        "license": card.licence,
        "url": card.url,
        "citeAs": card.citation,
        "distribution": [file],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "rows",
                "name": "rows",
                "field": [
                    # An @id can have no blanks, which names can have.
                    {"@type": "cr:Field", "@id": f"rows/column-{number}", **field}
                    for number, field in enumerate(columns.values(), start=1)
                ],
            }
        ],
    }
    return {key: value for key, value in found.items() if value}


def _described(card: Card) -> Source:
    """Return the file to describe: one with an address if there is one, else one of the folder."""
    known = [part for source, part in card.parts if part is source and source.sha256]
    single = [one for one in known if (one.http or one.file) and not one.member]
    if not single:
        raise DpreproError(
            f"the card of {card.name} has no single file with a checksum (`sha256`), which "
            "Croissant needs; members of archives and tables of several files are not written"
        )
    return next((one for one in single if one.http), single[0])


def _field(name: str, domain: FeatureDomain) -> dict[str, Any]:
    if domain.numeric is not None:
        low, high = domain.numeric
        unit = f" {domain.measured_in}" if domain.measured_in else ""
        said, kind = f"A number from {low:g} to {high:g}{unit}", "sc:Float"
    else:
        said, kind = f"One of: {', '.join(domain.categories or ())}", "sc:Text"
    missing = "; it can be missing" if domain.missing else ""
    return {"name": name, "description": said + missing, "dataType": kind}


def _target(card: Card) -> dict[str, Any]:
    public = card.public_target or ()
    if card.task == "regression":
        said = f"The target, from {public[0]:g} to {public[1]:g}" if public else "The target"
        return {"name": card.target, "description": said, "dataType": "sc:Float"}
    said = f"The target, one of: {', '.join(map(str, public))}"
    return {"name": card.target, "description": said, "dataType": "sc:Text"}
