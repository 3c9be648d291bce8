from __future__ import annotations

from pathlib import Path

import pytest

from dprepro.release.codebook import Entry, missing_codes, read_codebook
from dprepro.release.columns import Form
from dprepro.runtime.errors import DpreproError


def written(folder: Path, *lines: str) -> Path:
    path = folder / "codebook.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_codebook_is_read(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "name,type,lower,upper,categories,missing,measured_in,description",
        'age,numeric,0,120,,yes,years,"Age, at admission"',
        "ward,categorical,,,a | b|c,,,",
        "stay,target,,,NO as later|>30 as later|<30,,,",
        "patient,unit,,5,,,,",
        "id,drop,,,,,,",
    )
    assert read_codebook(path).entries == {
        "age": Entry("numeric", 0, 120, (), True, "years", "Age, at admission"),
        "ward": Entry("categorical", categories=("a", "b", "c")),
        "stay": Entry(
            "target", categories=("later", "<30"), relabel={"NO": "later", ">30": "later"}
        ),
        "patient": Entry("unit", upper=5),
        "id": Entry("drop"),
    }


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["name,typ", "a,numeric"], "unknown column 'typ'; did you mean 'type'"),
        (["name,lower", "a,1"], "must name the columns name and type"),
        (["name,type", "a,number"], "line 2, type: given 'number'"),
        (["name,type", "a,drop", "a,drop"], "line 3: a name is needed, and each only once"),
        (["name,type,lower", "a,numeric,low"], "line 2, lower: a number is needed, given 'low'"),
        (["name,type,upper", "a,numeric,inf"], "line 2, upper: a number is needed, given 'inf'"),
        (["name,type,missing", "a,drop,perhaps"], "line 2, missing: given 'perhaps'"),
        (["name,type", "a,drop,b"], "line 2: more fields"),
        (["name,type", "*,numeric"], "line 2: all other columns can only be of type drop"),
        (["name,type", "q*,target"], "line 2: 'q*' is a pattern, and only one column can be the"),
        (["name,type", "q{1..2},unit"], "line 2: 'q{1..2}' is a pattern"),
        (["name,type", "q{2..1},drop"], "line 2: 'q{2..1}': the range must not be decreasing"),
        (["name,type", "q{1..2},drop", "q1,drop", "q*,drop", "q*,drop"], "line 5: a name is"),
        (["name,type,date", "a,date,dd.mm.yyyy"], "line 2, date: 'dd.mm.yyyy' is no format"),
        (["name,type,date", "a,date,%d.%d.%Y"], "line 2, date: '%d.%d.%Y' is no format"),
        (["name,type,date", "a,numeric,%Y"], "line 2, date: for a line of type date"),
        (["name,type,date,lower", "a,date,%d.%m.%Y,May"], "given 'May', or a date as in"),
        (["name,type,lower,upper", "a,numeric,5,5"], "lower must be less than upper, given 5 and"),
        (["name,type,categories", "a,numeric,b|c"], "categories: not for a line of type numeric"),
        (["name,type,categories", "a,categorical,@yn"], "no line 'yn' of type list"),
        (
            ["name,type,categories", "yesno,list,y|n", "a,categorical,@yesna"],
            "did you mean 'yesno'",
        ),
        (["name,type,categories", "yn,list,"], "line 2: the list 'yn' has no categories"),
        (["name,type,categories", "a,missing,-9"], "line 2: codes of missing values hold for all"),
        (["name,type,categories", "a,categorical,1=b|1=c"], "'1' is said to be two categories"),
        (["name,type,categories", "a,categorical,0=1|1=0"], "'0' is said to be two categories"),
        (["name,type,ordered", "a,drop,maybe"], "line 2, ordered: given 'maybe'"),
        (["name,type", "y,target", "z,target"], "line 3: more than one target: y, z"),
    ],
)
def test_a_wrong_codebook_is_refused_with_its_line(
    tmp_path: Path, lines: list[str], said: str
) -> None:
    with pytest.raises(DpreproError, match=r"codebook\.csv") as caught:
        read_codebook(written(tmp_path, *lines))
    assert said in str(caught.value)


def test_one_problem_is_one_line_that_begins_with_the_place(tmp_path: Path) -> None:
    path = written(tmp_path, "name,type", "a,wrong")
    with pytest.raises(DpreproError) as caught:
        read_codebook(path)
    assert str(caught.value).startswith(f"{path}, line 2, type: given 'wrong'")
    assert "\n" not in str(caught.value)
    path.write_bytes(b"name,type\n\x81,drop\n\xff")
    with pytest.raises(DpreproError) as caught:
        read_codebook(path)
    assert str(caught.value).startswith(f"{path}: its bytes are not text")


def test_a_missing_codebook_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match="cannot be read"):
        read_codebook(tmp_path / "none.csv")


