"""A dataset can be printed: what it shows discloses no row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dprepro.data.dataset import load


@pytest.mark.parametrize("as_text", [repr, str, "{}".format, lambda shown: repr([shown])])
def test_a_dataset_shows_no_row_and_no_number_of_rows(
    write_card: Callable[..., Path], as_text: Callable[[object], str]
) -> None:
    path = write_card({"unit": "who", "rows_per_unit": 1})
    rows = "".join(f"73{k},secret{k},name{k},{['no', 'yes'][k % 2]}\n" for k in range(17))
    path.with_name("toy.csv").write_text(f"age,colour,who,y\n{rows}")
    dataset = load(path)
    assert len(dataset.X) == 17
    shown = as_text(dataset).removeprefix("[").removesuffix("]")
    source = str(path.with_name("toy.csv"))
    assert (
        shown == f"Dataset(name='toy', task='binary', features=2: age, colour, source={source!r})"
    )
