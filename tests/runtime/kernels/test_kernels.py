import pickle
import subprocess
import sys

import numpy as np
import pytest

from dprepro.additive.sigmoid import sigmoid
from dprepro.methods.dp_ebm.greedy_kernel import _add_table
from dprepro.methods.dp_ebm.losses import largest_label_part
from dprepro.runtime.kernels import Kernel, prepare, registered
from tests.runtime.kernels.small import SmallPackage


def test_a_module_with_kernels_is_imported_without_numba(tmp_path):
    small = SmallPackage(tmp_path)
    code = "import sys, dprepro.second.caller; print('numba' in sys.modules)"
    assert small.run(code) == ("False\n", "")
    assert not small.cache.exists()


def test_without_the_compiler_kernels_are_plain_functions(tmp_path):
    small = SmallPackage(tmp_path)
    code = """
import numpy as np
from dprepro.second.caller import totals
print(totals(np.ones(4, np.float32), 2), type(totals).__name__)
"""
    out, _ = small.run(code, NUMBA_DISABLE_JIT="1")
    assert out == "[4. 3.] function\n"
    assert not small.cache.exists()


def test_other_types_are_refused_with_those_it_is_compiled_for():
    with pytest.raises(TypeError, match=r"additive\.sigmoid:sigmoid .*array.*\(float32,\)"):
        sigmoid(np.ones(3))
    assert sigmoid(np.float32(0)) == 0.5


def test_a_kernel_without_signatures_says_what_to_add():
    with pytest.raises(TypeError, match=r"_add_table .* with \(float64, int64\); name these types"):
        _add_table(1.0, 2)


def test_scalars_are_converted():
    assert sigmoid(1) == sigmoid(np.float32(1)) > 0.7


def test_a_kernel_keeps_name_and_text_and_can_be_pickled():
    assert largest_label_part.__name__ == "largest_label_part"
    assert "a bound of the parts" in largest_label_part.__doc__
    assert pickle.loads(pickle.dumps(largest_label_part)) is largest_label_part


@pytest.mark.compiling
def test_no_process_that_computes_ever_compiles():
    code = """
import sys
from numba.core import compiler
def refuse(*arguments, **options): raise AssertionError("compiled in this process")
compiler.compile_extra = refuse
from dprepro.methods.dp_ebm.losses import largest_label_part
print(largest_label_part(2**24))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == largest_label_part(2**24)


def test_every_kernel_that_python_calls_is_loaded():
    prepare()
    kernels = [(made, texts) for made, texts in registered().values() if isinstance(made, Kernel)]
    assert kernels
    for made, texts in kernels:
        loaded = made._dispatcher.signatures if made._dispatcher else []
        assert len(loaded) == len(texts), made.name
