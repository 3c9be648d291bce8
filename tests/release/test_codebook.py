from __future__ import annotations

from pathlib import Path

import pytest

from dprepro.errors import DpreproError
from dprepro.release.codebook import Entry, read_codebook


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
        "back,target,,,no|yes,,,",
        "stay,target,,,NO as later|>30 as later|<30,,,",
        "patient,unit,,5,,,,",
        "id,drop,,,,,,",
    )
    assert read_codebook(path) == {
        "age": Entry("numeric", 0, 120, (), True, "years", "Age, at admission"),
        "ward": Entry("categorical", categories=("a", "b", "c")),
        "back": Entry("target", categories=("no", "yes")),
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
    ],
)
def test_a_wrong_codebook_is_refused_with_its_line(
    tmp_path: Path, lines: list[str], said: str
) -> None:
    with pytest.raises(DpreproError, match=r"codebook\.csv") as caught:
        read_codebook(written(tmp_path, *lines))
    assert said in str(caught.value)


def test_a_missing_codebook_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match="cannot be read"):
        read_codebook(tmp_path / "none.csv")
