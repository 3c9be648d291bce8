"""The registry: found by folder, wrong names explained."""

import ast
import math
import subprocess
import sys

import pytest

from dprepro.errors import DpreproError
from dprepro.methods import registry
from dprepro.privacy.private import Private, PrivateRowsError

PLUGIN = """
from dprepro.methods.registry import Guarantee, Method
from sklearn.dummy import DummyClassifier

def build(setting, **params):
    return DummyClassifier()

METHODS = [Method("{name}", "Mine", frozenset({{"binary"}}), Guarantee.NONE, None, (), "here",
                  build, takes_epsilon=False)]
"""


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    monkeypatch.setenv(registry.PLUGIN_VARIABLE, str(tmp_path))
    registry.all_methods.cache_clear()
    yield tmp_path
    registry.all_methods.cache_clear()


def test_methods_are_found_and_sorted_by_name():
    names = list(registry.all_methods())
    assert {"dp-ebm-gdp", "dp-ebm-classic", "ebm", "dp-logistic", "dp-logistic-fair"} <= set(names)
    assert names == sorted(names)


def test_an_unknown_name_gets_the_nearest_match_and_the_list():
    with pytest.raises(DpreproError, match=r"did you mean 'dp-ebm-gdp'.*Allowed: .*logistic"):
        registry.get("dp-emb-gdp")


def test_a_users_method_is_one_file(plugins):
    (plugins / "mine.py").write_text(PLUGIN.format(name="mine"))
    assert registry.get("mine").title == "Mine"


def test_two_methods_of_one_name_are_refused(plugins):
    (plugins / "mine.py").write_text(PLUGIN.format(name="ebm"))
    says = r"mine\.py: two methods are called 'ebm', this one and one of dprepro itself; rename"
    with pytest.raises(DpreproError, match=says):
        registry.all_methods()


def test_of_two_files_with_one_name_both_are_named(plugins):
    for file in ("one.py", "two.py"):
        (plugins / file).write_text(PLUGIN.format(name="mine"))
    with pytest.raises(DpreproError, match=r"two\.py: two methods are called.* one of .*one\.py"):
        registry.all_methods()


def test_a_broken_plugin_is_named_with_its_error(plugins):
    (plugins / "broken.py").write_text("1 / 0")
    with pytest.raises(DpreproError, match=r"broken\.py: cannot be imported: ZeroDivisionError"):
        registry.all_methods()


def test_a_plugin_folder_that_is_none_is_refused(plugins, monkeypatch):
    monkeypatch.setenv(registry.PLUGIN_VARIABLE, str(plugins / "missing"))
    with pytest.raises(DpreproError, match="is not a folder"):
        registry.all_methods()


def test_only_methods_with_a_budget_run_over_the_grid():
    assert registry.get("dp-ebm-gdp").effective_epsilons([1, 2]) == [1, 2]
    assert registry.get("dp-logistic").effective_epsilons([1, 2]) == [1, 2]
    assert registry.get("ebm").effective_epsilons([1, 2]) == [math.inf]


def test_an_unknown_method_says_where_own_ones_are_found():
    with pytest.raises(DpreproError, match=r"did you mean 'ebm'.*DPREPRO_METHODS"):
        registry.get("emb")


def test_a_users_method_can_be_a_package_whose_curator_opens_rows(plugins):
    package = plugins / "sealed_method"
    package.mkdir()
    (package / "curator.py").write_text("def size(rows):\n    return len(rows.open())\n")
    source = "from .curator import size\n\ndef look(rows):\n    return rows.open()\n"
    (package / "__init__.py").write_text(source + PLUGIN.format(name="sealed"))
    made = sys.modules[registry.get("sealed").build.__module__]
    assert made.size(Private([1, 2, 3])) == 3
    with pytest.raises(PrivateRowsError, match="may not open private rows"):
        made.look(Private([1, 2, 3]))


@pytest.mark.parametrize("name", sorted(registry.all_methods()))
def test_defaults_that_the_source_tells_are_those_of_the_constructor(name):
    defaults = registry.get(name).defaults
    if isinstance(defaults, registry.LateMapping):
        whole = dict(defaults._made)
        assert {key: whole[key] for key in defaults.known} == defaults.known
        assert dict(defaults) == whole


@pytest.mark.parametrize("name", ["dp-ebm-gdp", "dpboost", "dp-llm", "llm", "s-bdt", "lightgbm"])
def test_constant_defaults_are_told_without_the_library(name):
    code = f"from dprepro.methods.registry import get; d = get({name!r}).defaults; print(d.known)"
    code += "; import sys; assert not {'sklearn', 'lightgbm', 'numba'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(ast.literal_eval(done.stdout)) > 1