def test_texts_of_the_file_get_categories(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "name;type;categories;ordered",
        "sex;categorical;1=Male| 2 = Female;",
        "job;categorical;1 as worker|8 as other|9 as other|retired;yes",
        "wage;target;<=50K|>50K;",
        "odd;categorical;a=b as a=b|x!=1;",
    )
    found = read_codebook(path).entries
    assert found["sex"].relabel == {"1": "Male", "2": "Female"}
    assert found["sex"].categories == ("Male", "Female")
    assert found["job"].categories == ("worker", "other", "retired")
    assert found["job"].relabel == {"1": "worker", "8": "other", "9": "other"}
    assert (found["job"].ordered, found["sex"].ordered) == (True, False)
    assert found["wage"] == Entry("target", categories=("<=50K", ">50K"))
    assert found["odd"] == Entry("categorical", categories=("a=b", "x!=1"))


def test_lists_missing_codes_and_dates_are_read(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "name,type,categories,date,lower,upper",
        "agree,list,1=no|2=yes,,,",
        "*,missing,-99| k.A. ,,,",
        "*,drop,,,,",
        "a,categorical,@agree,,,",
        "day,date,,%d.%m.%Y,01.07.2013,2020",
    )
    found = read_codebook(path)
    assert found.missing == missing_codes(path) == ("-99", "k.A.")
    assert found.entries["a"] == Entry(
        "categorical", categories=("no", "yes"), relabel={"1": "no", "2": "yes"}, shared="agree"
    )
    assert found.entries["day"].upper == 2020
    assert found.entries["day"].lower == pytest.approx(2013 + 181 / 365, abs=1e-4)
    assert (found.entries["day"].lower or 0) <= 2013 + 181 / 365  # outwards
    assert "agree" not in found.entries


def test_a_name_wins_over_a_longer_pattern_and_that_over_a_shorter_one(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "name,type,lower,upper",
        "*,drop,,",
        "q*,numeric,0,1",
        "q_x*,numeric,0,2",
        "q{1..2},numeric,0,3",
        "q2a,numeric,0,4",
    )
    columns = dict.fromkeys(["q1", "q2", "q2a", "q3", "q_xy", "[q]", "z"], Form("numeric"))
    found = read_codebook(path, columns).entries
    assert [found[name].upper for name in ("q1", "q2", "q2a", "q3", "q_xy")] == [3, 3, 4, 1, 2]
    assert (found["z"].kind, found["[q]"].kind) == ("drop", "drop")


def test_brackets_and_question_marks_of_a_pattern_are_themselves(tmp_path: Path) -> None:
    path = written(tmp_path, "name,type", "a[1]?*,drop")
    columns = dict.fromkeys(["a[1]?x", "a1zx"], Form("text"))
    assert set(read_codebook(path, columns).entries) == {"a[1]?x"}


def test_all_problems_are_in_one_message_with_their_lines(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "name,type,lower,upper,colour",
        "a,numeric,low,high",
        "b,numerc,,",
        "agee,drop,,",
        "v*,drop,,",
        "ward,numeric,0,1",
        "day,date,,",
        "a,drop,,",
        "b,drop,1,2,3,4,5,6",
    )
    columns = {"a": Form("numeric"), "age": Form("numeric"), "ward": Form("text"),
               "day": Form("text", dates=("%Y-%m-%d",))}  # fmt: skip
    with pytest.raises(DpreproError) as caught:
        read_codebook(path, columns)
    said = str(caught.value)
    for place in (
        "codebook.csv: 9 places are wrong",
        "line 1: unknown column 'colour'",
        "line 2, lower: a number is needed, given 'low'",
        "line 2, upper: a number is needed, given 'high'",
        "line 3, type: given 'numerc'; did you mean 'numeric'",
        "line 4: 'agee', which is not a column of the file; did you mean 'age'",
        "line 5: 'v*', which matches no column of the file",
        "line 6: 'ward' is numeric, but the file holds text there",
        "line 8: a name is needed, and each only once: 'a', and this one is on line 2",
        "line 9: more fields than the first line names",
    ):
        assert place in said
    assert said.count("\n") == 9


def test_a_message_does_not_grow_with_the_problems(tmp_path: Path) -> None:
    path = written(tmp_path, "name,type", *(f"a{k},wrong" for k in range(1000)))
    with pytest.raises(DpreproError) as caught:
        read_codebook(path)
    assert len(str(caught.value).splitlines()) == 52
    assert "and more than 50 in all" in str(caught.value)


def test_dates_that_are_written_otherwise_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, "name,type,date", "day,date,%d.%m.%Y")
    with pytest.raises(DpreproError, match=r"'day' are not written as %d.%m.%Y, but as %Y-%m-%d"):
        read_codebook(path, {"day": Form("text", dates=("%Y-%m-%d",))})


def test_a_codebook_of_a_spreadsheet_is_read(tmp_path: Path) -> None:
    path = tmp_path / "codebook.csv"
    path.write_bytes("name;type;categories\r\nOrt;categorical;Köln|Wien\r\n;;\r\n".encode("cp1252"))
    assert read_codebook(path).entries == {"Ort": Entry("categorical", categories=("Köln", "Wien"))}
