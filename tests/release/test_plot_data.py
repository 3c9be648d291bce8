import subprocess
import sys


def test_what_pictures_are_drawn_from_loads_nothing_that_trains():
    code = "import sys, dprepro.release.plot_data; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "dprepro.release.plot_data" in loaded
    assert not loaded & {"sklearn", "numba", "pandas", "diffprivlib", "dprepro.experiment.worker"}
