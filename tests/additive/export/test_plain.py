"""What every export starts from says the same as the model."""

from __future__ import annotations

import pytest

from dprepro.additive.export.plain import NumericTerm, free_name, plain, refuse_unwritable
from dprepro.runtime.errors import DpreproError
from tests.additive import small


def test_terms_hold_the_functions_and_what_is_added_elsewhere() -> None:
    model = small.model()
    known = plain(model)
    age, hours, _, town, simple = known.terms
    values = [shape.tolist() for shape in model.shape_functions_]
    assert isinstance(age, NumericTerm)
    assert (age.values, age.missing) == (tuple(values[0][:5]), values[0][5])
    assert (hours.values, hours.missing) == (tuple(values[1]), values[1][1])
    assert town.values[town.categories.index("Zürich")] == values[3][2] == town.other
    assert [term.notes_missing for term in known.terms] == [False, False, True, False, True]
    assert age.bounds == (0.0, 100.0)
    (first,) = plain(small.model(features=[small.categorical("x", [0], ["a"], 0)])).terms
    assert not first.notes_missing
    assert (town.missing, simple.missing, simple.other) == (values[3][1], 0.0, 0.0)
    assert "NA" not in town.missing_texts
    assert "?" in town.missing_texts
    assert (known.labels, known.limits) == (("<=50K", ">50K"), None)
    assert plain(small.model("regression")).limits == (-1.0, 2.0)


def test_names_of_features_are_not_used_again() -> None:
    assert free_name("sum", ["a"]) == "sum"
    assert free_name("sum", ["Sum", "sum_"]) == "sum__"


@pytest.mark.parametrize(
    "text", ["a\x00b", "a\nb", "a\x1b[2Jb", "a\u202eb", "a\u2028b", "back\\slash"]
)
def test_what_cannot_be_written_is_named(text: str) -> None:
    refuse_unwritable(["fine", "quo'te", "no\xa0break", "日本"], "SQL", "\\", "which is odd")
    with pytest.raises(DpreproError, match=r"cannot be written as SQL: it holds .*which is odd"):
        refuse_unwritable(["fine", text], "SQL", "\\", "which is odd")
