"""The same fits give the same bits on every machine: a file has their digests, and sums beside.

Where a processor is not x86-64, sums are compared, by a tolerance (`nearly.py`).

After a change that is meant to change bits, `make golden` writes the file anew.
"""

import json
import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from dprepro.methods import registry
from dprepro.privacy import mechanisms
from dprepro.privacy.guarantee_status import Noise
from tests.golden.__main__ import main
from tests.golden.conditions import COMPILER, CONDITIONS, other_library
from tests.golden.digest import digest
from tests.golden.fits import FLOATING, GOLDEN, bits, exact_fits, fitted, private_fits
from tests.golden.nearly import SAME_BITS, TOLERANCE, described, differences, ledger_text, sums

STORED = json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_the_file_has_every_private_method_but_those_in_floating_point():
    assert sorted(STORED) == sorted(exact_fits())
    assert len(STORED) >= 20
    methods = registry.all_methods().values()
    assert {key.split("/")[0] for key in STORED} == {
        method.name for method in methods if method.noise is Noise.EXACT
    }
    assert set(FLOATING) == {m.name for m in methods if m.noise is Noise.FLOATING_POINT}
    assert all(reason for reason in FLOATING.values())


@pytest.mark.parametrize("more", [["--all"], ["--only", "toy"]])
def test_no_other_fits_are_written(monkeypatch, capsys, more):
    before = GOLDEN.read_bytes()
    monkeypatch.setattr(sys, "argv", ["golden", "--write", *more])
    with pytest.raises(SystemExit):
        main()
    assert "neither --all nor --only" in capsys.readouterr().err
    assert GOLDEN.read_bytes() == before


def test_different_fits_have_different_digests():
    assert len({found["released"] for found in STORED.values()}) > len(STORED) / 2


@pytest.mark.parametrize("name", sorted(exact_fits()))
def test_a_fit_has_the_bits_of_the_file(name):
    assert differences(STORED[name], bits(name)) == []


