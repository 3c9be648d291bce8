"""The same fits give the same bits on every machine: a file has their digests.

After a change that is meant to change bits, `make golden` writes the file anew.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from dprepro.methods import registry
from dprepro.privacy.guarantee_status import Noise
from tests.golden.__main__ import main
from tests.golden.conditions import CONDITIONS
from tests.golden.digest import digest
from tests.golden.fits import FLOATING, GOLDEN, bits, exact_fits, fitted, private_fits

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
    assert bits(name) == STORED[name]


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
    assert {key for key in exact_fits() if found[key] != STORED[key]} == set()


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


def histogram_share(key):
    """Return what histograms get of mu^2."""
    entries = fitted(*private_fits()[key])[0].ledger_.entries
    spent = [entry.uses * (entry.sensitivity / entry.scale) ** 2 for entry in entries]
    return spent[1] / sum(spent)


def test_dp_ebm_plus_goes_both_of_its_ways():
    coarse = ("dp-ebm-plus/binary", "dp-ebm-plus/regression")
    fine = ("dp-ebm-plus/regression/8", "dp-ebm-plus/binary/8")
    assert [histogram_share(key) for key in coarse] == pytest.approx([0.02, 0.02], rel=0.02)
    assert [histogram_share(key) for key in fine] == pytest.approx([0.2, 0.12], rel=0.02)
