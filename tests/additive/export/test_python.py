"""The exported module says what the model says, with the standard library alone."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.export import predictor
from dprepro.additive.export.plain import to_python
from tests.additive import small

NASTY = '"""' + 3 * "'" + "\\\n#{}\u2028"


def run(folder: Path, text: str, X: pd.DataFrame) -> pd.DataFrame:
    """Return what the module prints of a CSV, in a Python that finds no library."""
    (folder / "model.py").write_text(text, encoding="utf-8")
    X.to_csv(folder / "new.csv", index=False)
    outcome = subprocess.run(
        [sys.executable, "-I", "-S", "model.py", "new.csv"],
        cwd=folder, capture_output=True, text=True, check=True, encoding="utf-8",
    )  # fmt: skip
    (folder / "said.csv").write_text(outcome.stdout, encoding="utf-8")
    return pd.read_csv(folder / "said.csv")


@pytest.mark.parametrize("more", [{}, small.PAIRS], ids=["features", "pairs"])
def test_the_module_predicts_as_the_model(tmp_path: Path, more: dict) -> None:
    model, X = small.model(**more), small.rows()
    said = run(tmp_path, to_python(model), X)
    np.testing.assert_allclose(said["log_odds"], model.decision_function(X), rtol=0, atol=1e-12)
    expected = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(said["probability"], expected, rtol=0, atol=1e-12)
    assert said["prediction"].tolist() == np.array(model.labels_)[model.predict(X)].tolist()
    parts = said[[f"contribution of {name}" for name in model.term_names]]
    np.testing.assert_array_equal(parts, model.contributions(X))


@pytest.mark.parametrize("more", [{}, small.PAIRS], ids=["features", "pairs"])
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_it_reads_a_model_file_as_well(task: str, more: dict) -> None:
    model, X = small.model(task, **more), small.rows(100)
    values = json.loads(json.dumps(small.file(task, **more)))
    said = [predictor.predict(values, row) for row in X.to_dict("records")]
    if task == "binary":
        expected = model.predict_proba(X)[:, 1]
        found = [row["probability"] for row in said]
    else:
        expected, found = model.predict(X), [row["prediction"] for row in said]
        assert {-1.0, 2.0} <= {*found}
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_names_stay_texts_in_the_module() -> None:
    model = small.model(features=[small.numeric(NASTY, [1.0])], labels=["no", NASTY])
    names: dict = {"__name__": "exported"}
    exec(to_python(model), names)
    assert names["MODEL"]["labels"][1] == names["MODEL"]["features"][0]["name"] == NASTY
    said = names["predict"](names["MODEL"], {NASTY: 3.0})
    assert said["log_odds"] == model.decision_function(pd.DataFrame({NASTY: [3.0]}))[0]


def test_log_odds_can_be_far_from_zero() -> None:
    for score, probability in ((-(2**35), 0.0), (2**35, 1.0)):
        said = predictor.predict(small.file(intercept=score, features=[]), {})
        assert said["probability"] == probability


def told(folder: Path, *arguments: str) -> tuple[str, str]:
    """Return output and errors of the module, which is to end with exit code 2."""
    (folder / "model.py").write_text(to_python(small.model()), encoding="utf-8")
    outcome = subprocess.run(
        [sys.executable, "-I", "-S", "model.py", *arguments],
        cwd=folder, capture_output=True, text=True, check=False, encoding="utf-8",
    )  # fmt: skip
    assert outcome.returncode == 2
    return outcome.stdout, outcome.stderr


@pytest.mark.parametrize("arguments", [[], ["nowhere.csv"]])
def test_a_missing_file_is_one_line_with_the_usage(tmp_path: Path, arguments: list[str]) -> None:
    printed, errors = told(tmp_path, *arguments)
    (line,) = errors.splitlines()
    assert printed == ""
    assert "usage: python model.py NEW.csv" in line
    if arguments:
        assert line.startswith("error: nowhere.csv: cannot be read: No such file or directory")


HEADER = "age,hours,none missing,town,plain\n"
ROW = "1,2,3,Bonn,a\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("hours,town\n1,Bonn\n", "line 1: there is no column 'age', which the model needs"),
        ("age,hours,none missing,town\n", "line 1: there is no column 'plain', which the"),
        (f"age,{HEADER}1,{ROW}", "line 1: column 'age' is there more than once; rename"),
        (f"{HEADER}secret,2,3,Bonn,a\n", "line 2: column 'age' is to hold numbers, but holds te"),
        (f"{HEADER}1,-inf,3,Bonn,a\n", "line 2: column 'hours' is to hold numbers, but holds te"),
        (f"{HEADER}1,2,3,secret\n", "line 2: the number of fields is not that of the first line"),
        (f"{HEADER}1,2,3,secret,a,b\n", "line 2: the number of fields is not that of the first"),
        (f"{HEADER}1,2,3,{'secret' * 50_000},a\n", "line 2: cannot be read as CSV"),
        (f'{HEADER}\n1,2,3,"secret,a\n{ROW}', "line 3: a quote is opened and not closed"),
        (f'{HEADER}1,2,3,"se\n""cret","b\n""a\n""', "line 3: a quote is opened and not closed"),
        (f'{HEADER}1,2,3,a""b,"secret\n{ROW * 9000}', "line 2: a quote is opened and not closed"),
        (f'{HEADER}1,2,3,"secret"x,a\n', "line 2: a text goes on behind its closing quote"),
        (f'{HEADER}1,2,3, "secret",a\n', "line 2: there is a blank before a quote"),
        (f"{HEADER}1,5d,3,Bonn,a\n", "line 2: column 'hours' is to hold numbers, but holds te"),
        (f"{HEADER}1,1_0,3,Bonn,a\n", "line 2: column 'hours' is to hold numbers, but holds te"),
        ("\n\nhours\n1\n", "line 3: there is no column 'age', which the model needs"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "its bytes are not text in UTF-8; save it as UTF-8"),
        ("", "line 1 is empty: it must name the columns"),
    ],
)
def test_what_is_wrong_with_a_csv_is_one_line(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    data = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "new.csv").write_bytes(data)
    printed, errors = told(tmp_path, "new.csv")
    (line,) = errors.splitlines()
    assert line.startswith(f"error: new.csv: {message}")
    assert "secret" not in line
    assert printed == ""


