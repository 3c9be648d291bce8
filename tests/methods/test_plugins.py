"""Mistakes in a user's file of methods: each is one line that names the file."""

import json

import pytest

from dprepro import cli
from dprepro.methods import registry
from dprepro.methods.entry import Method
from dprepro.runtime.errors import DpreproError, DpreproWarning

INF = float("inf")
METHOD = """
from dprepro.methods.entry import Guarantee, Method
from sklearn.naive_bayes import GaussianNB

def build(setting, **params):
    {body}

FIELDS = dict(
    name="mine", title="Mine", tasks=frozenset({{"binary"}}), guarantee=Guarantee.NONE,
    adjacency=None, assumes=(), reference="here", build=build, takes_epsilon=False,
    encoding="one-hot", defaults={{"var_smoothing": 1e-9}},
)
{methods}
"""
SOUND = "return GaussianNB(**params)"


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    """Write the user's file, with a body of `build` and a line that defines METHODS."""
    folder = tmp_path / "methods"
    folder.mkdir()
    monkeypatch.setenv(registry.PLUGIN_VARIABLE, str(folder))
    monkeypatch.delenv("DPREPRO_DEBUG", raising=False)
    registry.all_methods.cache_clear()

    def write(body=SOUND, methods="METHODS = [Method(**FIELDS)]"):
        (folder / "mine.py").write_text(METHOD.format(body=body, methods=methods))
        return folder

    yield write
    registry.all_methods.cache_clear()


def refused(call, *given):
    """Return what is said, which is one line that begins with the file."""
    with pytest.raises(DpreproError) as caught:
        call(*given)
    said = str(caught.value)
    assert "/mine.py: " in said.partition(" ")[0] + " "
    assert "\n" not in said
    return said


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return 1 / 0", "ZeroDivisionError: division by zero (line 6)"),
        ("return GausianNB()", "NameError: name 'GausianNB' is not defined (line 6)"),
        ("return int('many')", "ValueError: invalid literal"),
        ("return GaussianNB(1, 2, 3)", "TypeError: "),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("raise KeyError('a\\nb')", "KeyError: "),
        ("raise RuntimeError", "fails, tried with one feature from 0 to 1: RuntimeError (line 6)"),
        ("GaussianNB()", "returns None, and must return an unfitted estimator"),
        ("return GaussianNB", "returns the class GaussianNB, and must return an unfitted"),
        ("return [GaussianNB()]", "returns an object of type list"),
    ],
)
def test_a_build_that_fails_before_any_row_is_read_is_the_files_fault(plugins, body, says):
    plugins(body)
    said = refused(registry.get("mine").needs_kernels, "binary")
    assert "the `build` of 'mine'" in said
    assert says in said


def test_with_parameters_a_refusal_is_left_to_the_config_and_other_errors_are_not(plugins):
    plugins("return GaussianNB(**params) if params['var_smoothing'] < 1 else nothing")
    method = registry.get("mine")
    method.check_values("binary", INF, {"var_smoothing": 0.1})
    with pytest.raises(ValueError, match="var_smoothing"):
        method.check_values("binary", INF, {"var_smoothing": -1.0})
    with pytest.raises(TypeError, match="not supported"):
        method.check_values("binary", INF, {"var_smoothing": "much"})
    assert "NameError" in refused(method.check_values, "binary", INF, {"var_smoothing": 2})


def test_an_estimator_that_cannot_check_its_parameters_is_the_files_fault(plugins):
    plugins("m = GaussianNB(); m.check_parameters = lambda: 1 / 0; return m")
    said = refused(registry.get("mine").check_values, "binary", INF, {})
    assert "'mine' cannot check its parameters: ZeroDivisionError" in said


def test_the_traceback_is_printed_where_it_is_asked_for(plugins, monkeypatch, capsys):
    plugins("return 1 / 0")
    method = registry.get("mine")
    refused(method.needs_kernels, "binary")
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("DPREPRO_DEBUG", "1")
    refused(method.needs_kernels, "binary")
    assert "Traceback" in capsys.readouterr().err


