"""What distinguishes the rows and the domain of one card from those of any other."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dprepro.data import PRIVATE_PREFIX, SYNTHETIC_PREFIX
from dprepro.data.card_parts import Format
from dprepro.data.files import cached_file, find_file

if TYPE_CHECKING:
    from dprepro.data.card import Card
    from dprepro.data.card_parts import Source

SAME_EVERYWHERE = ("sklearn", "synthetic")
"""Kinds of sources that give the same rows on every machine."""

_LATER = ("decimal", "thousands")
_DETERMINES = ("task", "target", "positive", "labels", "target_bounds", "drop", "missing", "fill")


def name_of(card: Card, data_dir: Path | None, identify: bool) -> str:
    """Return a name for the rows that would be loaded; see `Card.fingerprint`."""
    if card.is_private(data_dir):
        from dprepro.data.register import token_of  # with what locks files

        said = [_said(card, source, part) for source, part in card.parts]
        content = _content(card, data_dir) if identify else ""
        token = token_of(content) if content else "none"
        return f"{PRIVATE_PREFIX}{short_digest(_state(card, said))}-{token}"
    prefix = SYNTHETIC_PREFIX if is_stood_in_for(card, data_dir) else ""
    return prefix + short_digest(state_of(card, data_dir))


def state_of(card: Card, data_dir: Path | None) -> dict[str, Any]:
    """Return all that determines the loaded values and the domain, JSON-able. It may be private."""
    return _state(card, values_of(card, data_dir))


def values_of(card: Card, data_dir: Path | None) -> Any:
    """Return the checksum of the values, else those of all files and how each is read."""
    return card.expect.values_sha256 or [
        [file_digest(card, part, data_dir) or _place(part), *_reading(card, source, part)]
        for source, part in card.parts
    ]


def has_all_files(card: Card, data_dir: Path | None) -> bool:
    """Whether every file has a checksum in the card or lies on this machine."""
    return all(
        part.kind in SAME_EVERYWHERE or file_digest(card, part, data_dir) is not None
        for _, part in card.parts
    )


def is_stood_in_for(card: Card, data_dir: Path | None) -> bool:
    """Whether the card's stand-in would be loaded, since none of its files is on this machine."""
    *private, last = card.sources
    if last.kind != "synthetic":
        return False
    return not any(find_file(str(s.file), card.folder, data_dir) for s in private)


def short_digest(state: dict[str, Any]) -> str:
    """Return the first 16 hex digits of the SHA-256 of a state."""
    text = json.dumps(state, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _state(card: Card, values: Any) -> dict[str, Any]:
    state: dict[str, Any] = {key: getattr(card, key) for key in _DETERMINES}
    if card.features is not None:
        # A list, since the order of the columns counts.
        state["features"] = [
            (k, v.model_dump(exclude_defaults=True, exclude={"measured_in", "ordered"}))
            for k, v in card.features.items()
        ]
    if card.distinct is not None:
        state["distinct"] = card.distinct.model_dump()
    if card.complete:
        state["complete"] = True
    if card.relabel:
        state["relabel"] = card.relabel
    if card.target_transform is not None:
        state["target_transform"] = card.target_transform
    if card.unit is not None:
        # How many rows of a unit train is a matter of each task.
        state["unit"] = card.unit
    return {**state, "values": values}


def _said(card: Card, source: Source, part: Source) -> list[Any]:
    """Return what the card says about a file, except checksums and the path of a local file."""
    place = part.kind if part.file is not None else _place(part)
    return [place, *_reading(card, source, part)]


def _reading(card: Card, source: Source, part: Source) -> list[Any]:
    """Return how a file becomes a table."""
    has_file = part.kind not in SAME_EVERYWHERE
    settings = None
    if has_file:
        given = card.format_of(part)
        # Keys that came later count only where a card has them: older cards keep their names.
        settings = given.model_dump()
        for key in _LATER:
            if settings[key] == Format.model_fields[key].default:
                del settings[key]
    return [settings, source.rename, *([] if part.rows is None else [part.rows])]


def _content(card: Card, data_dir: Path | None) -> str:
    """Return what is known about the bytes of the files; empty if nothing is."""
    files = [file_digest(card, part, data_dir) for _, part in card.parts]
    digests = [card.expect.values_sha256, *files]
    return json.dumps(digests) if any(digests) else ""


def file_digest(card: Card, source: Source, data_dir: Path | None) -> str | None:
    """Return the checksum in the card, else that of the file put there or downloaded."""
    if source.sha256 is not None or source.kind in SAME_EVERYWHERE:
        return source.sha256
    if source.file is not None:
        path = find_file(source.file, card.folder, data_dir)
    else:
        download = cached_file(source.kind, card.name, source.filename)
        path = download if download.is_file() else None
    return hashlib.sha256(path.read_bytes()).hexdigest() if path else None


def _place(source: Source) -> dict[str, Any]:
    unused = {key for key in ("join", "rows") if getattr(source, key) is None}
    return source.model_dump(exclude={"sha256", "format", *unused})