def test_rows_before_the_wrong_one_are_written(tmp_path: Path) -> None:
    wrong = '1,2,3,"Bo\nnn",a\n\n1,?,3,Bonn,a\n1,secret,3,Bonn,a\n'
    (tmp_path / "new.csv").write_text(HEADER + ROW + wrong)
    printed, errors = told(tmp_path, "new.csv")
    assert errors.startswith("error: new.csv: line 7: column 'hours' is to hold numbers")
    assert printed.count("\n") == 4


def test_a_csv_without_rows_gives_names_alone(tmp_path: Path) -> None:
    X = small.rows(3)
    names = [*run(tmp_path, to_python(small.model()), X)]
    said = run(tmp_path, to_python(small.model()), X.iloc[:0])
    assert [*said] == names
    assert said.empty


def test_what_is_no_number_by_another_spelling_is_missing(tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text(HEADER + "NAN,2,3,Bonn,a\n,2,3,Bonn,a\n")
    (tmp_path / "model.py").write_text(to_python(small.model()), encoding="utf-8")
    said = subprocess.check_output(
        [sys.executable, "-I", "-S", "model.py", "new.csv"], cwd=tmp_path, text=True
    ).splitlines()
    assert said[1] == said[2]


def test_a_csv_of_a_spreadsheet_is_read(tmp_path: Path) -> None:
    """A byte order mark, line breaks of Windows, quotes and line breaks within texts, blanks."""
    names = [*small.TOWNS[:3], 'say "hi"\r\nthere']
    town = small.categorical("town", [0, 1, 2, 1], ["p", "q", "r"], 1) | {"categories": names}
    model = small.model(features=[small.FEATURES[0], town])
    rows = ['"40",Bonn', " 40\t,\u00a0Bonn ", '\t?,"say ""hi""\r\nthere"', ",\t?"]
    content = "\ufeffage,town\r\n" + "".join(f"{row}\r\n" for row in rows)
    (tmp_path / "new.csv").write_bytes(content.encode())
    (tmp_path / "model.py").write_text(to_python(model), encoding="utf-8")
    command = [sys.executable, "-I", "-S", "model.py", "new.csv"]
    said = subprocess.check_output(command, cwd=tmp_path, text=True).splitlines()
    assert said[1] == said[2]
    assert said[3] == said[4] != said[1]


def test_a_closed_pipe_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(to_python(small.model()), encoding="utf-8")
    (tmp_path / "new.csv").write_text(HEADER + ROW * 2000)
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "model.py", "new.csv"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        errors = running.stderr.read().decode().splitlines()
    assert running.returncode == 2
    assert [line[:28] for line in errors] == ["error: cannot read or write:"]


@pytest.mark.parametrize("value", ["secret", float("inf"), 10**400, ["secret"]])
def test_as_a_module_it_raises_a_plain_error(value: object) -> None:
    row = small.rows(1).to_dict("records")[0]
    with pytest.raises(ValueError, match="column 'age' is to hold numbers") as caught:
        predictor.predict(small.file(), {**row, "age": value})
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    del row["hours"]
    with pytest.raises(ValueError, match="there is no column 'hours', which the model needs"):
        predictor.predict(small.file(), row)


def test_headings_are_compared_without_blanks_around_them(tmp_path: Path) -> None:
    text, X = to_python(small.model()), small.rows(20)
    padded = X.rename(columns={"age": "\u00a0age ", "hours": " hours"})
    pd.testing.assert_frame_equal(run(tmp_path, text, padded), run(tmp_path, text, X))


def test_an_empty_line_is_no_row_and_is_refused_where_it_could_be_one() -> None:
    found = predictor.records(io.StringIO("a,b\n1,2\n\n3,4\n\n", newline=""))
    assert list(found) == [(1, ["a", "b"]), (2, ["1", "2"]), (4, ["3", "4"])]
    assert len(list(predictor.records(io.StringIO('a\n1\n""\n\n', newline="")))) == 3
    with pytest.raises(ValueError, match="line 3: it is empty, and the table has one column"):
        list(predictor.records(io.StringIO("a\n1\n\n2\n", newline="")))
