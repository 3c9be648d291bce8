from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dprepro.errors import DpreproError
from dprepro.release.columns import read_columns


def test_names_and_types_of_a_csv_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("age, city ,score,code\n39,Bonn,1.5,?\n,Lyon,NA,7\n")
    found = read_columns(path)
    assert found.kinds == {"age": "numeric", "city": "text", "score": "numeric", "code": "numeric"}
    assert found.separator == ","


@pytest.mark.parametrize(("name", "value"), [("Bonn", " bonn"), ("True", "true")])
def test_a_name_that_is_a_value_of_its_column_is_doubtful(
    tmp_path: Path, name: str, value: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"age,{name}\n39,{value}\n40,{value}\n")
    assert read_columns(path).doubtful == (name,)
    path.write_text(f"{name},city\n39,{value}\n40,{value}\n")
    assert read_columns(path).doubtful == ()


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_another_separator_is_found(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"age{separator}city\n39{separator}Bonn, Germany\n")
    assert read_columns(path).separator == separator


def test_of_parquet_only_the_schema_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pd.DataFrame({"age": [39.0], "city": ["Bonn"], "yes": [True]}).to_parquet(path)
    assert read_columns(path).kinds == {"age": "numeric", "city": "text", "yes": "text"}


@pytest.mark.parametrize("first", ["39,Bonn", "age,age", "age,", ""])
def test_a_file_without_names_is_refused_and_not_quoted(tmp_path: Path, first: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"{first}\n40,Lyon\n")
    with pytest.raises(DpreproError) as caught:
        read_columns(path)
    assert "Bonn" not in str(caught.value)
    assert "Lyon" not in str(caught.value)


def test_a_file_of_another_kind_or_of_broken_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match=r"ends in \.csv or \.parquet"):
        read_columns(tmp_path / "rows.xlsx")
    with pytest.raises(DpreproError, match="cannot be read"):
        read_columns(tmp_path / "missing.csv")
    path = tmp_path / "rows.csv"
    path.write_text("age,city\n39,secret,more\n")
    with pytest.raises(DpreproError, match="Expected 2 columns") as caught:
        read_columns(path)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("text", ["a;b\n1,5;x\n;y,1\n-2;z\n", 'a,b\n"1,234.5",x\n7,"y,1"\n'])
def test_a_column_of_numbers_with_commas_is_found(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    assert read_columns(path).with_commas == ("a",)
    path.write_text(text.replace("1,5", "1.5").replace('"1,234.5"', "1234.5"))
    assert read_columns(path).with_commas == ()
    path.write_text(text.replace("7", "?!").replace("-2", "?!"))  # so all are texts
    assert read_columns(path).with_commas == ()