def test_a_fault_of_our_own_methods_is_none_of_a_file():
    ours = registry.get("ebm")
    with pytest.raises(TypeError):
        ours.check_values("binary", INF, {"no_such": 1})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("3", "METHODS is 3, and must be a list"),
        ("None", "METHODS is None"),
        ("{'mine': Method(**FIELDS)}", "METHODS is an object of type dict"),
        ("Method(**FIELDS)", "METHODS is an object of type Method"),
        ("[3]", "METHODS[0] is 3, and must be a `Method`"),
        ("[Method(**FIELDS), build]", "METHODS[1] is an object of type function"),
        ("[Method]", "METHODS[0] is the class Method"),
    ],
)
def test_methods_that_are_no_list_of_them_are_refused(plugins, given, says):
    plugins(methods=f"METHODS = {given}")
    assert says in refused(registry.all_methods)


def test_methods_can_be_a_tuple_or_empty(plugins):
    plugins(methods="METHODS = (Method(**FIELDS),)")
    assert registry.get("mine").file.name == "mine.py"
    registry.all_methods.cache_clear()
    plugins(methods="METHODS = []")
    assert "mine" not in registry.all_methods()


def test_a_file_without_methods_is_warned_about(plugins):
    plugins(methods="")
    with pytest.warns(DpreproWarning, match=r"mine\.py: defines no METHODS.*`METHODS = \[\]`"):
        assert "ebm" in registry.all_methods()


WRONG = {
    "name": ("3", "METHODS[0]: `name` is 3. Allowed: a text"),
    "title": ("' '", "`title` is ' '"),
    "tasks": ("'binary'", "is 'binary'. Allowed: a set with one or more of 'binary', 'multiclass'"),
    "guarantee": ("'none'", "is 'none'. Allowed: Guarantee.NONE, Guarantee.PURE, "),
    "assumes": ("'public: rows'", "`assumes` is 'public: rows'. Allowed: a tuple or list"),
    "reference": ("None", "`reference` is None"),
    "build": ("GaussianNB()", "`build` is an object of type GaussianNB. Allowed: a function"),
    "takes_epsilon": ("'no'", "`takes_epsilon` is 'no'. Allowed: True, False"),
    "encoding": ("'onehot'", "`encoding` is 'onehot'; did you mean 'one-hot'? Allowed: 'frame', "),
    "version": ("'2'", "`version` is '2'. Allowed: a whole number"),
    "defaults": ("['var_smoothing']", "`defaults` is a list of 'var_smoothing'. Allowed: a dict"),
    "form": ("None", "`form` is None. Allowed: a text"),
    "requires": ("''", "`requires` is ''. Allowed: the name of a module"),
    "noise": ("'exact'", "`noise` is 'exact'. Allowed: Noise.EXACT, Noise.FLOATING_POINT, None"),
    "keeps_ledger": ("1", "`keeps_ledger` is 1"),
    "takes_tables": ("None", "`takes_tables` is None"),
    "divides": ("None", "`divides` is None. Allowed: Division.GAUSSIAN"),
    "repeats_within": ("float('nan')", "`repeats_within` is nan"),
    "cite": ("'smith2020'", "`cite` is 'smith2020'"),
    "gist": ("None", "`gist` is"),
}
ALSO_WRONG = [
    ("tasks", "{'binry'}", "is a set of 'binry'"),
    ("tasks", "frozenset()", "is an object of type frozenset"),
    ("tasks", "[['binary']]", "`tasks` is a list of a list of 'binary'"),
    ("guarantee", "Guarantee", "is the class Guarantee"),
    ("adjacency", "'zero'", "cannot be imported: ValueError: adjacency must be one of 'zero-out'"),
    ("encoding", "None", "`encoding` is None. Allowed"),
    ("encoding", "['one-hot']", "`encoding` is a list of 'one-hot'. Allowed"),
    ("version", "True", "`version` is True"),
    ("defaults", "{1: 2}", "`defaults` is an object of type dict"),
    ("requires", "'.here'", "`requires` is '.here'"),
    ("repeats_within", "-1", "`repeats_within` is -1"),
    ("cite", "[3]", "`cite` is a list of 3"),
    ("title", "['x' * 1000]", "`title` is a list of 'xxx"),
]


