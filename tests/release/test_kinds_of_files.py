"""Kinds of files that people have: a model reads its own training file as its fit did.

One table of 60 people is written as each kind. What is fitted is fitted to what `load` makes of it.
"""

from __future__ import annotations

import csv
import gzip
import io
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from dprepro import DPEBMClassifier
from dprepro.additive.export.plain import to_python
from dprepro.additive.export.sql import to_sql
from dprepro.data.card import load_card
from dprepro.data.dataset import load
from dprepro.release.predicting import predict_table

CARD = """\
name: people
task: binary
file: {file}
target: left
positive: "yes"
labels: ["no", "yes"]
missing: ["", "?", "NA", "-200", "-99"]
{more}
features:
  age: {{numeric: [16, 90], missing: true}}
  overtime: {{categories: ["No", "Yes"], missing: true}}
  site: {{categories: [Nord, "Süd, West", "O'Brien \\"H\\""], missing: true}}
  code: {{categories: ["1", "2"], missing: true}}
"""


def people() -> list[dict[str, Any]]:
    draw = random.Random(1)
    rows = [
        {
            "age": draw.choice([None, *np.arange(16, 90, 0.5).tolist()]),
            "overtime": draw.choice(["Yes", "No", None]),
            "site": draw.choice(["Nord", "Süd, West", 'O\'Brien "H"', None]),
            "code": draw.choice(["1", "2", None]),
            "note": draw.choice(["", 'said "no"', "a\r\n34,Yes,Nord,1,x,yes", "x;y,z"]),
        }
        for _ in range(60)
    ]
    return [{**row, "left": draw.choice(["no", "yes"])} for row in rows]


def text(rows: list[dict[str, Any]], missing: str = "", end: str = "\r\n", **how: Any) -> str:
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator=end, **how)
    writer.writerow(rows[0])
    writer.writerows([missing if v is None else v for v in row.values()] for row in rows)
    return written.getvalue()


def german_survey(folder: Path) -> tuple[str, str]:
    rows = [
        {**r, "age": "-99" if r["age"] is None else f"{r['age']:.2f}".replace(".", ",")}
        for r in people()
    ]
    (folder / "t.csv").write_bytes(text(rows, delimiter=";").encode("cp1252"))
    return "t.csv", 'format: {separator: ";", decimal: ",", encoding: cp1252}\ndrop: [note]'


def instrument_log(folder: Path) -> tuple[str, str]:
    rows = [{**r, "age": -200.0 if r["age"] is None else r["age"]} for r in people()]
    body = text(rows, missing="\t?", end="\n")
    (folder / "t.csv").write_text("sep=,\n#made by hand\n" + body + "\n\x1a", encoding="utf-8-sig")
    return "t.csv", 'format: {comment: "#"}\ndrop: [note]'


def weka(folder: Path) -> tuple[str, str]:
    def quoted(value: Any) -> str:
        if value is None:
            return "?"
        escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
        escaped = escaped.replace("\r", "\\r").replace("\n", "\\n")
        return f"'{escaped}'"

    head = (
        "% made by hand\n@relation people\n@attribute age numeric [16,90] % years\n"
        "@attribute overtime {No,Yes}\n@attribute site {Nord,'Süd, West','O\\'Brien \"H\"'}\n"
        "@attribute code {1,2}\n@attribute note string\n@attribute left {no,yes}\n@data\n"
    )
    lines = [", ".join(map(quoted, row.values())) for row in people()]
    (folder / "t.arff").write_text(head + "\n% rows\n".join(lines), encoding="utf8")
    return "t.arff", "drop: [note]"


def filtered_parquet(folder: Path) -> tuple[str, str]:
    frame = pd.DataFrame(people()).astype({"code": "Float64", "overtime": "category"})
    pd.concat([frame.iloc[::2], frame.iloc[1::2]]).to_parquet(folder / "t.parquet")
    return "t.parquet", "drop: [note]"


def by_r(folder: Path) -> tuple[str, str]:
    rows = [{"": str(k), **row} for k, row in enumerate(people(), start=1)]
    (folder / "t.csv").write_text(text(rows, "NA", "\n", quoting=csv.QUOTE_NONNUMERIC), "utf8")
    return "t.csv", 'drop: ["", note]'


def by_excel(folder: Path) -> tuple[str, str]:
    (folder / "t.txt").write_bytes(text(people(), delimiter="\t").encode("utf-16"))
    return "t.txt", 'format: {separator: "\\t", encoding: utf-16}\ndrop: [note]'


