"""Each export refuses and counts what `dprepro predict` refuses and counts, on odd rows."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dprepro.additive.export import predictor
from dprepro.additive.export.plain import to_python
from dprepro.additive.export.sql import to_sql
from dprepro.additive.file import model_to_json
from dprepro.additive.model import AdditiveModel
from dprepro.release.predicting import Wanted, predict_table
from dprepro.runtime.errors import DpreproError
from tests.additive import small
from tests.additive.export import odd
from tests.additive.export.databases import Database, Said

TASKS = pytest.mark.parametrize("task", ["binary", "regression"])
SCORES = ("prediction", "probability", "log_odds", "sum")


@cache
def model(task: str) -> AdditiveModel:
    return odd.fitted(task)


@cache
def number() -> AdditiveModel:
    """A model of one number, x, with a bin for missing values."""
    return small.model(features=[small.numeric("x", [0.5, 1.0, 20.0], own_bin=True)])


@cache
def category() -> AdditiveModel:
    """A model of one category, x, with bins for missing values and for others."""
    size = len(odd.TOWNS)
    labels = [*map("bin {}".format, range(size)), "(missing)", "(other)"]
    town = small.feature(
        "x", len(labels), size, labels,
        kind="categorical", categories=list(odd.TOWNS), groups=list(range(size)),
    )  # fmt: skip
    return small.model(features=[town])


def test_odd_rows_are_odd(tmp_path: Path) -> None:
    """They hold all that `predict` counts, and both tables of texts are what they say."""
    for task in ("binary", "regression"):
        assert len(model(task).pairs_) > 1
        said = odd.predicted(model(task), odd.random_rows(0), tmp_path)
        assert said is not None
        assert {key.split(": ")[1] for key in said.counts} == {
            "missing", "unknown category", "below its bounds", "above its bounds"
        }  # fmt: skip
        assert odd.counted(said.columns["notes"]) == said.counts
    for text in odd.REFUSED:
        assert odd.predicted(number(), {"x": ["1", text]}, tmp_path) is None, text
    assert odd.predicted(number(), {"x": odd.NUMBERS}, tmp_path) is not None
    assert odd.predicted(category(), {"x": odd.TEXTS + odd.REFUSED}, tmp_path) is not None


def assert_same(found: dict[str, list], said: odd.Said, task: str) -> None:
    for name in {*SCORES} & {*said.columns}:
        if task == "binary" and name == "prediction":
            assert found[name] == said.columns[name]
            continue
        numbers = np.array([float(value) for value in found[name]])
        np.testing.assert_allclose(numbers, said.numbers(name), rtol=0, atol=1e-12, err_msg=name)
    assert found["notes"] == said.columns["notes"]


def run_python(model: AdditiveModel, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "model.py").write_text(to_python(model), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-I", "-S", "model.py", "rows.csv"],
        cwd=folder, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip


@TASKS
@pytest.mark.parametrize("seed", range(3))
def test_python_predicts_and_counts_the_same(task: str, seed: int, tmp_path: Path) -> None:
    said = odd.predicted(model(task), odd.random_rows(seed), tmp_path)
    assert said is not None
    outcome = run_python(model(task), tmp_path)
    assert outcome.returncode == 0
    found = odd.read(outcome.stdout)
    assert {*found} == {*said.columns}
    assert_same(found, said, task)
    lines = re.findall(r"^(.*) in (\d+) of 300 rows$", outcome.stderr, re.MULTILINE)
    assert {what: int(count) for what, count in lines} == said.counts
    assert len(outcome.stderr.splitlines()) == len(said.counts)


SORTED = "SELECT * FROM ({}) AS said ORDER BY CAST(id AS INTEGER)"


def in_database(
    database: Database, model: AdditiveModel, rows: Mapping[str, Sequence[str]], use: str = SORTED
) -> Said:
    """Return the answer to a query about the predictions for texts."""
    query = use.format(to_sql(model, "rows", database.name))
    size = len(next(iter(rows.values())))
    rows = {**rows, "id": [str(k) for k in range(size)]}
    values = list(zip(*rows.values(), strict=True))
    return database.answer(query, "rows", dict.fromkeys(rows, "VARCHAR"), values)


COUNTS = "SELECT notes, COUNT(*) AS n FROM ({}) AS said GROUP BY notes"


@TASKS
def test_databases_predict_and_count_the_same(
    database: Database, task: str, tmp_path: Path
) -> None:
    rows = odd.random_rows(7)
    said = odd.predicted(model(task), rows, tmp_path)
    assert said is not None
    assert_same(in_database(database, model(task), rows), said, task)
    groups = in_database(database, model(task), rows, COUNTS)
    counts: dict[str, int] = {}
    for note, count in zip(groups["notes"], groups["n"], strict=True):
        for part in filter(None, note.split("; ")):
            counts[part] = counts.get(part, 0) + int(count)
    assert counts == said.counts


def test_databases_read_or_refuse_each_text_as_predict_does(
    database: Database, tmp_path: Path
) -> None:
    for each, read, refused in (
        (number(), odd.NUMBERS, odd.REFUSED),
        (category(), odd.TEXTS + odd.REFUSED, []),
    ):
        said = odd.predicted(each, {"x": read}, tmp_path)
        assert said is not None
        found = in_database(database, each, {"x": [*read, *refused]})
        assert_same({name: found[name][: len(read)] for name in found}, said, "binary")
        for name in ("prediction", "probability", "log_odds"):
            assert found[name][len(read) :] == [None] * len(refused)
        for text, note in zip(refused, found["notes"][len(read) :], strict=True):
            try:
                is_infinite = math.isinf(float(text))
            except ValueError:
                is_infinite = False
            assert note == f"x: {'infinite' if is_infinite else 'not a number'}", text


def test_python_reads_each_text_as_predict_does(tmp_path: Path) -> None:
    texts = {number(): odd.NUMBERS, category(): odd.TEXTS + odd.REFUSED}
    for each, values in texts.items():
        said = odd.predicted(each, {"x": values}, tmp_path)
        assert said is not None
        assert_same(odd.read(run_python(each, tmp_path).stdout), said, "binary")


def test_python_refuses_each_text_that_predict_refuses(tmp_path: Path) -> None:
    values = model_to_json(number())
    for text in odd.REFUSED:
        odd.write(tmp_path / "rows.csv", {"x": ["1", text]})
        with pytest.raises(ValueError, match="line 3: column 'x' is to hold numbers"):
            list(predictor.lines(values, str(tmp_path / "rows.csv"), {}))


FILES = {
    "another column": b"q,x,z\n9,1,2\n",
    "another order": b"z,x\n2,1\n",
    "a column twice": b"x,x,z\n1,1,2\n",
    "a column twice, but for blanks": b"x, x,z\n1,1,2\n",
    "another column twice": b"q,q,x,z\n1,1,1,2\n",
    "a column missing": b"x\n1\n",
    "names in capitals": b"X,Z\n1,2\n",
    "no name": b",x,z\n0,1,2\n",
    "a byte order mark": b"\xef\xbb\xbfx,z\n1,2\n",
    "latin 1": b"x,z,t\n1,2,\xe9\n",
    "latin 1 in a name": b"x,z,\xe9\n1,2,3\n",
    "half a surrogate": b"x,z,t\n1,2,\xed\xa0\x80\n",
    "a NUL byte": b"x,z,t\n1,2,a\x00b\n",
    "a NUL byte in a name": b"x,z,t\x00\n1,2,3\n",
    "too few fields": b"x,z\n1\n",
    "too many fields": b"x,z\n1,2,3\n",
    "line ends of Windows": b"x,z\r\n1,2\r\n",
    "line ends of old": b"x,z\r1,2\r",
    "nothing": b"",
    "names alone": b"x,z\n",
    "no line end": b"x,z\n1,2",
    "semicolons": b"x;z\n1;2\n",
    "empty lines": b"\n\nx,z\n\n1,2\n\n",
    "quotes": b'x,z\n"1","2"\n',
    "an open quote": b'x,z\n"1,2\n',
    "a comment": b"#c\nx,z\n1,2\n",
    "other breaks within a line": "x,z,t\n1\x0b,2,a\u2028b\x85c\n".encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_python_reads_or_refuses_a_file_as_predict_does(name: str, tmp_path: Path) -> None:
    two = small.model(features=[small.numeric("x", [1.0]), small.numeric("z", [2.0])])
    path, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    path.write_bytes(FILES[name])

    def in_python() -> list[str]:
        names, *rows = predictor.lines(model_to_json(two), str(path), {})
        return [f"{row[names.index('log_odds')]:.12f}" for row in rows]

    try:
        predict_table(two, path, out, Wanted(explain=True))
    except DpreproError:
        with pytest.raises(ValueError, match=r"line \d|its bytes are not text in UTF-8"):
            in_python()
        return
    wanted = odd.read(out.read_text(encoding="utf-8"))["log_odds"]
    assert in_python() == [f"{float(value):.12f}" for value in wanted]