@pytest.mark.parametrize(
    ("field", "given", "says"), [*((f, *case) for f, case in WRONG.items()), *ALSO_WRONG]
)
def test_a_field_of_a_wrong_type_or_value_is_refused(plugins, field, given, says):
    plugins(methods=f"METHODS = [Method(**{{**FIELDS, {field!r}: {given}}})]")
    said = refused(registry.all_methods)
    assert says in said
    assert len(said) < 600
    assert field == "name" or "'mine'" in said or "cannot be imported" in said


def test_every_field_is_checked():
    # A wrong adjacency is refused by `Method` itself, and `file` is not given.
    assert set(Method.__dataclass_fields__) - set(WRONG) == {"adjacency", "code", "file"}


@pytest.mark.parametrize("tasks", ["{'binary'}", "['binary']", "('binary', 'regression')"])
def test_tasks_can_be_any_set_of_kinds(plugins, tasks):
    plugins(methods=f"METHODS = [Method(**{{**FIELDS, 'tasks': {tasks}}})]")
    assert "binary" in registry.get("mine").tasks


def test_a_file_that_ends_the_process_is_refused(plugins):
    plugins(methods="raise SystemExit(0)")
    assert "cannot be imported: SystemExit: 0 (line 13)" in refused(registry.all_methods)


def test_a_broken_module_beside_the_methods_is_named(plugins):
    package = plugins() / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("METHODS = []")
    (package / "audit_case.py").write_text("1 / 0")
    with pytest.raises(
        DpreproError, match=r"audit_case\.py: cannot be imported: ZeroDivisionError"
    ):
        registry.audit_modules()


@pytest.mark.parametrize(
    ("body", "methods", "says"),
    [
        ("return 1 / 0", "METHODS = [Method(**FIELDS)]", "ZeroDivisionError: division by zero"),
        (SOUND, "METHODS = 3", "METHODS is 3"),
        (SOUND, "METHODS = [Method(**{**FIELDS, 'encoding': 'onehot'})]", "'one-hot'?"),
    ],
)
def test_the_command_line_shows_one_line_and_no_bug(
    plugins, tmp_path, monkeypatch, capsys, body, methods, says
):
    plugins(body, methods)
    rows = "".join(f"{i % 7},{'yes' if i % 3 else 'no'}\n" for i in range(60))
    (tmp_path / "rows.csv").write_text(f"a,y\n{rows}")
    (tmp_path / "card.yaml").write_text(
        "name: few\ntask: binary\nfile: rows.csv\ntarget: y\npositive: 'yes'\n"
        "labels: ['no', 'yes']\nfeatures: {a: {numeric: [0, 6]}}\n"
    )
    config = {"dataset": "./card.yaml", "metric": "auc", "epsilons": [1], "splits": 1, "seed": 1}
    (tmp_path / "few.yaml").write_text(json.dumps({**config, "methods": ["mine"]}))
    monkeypatch.setattr("sys.argv", ["dprepro", "run", str(tmp_path / "few.yaml")])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr().err
    assert end.value.code == 2, said
    assert says in said.splitlines()[-1]
    assert "mine.py: " in said.splitlines()[-1]
    assert "bug in dprepro" not in said


def test_a_file_of_an_earlier_version_finds_the_entry_where_it_was(plugins):
    folder = plugins(methods="METHODS = [Method(**FIELDS)]")
    path = folder / "mine.py"
    older = path.read_text(encoding="utf-8").replace(
        "dprepro.methods.entry", "dprepro.methods.registry"
    )
    path.write_text(older.replace("import Guarantee, Method", "import Guarantee, Method, Setting"))
    assert "methods.registry import Guarantee, Method, Setting" in path.read_text(encoding="utf-8")
    assert "mine" in registry.all_methods()
