"""A user types what a table shows, and means the method."""

from __future__ import annotations

import pytest

from dprepro.audit.subjects import find_case
from dprepro.cli.cite import cite
from dprepro.experiment.method_names import (
    any_name_meant,
    name_meant,
    names_in_config,
    nearest_meant,
    split_names,
)
from dprepro.judge.comparing import refuse_unknown
from dprepro.methods import registry
from dprepro.runtime.errors import DpreproError

KNOWN = ["dpboost", "dpboost-2021", "dp-ebm-plus", "EBM", "ebm"]


def test_what_a_table_shows_is_the_name_whatever_its_case():
    assert name_meant("dpebm+ ", KNOWN) == "dp-ebm-plus"
    assert any_name_meant("DPEBM-GDP (2021 code)") == "dp-ebm-gdp-2021"
    assert any_name_meant("nothing") == "nothing"


def test_a_name_of_the_config_comes_before_what_tables_show():
    assert name_meant("EBM", KNOWN) == "EBM"
    assert name_meant("EBM", ["ebm"]) == "ebm"


def test_what_tables_show_of_several_methods_is_refused():
    with pytest.raises(DpreproError, match="'DPBoost': name dpboost or dpboost-2021"):
        name_meant("DPBoost", KNOWN)


def test_names_near_what_tables_show_are_suggested():
    assert nearest_meant("DPEBM-Plus", KNOWN) == "; did you mean 'dp-ebm-plus'?"
    assert nearest_meant("dpboost-2012", KNOWN) == "; did you mean 'dpboost-2021'?"
    assert nearest_meant("dpboos", KNOWN) == "; did you mean 'dpboost'?"
    assert nearest_meant("?", KNOWN) == ""


@pytest.mark.parametrize(
    "name_one",
    [
        registry.get,
        find_case,
        lambda name: cite([name]),
        lambda name: names_in_config([name], registry.all_methods()),
        lambda name: refuse_unknown(name, [*registry.all_methods(), "dp-ebm-gdp rounds=5"]),
    ],
)
def test_the_beginning_of_several_names_asks_which_one(name_one):
    with pytest.raises(DpreproError, match="'dp-ebm' is the beginning of several") as raised:
        name_one("dp-ebm")
    lines = str(raised.value).splitlines()[1:]
    assert {line.split()[0] for line in lines} >= {"dp-ebm-gdp", "dp-ebm-sound"}
    assert all(3 <= len(line.split()[1:]) <= 7 and len(line) < 80 for line in lines)


def test_a_config_names_what_it_has():
    assert names_in_config(["DPEBM+", "ebm"], KNOWN) == ["dp-ebm-plus", "ebm"]
    with pytest.raises(DpreproError, match=r"no method 'svm' in the config\. Allowed: dpboost, "):
        names_in_config(["svm"], KNOWN)


def test_a_list_between_commas_is_several_names():
    assert names_in_config(["DPEBM+, ebm", "dpboost"], KNOWN) == ["dp-ebm-plus", "ebm", "dpboost"]
    assert split_names(["a,b", "a"], ["a,b", "a"]) == ["a,b", "a"]
    with pytest.raises(DpreproError, match="no method 'svm' in the config"):
        names_in_config(["ebm,svm"], KNOWN)


@pytest.mark.parametrize("given", ["", ",", " "])
def test_what_holds_no_name_does_not_mean_all(given):
    with pytest.raises(DpreproError, match=f"no method '{given}' in the config"):
        names_in_config([given], KNOWN)
