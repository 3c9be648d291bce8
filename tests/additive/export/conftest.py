"""Databases that all tests of exports share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.additive.export.databases import Database, Duckdb, Sqlite, postgresql


@pytest.fixture(scope="package", params=["sqlite", "duckdb", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    if request.param == "postgresql":
        with postgresql() as server:
            yield server
    else:
        yield Sqlite() if request.param == "sqlite" else Duckdb()
