from __future__ import annotations

from pathlib import Path

import pytest

from dprepro.cli.cite import references
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro


def test_entries_stand_once_in_the_order_of_the_names() -> None:
    said = dprepro("cite", "adult", "dp-ebm-gdp", "dp-ebm-2021", "healthcare")
    assert said == f"{references()['becker1996']}\n\n{references()['nori2021']}\n"


def test_without_a_name_it_is_dprepro() -> None:
    assert dprepro("cite").startswith("@software{dprepro,")
    assert dprepro("cite", "dp-ebm-plus") == dprepro("cite")


def test_a_card_of_ones_own_is_cited_as_it_says(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(
        "name: shop\ntitle: Customers\ntask: binary\nfile: shop.csv\ntarget: y\n"
        "positive: yes\ncitation: A shop (2026)\n"
    )
    said = dprepro("cite", path)
    assert said == "@misc{shop,\n  title = {Customers},\n  note = {A shop (2026)}\n}\n"
    path.write_text(path.read_text() + "cite: [nobody]\n")
    with pytest.raises(DpreproError, match="`cite` names 'nobody', which is no entry"):
        dprepro("cite", path)


def test_an_unknown_name_is_explained() -> None:
    with pytest.raises(DpreproError, match="is called 'aduld'; did you mean 'adult'"):
        dprepro("cite", "aduld")