def printed_under(variables, *arguments):
    """Run Python with more environment variables; return the JSON that it prints."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=GOLDEN.parents[2],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


CHOSEN = """
import json, os, threadpoolctl, scipy.linalg
from numba.core.registry import cpu_target
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
pools = [p for p in threadpoolctl.threadpool_info() if p["internal_api"] == "openblas"]
print(json.dumps({
    "loops": [f for f in __cpu_dispatch__ if __cpu_features__[f]],
    "kernels": cpu_target.target_context.codegen().magic_tuple()[1],
    "products": sorted({p["architecture"] for p in pools}),
    "threads": sorted({p["num_threads"] for p in pools}),
}))
"""


@pytest.mark.skipif(platform.machine() not in SAME_BITS, reason="the switches are of x86-64")
def test_libraries_choose_as_the_conditions_say():
    old, four = (printed_under(variables, "-c", CHOSEN) for variables in CONDITIONS.values())
    assert (old["loops"], old["kernels"], old["threads"]) == ([], "generic", [1])
    # OpenBLAS calls Prescott by the name of an older processor with the same code.
    assert old["products"] in (["Prescott"], ["Katmai"])
    assert four["threads"] == [min(4, len(os.sched_getaffinity(0)))]


@pytest.mark.compiling
@pytest.mark.timeout(900)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_bits_are_the_same(condition):
    """Kernels are compiled anew for other processors, which takes half a minute."""
    found = printed_under(CONDITIONS[condition], "-m", "tests.golden")
    assert unlike(found) == {}


def unlike(found, machine=None):
    """Return what of each fit is not as the file says."""
    compared = {key: differences(STORED[key], found[key], machine) for key in exact_fits()}
    return {key: wrong for key, wrong in compared.items() if wrong}


needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler is installed")


def printed_beside(folder, off_by):
    """Fit beside a C library whose last digits are others; see `other_library`."""
    variables = other_library(folder, off_by)
    exponential = "import json, math; print(json.dumps([math.exp(-k / 7) for k in range(99)]))"
    ours, others = printed_under({}, "-c", exponential), printed_under(variables, "-c", exponential)
    assert others != ours
    assert others == pytest.approx(ours, rel=(off_by + 1) * 2**-52)
    return printed_under(variables, "-m", "tests.golden")


@needs_compiler
@pytest.mark.compiling
@pytest.mark.timeout(900)
def test_another_c_library_gives_the_same_bits(tmp_path):
    """Every fourth result of `exp` is another number."""
    assert unlike(printed_beside(tmp_path, 0.25)) == {}


@needs_compiler
@pytest.mark.compiling
@pytest.mark.timeout(900)
def test_where_bits_differ_sums_are_near_and_ledgers_the_same(tmp_path):
    """Errors of 16 last digits, more than any library makes, move the rows of a table themselves.

    scikit-learn divides them by a power. Bins that are cut at values of rows move with them. The
    weights of a network by DP-SGD are whole numbers, of which some are rounded the other way.
    """
    found = printed_beside(tmp_path, 16)
    bits_differ = unlike(found)
    assert {"dpboost/regression", "toy-dp-ebm/regression"} <= set(bits_differ)
    assert all("released" in wrong for wrong in bits_differ.values())
    assert unlike(found, "aarch64").items() <= {"dp-sgd-mlp/regression": ["plain"]}.items()


ELSEWHERE = "aarch64"
"""A processor on which sums are compared."""


def test_the_file_was_written_on_a_processor_whose_bits_count():
    name = "dp-linear-fair/regression"
    other = {**STORED[name], "released": "0" * 16}
    assert differences(STORED[name], other, "x86_64") == ["released"]
    assert differences(STORED[name], other, "AMD64") == ["released"]
    assert differences(STORED[name], other, ELSEWHERE) == []


@pytest.mark.parametrize(
    "name", ["ada-ssp/regression", "dp-linear-fair/regression", "dp-ebm-gdp/binary", "s-bdt/binary"]
)
def test_noise_that_is_one_percent_larger_is_seen_everywhere(monkeypatch, name):
    # Imports the method: a module that is first imported below would keep the larger noise.
    assert differences(STORED[name], bits(name), ELSEWHERE) == []
    in_units = mechanisms.in_units
    monkeypatch.setattr(
        mechanisms, "in_units", lambda scale, unit: in_units(1.01 * np.asarray(scale), unit)
    )
    wrong = differences(STORED[name], bits(name), ELSEWHERE)
    assert wrong
    assert "ledger" not in wrong


@pytest.mark.parametrize("relative", [1e-4, -1e-4])
@pytest.mark.parametrize("name", ["dp-ebm-gdp/binary", "dp-ebm-joint/regression"])
def test_one_value_that_is_off_by_a_ten_thousandth_is_seen_everywhere(name, relative):
    model, _ = fitted(*private_fits()[name])
    assert differences(STORED[name], described(model), ELSEWHERE) == []
    function = model.shape_functions_[0]
    function[np.argsort(np.abs(function))[function.size // 2]] *= 1 + relative
    assert differences(STORED[name], described(model), ELSEWHERE) == ["shape_functions_"]


@pytest.mark.parametrize("change", ["bins", "a place", "one fewer", "NaN"])
def test_other_kinds_of_changes_are_seen_everywhere(change):
    name = "dp-ebm-gdp/binary"
    model, _ = fitted(*private_fits()[name])
    counts = model.bin_counts_
    if change == "bins":
        model.classes_ = model.classes_[::-1]
    elif change == "a place":
        counts[0][:2] = counts[0][1::-1].copy()
    elif change == "one fewer":
        counts.pop()
    else:
        counts[0][0] = np.nan
    expected = {"bins": ["plain"], "a place": ["bin_counts_"]}
    found = differences(STORED[name], described(model), ELSEWHERE)
    assert found == expected.get(change, ["plain", "bin_counts_"])


def test_sums_are_those_of_fractions():
    values = np.array([1e16, 1.0, -1e16, 0.25])
    total, size, placed = sums(values)
    assert (total, size) == (1.25, 2e16)
    assert placed != sums(values[::-1])[2]
    assert TOLERANCE * size > 1  # a small number beside large ones is not seen


def test_a_ledger_is_the_same_for_other_last_digits_and_for_no_others():
    said = {"sensitivity": 1.0360180178613367, "scale": 4.376843, "uses": 3}
    assert ledger_text(said) == ledger_text({**said, "sensitivity": 1.0360180178613365})
    for key, value in [("sensitivity", 1.03601803), ("scale", 4.376844), ("uses", 4)]:
        assert ledger_text(said) != ledger_text({**said, key: value})


@pytest.mark.parametrize("change", [np.nextafter(1.5, 2.0), np.float32(1.25), "1.5", 1, None])
def test_a_digest_tells_values_apart(change):
    assert digest([1.5, {"a": np.arange(3)}]) != digest([change, {"a": np.arange(3)}])


def test_a_digest_tells_arrays_apart():
    array = np.arange(6.0)
    others = [array.astype(np.float32), array.reshape(2, 3), -array, array[::-1], list(array)]
    assert len({digest(other) for other in (array, *others)}) == 6
    assert digest(array[::2]) == digest(array[::2].copy())


def test_an_object_without_known_bits_is_refused():
    with pytest.raises(TypeError, match="a model holds a object"):
        digest([object()])
