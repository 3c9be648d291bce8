"""A description of a loaded dataset, and its card in Croissant 1.0, for which no row is read.

Croissant is JSON-LD: https://docs.mlcommons.org/croissant.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from dprepro.data import says_private
from dprepro.data.card import Card
from dprepro.data.card_parts import FeatureDomain, Source
from dprepro.data.dataset import Dataset, undeclared_missing, values_digest
from dprepro.data.domain import CategoricalFeature, Feature
from dprepro.runtime.errors import DpreproError


@dataclass(frozen=True)
class Column:
    """One feature.

    Attributes
    ----------
    name, kind
        Its name; "numeric" or "categorical".
    public
        The public bounds ``[lower, upper]`` or list of categories; None if nothing is public.
    missing
        Number of rows without a value.
    outside
        Share of the values outside the public bounds, 0 to 1; None if there are no bounds.
    """

    name: str
    kind: str
    public: list[float] | list[str] | None
    missing: int
    outside: float | None


@dataclass(frozen=True)
class Description:
    """A description of a dataset. `positives` is None unless the task is binary.

    Digests of private rows are left empty: a person who knows all rows but one could find that row
    by them. `labels` (the positive one last) and `target_bounds` are those of the card, or None.
    `target_outside` is the share of the targets outside these bounds, 0 to 1; None without bounds.
    `undeclared` names the features with missing values that the card does not allow.
    `has_public_domain` says whether the dataset can be run with ``domain: public``. `units` is how
    many units own the rows; None, as `unit` and `rows_per_unit`, if the card names no unit.
    `verified` is `Dataset.verified`.
    """

    name: str
    title: str
    task: str
    target: str
    labels: list[str] | None
    target_bounds: list[float] | None
    target_outside: float | None
    has_public_domain: bool
    unit: str | None
    rows_per_unit: int | None
    units: int | None
    rows: int
    columns: list[Column]
    undeclared: list[str]
    positives: int | None
    private: bool
    source: str
    verified: str
    sha256: str
    values_sha256: str
    fingerprint: str
    cleaning_note: str
    domain_note: str
    licence: str
    citation: str
    url: str

    def to_json(self) -> dict[str, Any]:
        """Return a dict that strict JSON can hold."""
        return asdict(self)


def describe(dataset: Dataset, card: Card, fingerprint: str) -> Description:
    """Return the description of a dataset that was loaded by its card.

    `fingerprint` is `Card.fingerprint`: it says whether the rows are private.
    """
    private = says_private(fingerprint)
    public = dataset.domain.features if dataset.domain else [None] * dataset.X.shape[1]
    columns = [
        _column(dataset.X[name], feature)
        for name, feature in zip(dataset.X.columns, public, strict=True)
    ]
    return Description(
        name=card.name,
        title=card.title,
        task=card.task,
        target=card.target,
        labels=_labels(card),
        target_bounds=list(card.target_bounds) if card.target_bounds else None,
        target_outside=_target_outside(dataset.y, card),
        has_public_domain=dataset.domain is not None,
        unit=card.unit,
        rows_per_unit=card.rows_per_unit,
        units=None if dataset.units is None else len(set(dataset.units)),
        rows=len(dataset.X),
        columns=columns,
        undeclared=undeclared_missing(dataset),
        positives=int((dataset.y == 1).sum()) if card.task == "binary" else None,
        source=dataset.source,
        verified=dataset.verified,
        private=private,
        sha256="" if private else dataset.sha256,
        values_sha256="" if private else values_digest(dataset.X, dataset.y, dataset.units),
        fingerprint=fingerprint,
        cleaning_note=card.cleaning_note.strip(),
        domain_note=card.domain_note.strip(),
        licence=card.licence,
        citation=card.citation.strip(),
        url=card.url,
    )


def _labels(card: Card) -> list[str] | None:
    """Return the labels that the card names, or that follow from it if it has `features`."""
    if card.task == "regression" or (card.labels is None and card.features is None):
        return None
    return [str(label) for label in card.public_target or ()]


def _target_outside(y: np.ndarray, card: Card) -> float | None:
    bounds = card.public_target  # on the scale of y, which may be that of logarithms
    if card.task != "regression" or bounds is None:
        return None
    lower, upper = map(float, bounds)
    return _share((y < lower) | (y > upper))


def _share(found: np.ndarray) -> float:
    """Return the share of the rows that are True, bool (n,); 0 of none."""
    return float(np.mean(found)) if len(found) else 0.0


def _column(column: pd.Series, feature: Feature | None) -> Column:
    name = str(column.name)
    missing = int(column.isna().sum())
    if isinstance(column.dtype, pd.CategoricalDtype):
        public = list(feature.categories) if isinstance(feature, CategoricalFeature) else None
        return Column(name, "categorical", public, missing, None)
    if feature is None or isinstance(feature, CategoricalFeature):
        return Column(name, "numeric", None, missing, None)
    values = column.dropna().to_numpy()
    outside = _share((values < feature.lower) | (values > feature.upper))
    return Column(name, "numeric", [feature.lower, feature.upper], missing, outside)


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

    Raises DpreproError if the card has no single file with a checksum, or no public domain:
    Croissant needs both.
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
