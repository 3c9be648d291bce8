from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from dprepro.release.statement import Statement, as_json, state
from tests.release.models import model, publisher


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("surprise",), 1),
        (("privacy", "epsilon"), float("inf")),
        (("privacy", "relation"), "none"),
        (("model", "sha256"), "abc"),
        (("data", "task"), "multiclass"),
    ],
)
def test_only_statements_are_read(place: tuple[str, ...], value: object) -> None:
    values = json.loads(as_json(state(model(), b"", publisher())))
    Statement.model_validate(values)
    part = values
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    with pytest.raises(ValidationError, match=place[-1]):
        Statement.model_validate(values)
