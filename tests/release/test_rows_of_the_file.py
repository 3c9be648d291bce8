"""The rows that a release fits are those that Python's `csv` finds in the file of its card."""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dprepro.data.card import load_card
from dprepro.release.rows import checked_rows
from tests.data.written import Written, column, written


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(table=written(), with_unit=st.booleans())
def test_a_release_gets_the_rows_of_the_file(table: Written, with_unit: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        card = table.card(table.write(Path(folder)), with_unit)
        path = Path(folder, "t.yaml")
        fields = card.model_dump(mode="json", exclude_defaults=True, exclude={"sources"})
        path.write_text(yaml.safe_dump(fields, sort_keys=False), encoding="utf-8")
        data = checked_rows(str(path), load_card(path), None, clips=True)
    number, city = (data.X[table.name(key)] for key in ("number", "city"))
    assert list(zip(column(number), column(city), data.y.tolist(), strict=True)) == table.rows
    assert (data.units is not None) == with_unit
