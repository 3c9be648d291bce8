"""The registry: found by folder, wrong names explained."""

import ast
import inspect
import math
import subprocess
import sys
from pathlib import Path

import pytest

from dprepro import methods
from dprepro.methods import registry
from dprepro.methods.entry import Made
from dprepro.privacy.private_rows import Private, PrivateRowsError
from dprepro.privacy.sensitivity import Adjacency
from dprepro.runtime.errors import DpreproError

PLUGIN = """
from dprepro.methods.entry import Guarantee, Method
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


@pytest.mark.parametrize(
    "line", ["from dprepro.errors import DpreproError", "from dprepro.privacy.ledger import Old"]
)
def test_a_plugin_of_an_earlier_version_is_told_that_modules_moved(plugins, line):
    (plugins / "old.py").write_text(f"{line}\n")
    with pytest.raises(DpreproError, match=r"\(line 1\)\. Modules of dprepro moved after"):
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


NOT_LISTED = {
    "aplr", "gradient-boosting", "random-forest", "xgboost", "mlp",  # some of a library's own
    "dp-logistic", "dp-logistic-fair", "logistic", "logistic-fair", "logistic-standardized",
    "dp-one-rule", "one-rule", "linear",
}  # fmt: skip
"""Methods whose estimators have parameters that configs cannot set."""
OF_THE_TASK = {"epsilon", "delta", "domain", "random_state", "n_jobs"}
OF_LIGHTGBM = {"objective", "class_weight", "importance_type", "kwargs"}


@pytest.mark.parametrize("name", sorted(set(registry.all_methods()) - NOT_LISTED))
def test_every_parameter_of_the_constructor_is_listed_with_its_default(name):
    build = registry.get(name).build
    if not isinstance(build, Made):
        build = registry.get("dpboost" if "dpboost" in name else "dp-ebm-gdp").build
    if (requires := registry.get(name).requires) is not None:
        pytest.importorskip(requires)
    listed = dict(registry.get(name).defaults)
    for task in registry.get(name).tasks:
        taken = inspect.signature(build.estimator(task)).parameters
        # What the method fixes, it lists with its own value, or not at all.
        expected = {key: value.default for key, value in taken.items() if key not in build.fixed}
        found = {key: value for key, value in listed.items() if key in expected}
        left_out = expected.keys() - found.keys() - OF_THE_TASK - OF_LIGHTGBM
        if name.startswith(("lazybb", "boosted")):  # parameters of noise, or of another base
            left_out -= {"calibration", "composition", "label_share", "splits"}
        assert found == {key: expected[key] for key in found}
        assert not left_out
        assert not set(listed) & OF_THE_TASK


def test_defaults_are_told_without_a_library():
    code = (
        "from dprepro.methods.registry import all_methods\n"
        "print(sum(len(dict(method.defaults)) for method in all_methods().values()))\n"
        "import sys; assert not {'sklearn', 'pandas', 'lightgbm', 'numba'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 200


RELATIONS = {relation.name for relation in Adjacency}


def stated_relations(source):
    """Return the neighbouring relations that a module names, but for comparisons with one."""
    tree = ast.parse(source)
    compared = {part for node in ast.walk(tree) if isinstance(node, ast.Compare)
                for part in ast.walk(node)}  # fmt: skip
    return {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in set(ast.walk(tree)) - compared
        if isinstance(node, ast.Name | ast.Attribute)
        and getattr(node, "attr", getattr(node, "id", "")) in RELATIONS
    }


def test_a_module_that_names_its_neighbours_is_found():
    source = (
        "from a import ZERO_OUT\nif kind != ADD_REMOVE:\n    ledger = Ledger(1.0, 0.0, ZERO_OUT)"
    )
    assert stated_relations(source) == {"ZERO_OUT"}
    assert stated_relations("x = Adjacency.REPLACE_ONE") == {"REPLACE_ONE"}


def test_the_entry_alone_says_who_is_a_neighbour():
    """A curator says for which relations its sensitivities are proved, and its case has tables."""
    proofs = {"__init__.py", "curator.py", "audit.py"}
    paths = [p for p in Path(methods.__file__).parent.rglob("*.py") if p.name not in proofs]
    assert len(paths) > 50
    assert {
        str(path): found
        for path in paths
        if (found := stated_relations(path.read_text(encoding="utf-8")))
    } == {}
