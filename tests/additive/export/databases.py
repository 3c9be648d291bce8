"""Three databases that answer a SELECT about a table with columns of given types."""

from __future__ import annotations

import csv
import io
import math
import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

Rows = Sequence[Sequence[Any]]
Said = dict[str, list[Any]]


class Database(Protocol):
    """What makes a table, and returns the columns of an answer about it; missing is None."""

    name: str

    def answer(self, query: str, table: str, types: Mapping[str, str], rows: Rows) -> Said: ...


class Sqlite:
    name = "sqlite"

    def answer(self, query: str, table: str, types: Mapping[str, str], rows: Rows) -> Said:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.create_function("EXP", 1, math.exp)  # some builds of SQLite have none
            connection.execute(_table(table, types))
            marks = ", ".join("?" * len(types))
            connection.executemany(f"INSERT INTO {_name(table)} VALUES ({marks})", rows)
            found = connection.execute(query)
            return _columns([name for name, *_ in found.description], found.fetchall())


class Duckdb:
    name = "duckdb"

    def __init__(self, before: Sequence[str] = ()) -> None:
        self._before = before  # statements

    def answer(self, query: str, table: str, types: Mapping[str, str], rows: Rows) -> Said:
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect() as connection:
            for statement in self._before:
                connection.execute(statement)
            connection.execute(_table(table, types))
            connection.execute(_insert(table, rows))
            found = connection.execute(query)
            return _columns([name for name, *_ in found.description], found.fetchall())


class Postgresql:
    """A server of its own, without a port, in a new folder."""

    name = "postgresql"

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        # The server refuses to run as root.
        self._user = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name

    def start(self, encoding: str = "UTF8") -> None:
        if os.geteuid() == 0:
            shutil.chown(self._folder, self._user)
        made = ["-D", "data", "-A", "trust", "-U", "tests", "-E", encoding, "--locale=C", "-N"]
        self._run("initdb", *made)
        settings = "-c listen_addresses='' -c fsync=off -c autovacuum=off"
        settings += f" -k {self._folder}"
        self._run("pg_ctl", "-D", "data", "-o", settings, "-l", "log", "-w", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop")

    def answer(self, query: str, table: str, types: Mapping[str, str], rows: Rows) -> Said:
        # A temporary table, which goes with the session.
        made = _table(table, types).replace("CREATE TABLE", "CREATE TEMPORARY TABLE", 1)
        outcome = subprocess.run(
            ["psql", "-X", "-q", "--csv", "-P", "null=\x01", "-v", "ON_ERROR_STOP=1",
             "-h", str(self._folder), "-U", "tests", "postgres"],
            input=f"{made};\n{_insert(table, rows)};\n{query};\n",
            capture_output=True, encoding="utf-8", check=False,
            env={**os.environ, "PGCLIENTENCODING": "UTF8"},
        )  # fmt: skip
        if outcome.returncode:
            raise RuntimeError(outcome.stderr)
        names, *found = csv.reader(io.StringIO(outcome.stdout, newline=""), strict=True)
        return _columns(names, [[_value(text) for text in row] for row in found])

    def _run(self, program: str, *arguments: str) -> None:
        user = {"user": self._user} if os.geteuid() == 0 else {}
        outcome = subprocess.run(
            [self._programs / program, *arguments], cwd=self._folder, check=False, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"},
            **user,  # type: ignore[call-overload]
        )  # fmt: skip
        assert outcome.returncode == 0, outcome.stderr


@contextmanager
def postgresql(encoding: str = "UTF8") -> Iterator[Postgresql]:
    """Yield a server; without its programs the test is skipped, and fails in CI."""
    programs = _programs()
    if programs is None:
        message = "there is no initdb of PostgreSQL, or no psql: install both to run this test"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    # The name of a socket must be short, and the server's user must come to its folder.
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        server = Postgresql(programs, Path(folder))
        server.start(encoding)
        try:
            yield server
        finally:
            server.stop()


def _programs() -> Path | None:
    """Return the folder of initdb and pg_ctl: Debian does not have it among those of commands."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    usable = [folder for folder in folders if (folder / "pg_ctl").exists()]
    return usable[0] if usable and shutil.which("psql") else None


def _table(name: str, types: Mapping[str, str]) -> str:
    columns = ", ".join(f"{_name(column)} {kind}" for column, kind in types.items())
    return f"CREATE TABLE {_name(name)} ({columns})"


def _insert(name: str, rows: Rows) -> str:
    return f"INSERT INTO {_name(name)} VALUES " + ", ".join(
        f"({', '.join(map(_literal, row))})" for row in rows
    )


def _literal(value: Any) -> str:
    """Return a literal that takes the type of its column."""
    return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _value(text: str) -> Any:
    try:
        return None if text == "\x01" else float(text)
    except ValueError:
        return text


def _columns(names: Sequence[str], rows: Rows) -> Said:
    """Return the first column of each name."""
    return {name: [row[names.index(name)] for row in rows] for name in names}
