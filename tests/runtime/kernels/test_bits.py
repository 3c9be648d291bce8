"""Every model has the same bits, whether its kernels were found or compiled, and in what order."""

import os
import subprocess
import sys

import pytest

FIT = """
import hashlib, sys, warnings
import numpy as np, pandas as pd
from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dpboost import DPBoostClassifier
from dprepro.methods.dp_ebm import DPEBMClassifier, DPEBMRegressor, EBMClassifier
from dprepro.methods.dp_ebm_plus import DPEBMPlusClassifier
warnings.simplefilter("ignore")
random = np.random.default_rng(0)
X = pd.DataFrame(random.random((3000, 4)), columns=list("abcd"))
y = (X["a"] + X["b"] * X["c"] + random.normal(0, 0.3, 3000) > 1).to_numpy().astype(int)
features = tuple(NumericFeature(name, 0.0, 1.0) for name in X)
domain = Domain(features, ("0", "1"))
models = {
    "DP-EBM": lambda: DPEBMClassifier(1, 1e-6, domain=domain, random_state=0).fit(X, y),
    "DP-EBM, numbers": lambda: DPEBMRegressor(
        1, 1e-6, domain=Domain(features, (0.0, 1.0)), random_state=0
    ).fit(X, y.astype(float)),
    "DP-EBM+": lambda: DPEBMPlusClassifier(1, 1e-6, domain=domain, random_state=0).fit(X, y),
    "DPBoost": lambda: DPBoostClassifier(1, domain=domain, random_state=0).fit(X, y),
    "EBM": lambda: EBMClassifier(random_state=0).fit(X, y),
}
names = list(models)[:: int(sys.argv[1])]
bits = {}
for name in names:
    model = models[name]()
    scores = model.predict(X) if name == "DP-EBM, numbers" else model.predict_proba(X)
    bits[name] = hashlib.sha256(scores.tobytes()).hexdigest()
for name in sorted(bits):
    print(name, bits[name])
"""


def fitted(step, **variables):
    done = subprocess.run(
        [sys.executable, "-c", FIT, str(step)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.compiling
@pytest.mark.timeout(900)
def test_models_have_the_same_bits_cold_and_warm(tmp_path):
    cold = fitted(1, DPREPRO_KERNELS=str(tmp_path))
    made = {path.name: path.stat().st_ino for path in tmp_path.glob("*.bin")}
    assert len(made) == 4
    assert len(cold.splitlines()) == 5
    assert fitted(-1, DPREPRO_KERNELS=str(tmp_path)) == cold
    assert {path.name: path.stat().st_ino for path in tmp_path.glob("*.bin")} == made
    # Those of whatever cache the other tests use, compiled at another time.
    assert fitted(1) == cold
