"""Which errors' texts may be published: this package's own, and no other's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.record import _finite
from dprepro.cli import main
from dprepro.data.domain import NumericFeature, numbers_of
from dprepro.methods.dp_ebm.estimator import DPEBMRegressor
from dprepro.runtime.errors import DpreproError, edits, nearest, nearest_names, publishable


def caught(action: object) -> BaseException:
    """Return what a call raises."""
    with pytest.raises(Exception) as info:  # noqa: PT011
        action()  # type: ignore[operator]
    return info.value


def foreign() -> None:
    raise ValueError("secret 17")


def test_our_own_raise_is_kept_and_a_foreign_one_withheld() -> None:
    assert "bounds must be finite" in publishable(caught(lambda: NumericFeature("x", 2, 1)))
    assert "secret" not in publishable(caught(foreign))
    assert "DPREPRO_DEBUG=1" in publishable(caught(foreign))


def test_an_error_of_compiled_code_that_we_call_is_foreign() -> None:
    # It calls float(); the error comes from its line, but not from a `raise`.
    error = caught(lambda: _finite("secret"))
    assert "secret" in str(error)
    assert "secret" not in publishable(error)


def test_a_foreign_error_that_passes_through_ours_stays_foreign() -> None:
    class Secret:
        def __array__(self, *_: object, **__: object) -> np.ndarray:
            raise ValueError("secret 17")

    error = caught(lambda: DPEBMRegressor().fit(Secret(), [1.0, 2.0]))
    assert "secret" not in publishable(error)


def test_our_errors_are_kept_wherever_they_come_from() -> None:
    assert publishable(DpreproError("no such file")) == "no such file"
    assert "withheld" in publishable(ValueError("never raised"))


@pytest.mark.parametrize("debug", [False, True])
def test_an_internal_error_on_the_terminal_is_whole_for_who_asks(
    debug: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dprepro.cli.app", foreign)
    if debug:
        monkeypatch.setenv("DPREPRO_DEBUG", "1")
        with pytest.raises(ValueError, match="secret 17"):
            main()
        return
    monkeypatch.delenv("DPREPRO_DEBUG", raising=False)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 70
    said = capsys.readouterr().err
    assert "internal error: ValueError" in said
    assert "secret" not in said


def test_several_nearest_names_are_given_the_closest_first() -> None:
    assert nearest("adlut", ["adult", "adults", "wine"], 3) == "; did you mean 'adult' or 'adults'?"
    assert nearest("adlut", ["adult", "adults"]) == "; did you mean 'adult'?"
    assert nearest("x", ["adult"], 3) == ""


NAMES = ["dp-ebm-classic", "dp-ebm-gdp", "dp-ebm-plus", "dp-llm", "dpboost", "ebm", "lightgbm"]


def test_a_name_is_near_if_its_beginning_is() -> None:
    assert nearest_names("dp-emb", NAMES, 3) == ["dp-ebm-gdp", "dp-ebm-plus", "dp-ebm-classic"]
    assert nearest_names("light", NAMES) == ["lightgbm"]
    assert nearest_names("DP-LLM", NAMES) == ["dp-llm"]


def test_a_whole_name_is_nearer_than_a_beginning() -> None:
    assert nearest_names("ebn", ["ebm-classic", "ebm"], 2) == ["ebm", "ebm-classic"]
    assert nearest_names("", NAMES, 3) == []
    assert nearest_names("zz", NAMES, 3) == []


@pytest.mark.parametrize(
    ("given", "name", "expected"),
    [
        ("dp-emb", "dp-ebm", (1, 1)),  # two neighbours are swapped
        ("dp-emb", "dp-ebm-gdp", (5, 1)),
        ("", "abc", (3, 0)),
        ("abc", "", (3, 3)),
        ("kitten", "sitting", (3, 2)),
    ],
)
def test_edits_are_counted_to_the_name_and_to_its_beginning(given, name, expected) -> None:
    assert edits(given, name) == expected


def test_text_in_numbers_is_explained_in_words():
    with pytest.raises(ValueError, match="'dose' is numeric in the domain") as caught:
        numbers_of(pd.Series(["1", "secret"], name="dose"))
    assert "sort the column in a spreadsheet" in str(caught.value)
    assert not {"secret", "to_numeric", "NaN"} & set(str(caught.value).split())