def of_an_hr_department(folder: Path) -> tuple[str, str]:
    codes = {None: None, "1": "1.0", "2": "2.0"}
    rows = [{k: v for k, v in row.items() if k != "note"} for row in people()]
    frame = pd.DataFrame([{**r, "code": codes[r["code"]]} for r in rows])
    frame.astype({"code": float}).to_parquet(folder / "t.parquet", index=False)
    return "t.parquet", ""


def odd_headings(folder: Path) -> tuple[str, str]:
    content = text(people()).replace("age,", '" age ",', 1).replace("note,", "note,note,", 1)
    first, _, rest = content.partition("\r\n")
    body = list(csv.reader(io.StringIO(rest, newline="")))
    written = io.StringIO(newline="")
    csv.writer(written).writerows([*row[:5], "again", row[5]] for row in body)
    (folder / "t.csv").write_text("\n" + first + "\r\n" + written.getvalue(), "utf-8-sig")
    return "t.csv", "drop: [note]"


def gzipped(folder: Path) -> tuple[str, str]:
    (folder / "t.csv.gz").write_bytes(gzip.compress(text(people()).encode()))
    return "t.csv.gz", "drop: [note]"


def long_texts(folder: Path) -> tuple[str, str]:
    rows = [{**row, "note": row["note"] * 4000} for row in people()]
    (folder / "t.csv").write_text(text(rows), "utf8")
    assert (folder / "t.csv").stat().st_size > 2**20
    return "t.csv", "drop: [note]"


def codes_of_a_form(folder: Path) -> tuple[str, str]:
    rows = [{**row, "code": {None: "9", "1": "one", "2": "8"}[row["code"]]} for row in people()]
    (folder / "t.csv").write_text(text(rows), "utf8")
    return "t.csv", "drop: [note]"


KINDS: list[Callable[[Path], tuple[str, str]]] = [
    german_survey, instrument_log, weka, filtered_parquet, by_r, by_excel, of_an_hr_department,
    odd_headings, gzipped, long_texts, codes_of_a_form,
]  # fmt: skip
IN_DUCKDB = (filtered_parquet, by_r, of_an_hr_department, gzipped, long_texts)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_model_reads_its_own_training_file_as_the_fit_did(
    tmp_path: Path, kind: Callable[[Path], tuple[str, str]]
) -> None:
    file, more = kind(tmp_path)
    card = CARD.format(file=file, more=more)
    if kind is codes_of_a_form:
        said = "missing: true, relabel: {one: '1'}, groups: {'2': ['8']}}"
        card = card.replace(
            'categories: ["1", "2"], missing: true}', f'categories: ["1", "2"], {said}'
        )
        card = card.replace('"-99"]', '"-99", "9"]')
    (tmp_path / "card.yaml").write_text(card, "utf8")
    dataset = load(tmp_path / "card.yaml")

    expected = people()
    if kind is filtered_parquet:
        expected = expected[::2] + expected[1::2]
    found = [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in dataset.X.astype(object).to_dict("records")
    ]
    names = ["age", "overtime", "site", "code"]
    assert found == [{name: row[name] for name in names} for row in expected]
    assert [("no", "yes")[code] for code in dataset.y] == [row["left"] for row in expected]

    labels = np.array(["no", "yes"], dtype=object)[dataset.y]
    model = DPEBMClassifier(epsilon=20, delta=1e-3, domain=dataset.domain, random_state=1)
    model.fit(dataset.X, labels)
    probabilities = model.predict_proba(dataset.X)[:, 1]
    assert len(set(probabilities.round(6))) > 20
    if kind is weka:
        return  # `predict` takes CSV and Parquet
    out = tmp_path / "out.csv"
    predict_table(model, tmp_path / file, out, card=load_card(tmp_path / "card.yaml"))
    np.testing.assert_allclose(pd.read_csv(out)["probability"], probabilities, rtol=1e-12)
    if kind in IN_DUCKDB:
        con = duckdb.connect()
        con.sql(f"create table new_rows as select * from '{tmp_path / file}'")
        marks = ("", "?", "NA", "-200", "-99")
        said = con.sql(to_sql(model, "new_rows", marks)).df()["probability"]
        np.testing.assert_allclose(said, probabilities, rtol=1e-9)
    if kind in (by_r, long_texts):
        (tmp_path / "m.py").write_text(to_python(model), "utf8")
        command = [sys.executable, tmp_path / "m.py", tmp_path / file]
        done = subprocess.run(command, capture_output=True, check=True)
        said = pd.read_csv(io.BytesIO(done.stdout))["probability"]
        np.testing.assert_allclose(said, probabilities, rtol=1e-12)
