import pytest

from dprepro.judge.fact_claims import SettingsOf, same
from dprepro.judge.quantities import found_params
from dprepro.runtime.errors import DpreproError


def test_parameters_of_a_level_replace_those_of_the_method_and_its_defaults():
    assert found_params("mnist", "dp-llm", 2)["noise_multiplier"] == 1.3
    assert found_params("mnist", "dp-llm", 0.5)["noise_multiplier"] is None
    assert found_params("mnist", "dp-llm")["accountant"] == "moments"
    assert found_params(None, "dp-llm")["accountant"] == "pld"


def test_values_come_from_the_config_its_grid_and_its_methods():
    found = SettingsOf(
        config="lazybb-grid",
        method="lazybb-topdown",
        keys={"splits": 1},
        grid={"rounds": [1]},
        params={"splits": 1},
    ).ours()
    assert found["rounds"] == [5, 9, 15, 19, 25, 29, 35, 39, 45, 51]
    assert found["splits"] == 3
    keys = SettingsOf(config="adult", keys={"delta": 1, "epsilons": [1]}).ours()
    assert keys == {"delta": 1e-6, "epsilons": (0.5, 1, 2, 4, 8)}


@pytest.mark.parametrize(
    ("stated", "ours", "agree"),
    [
        ([0.5, 1], (0.5, 1.0), True),
        ([0.5, 1], (0.5, 1.0, 2.0), False),
        ([0.5, 1], (0.5, 1.1), False),
        ([1], 1, False),
        (0.03333333333333333, 1 / 30, True),
        (0.033, 1 / 30, False),
        (1.0, 1 + 0.9e-9, True),
        (1.0, 1 + 1.5e-9, False),
        (None, None, True),
        (None, 300, False),
        ("gdp", "gdp", True),
        ("gdp", "classic", False),
    ],
)
def test_values_agree(stated, ours, agree):
    assert same(stated, ours) is agree


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"config": "adult", "method": "dp-ebm-gpd", "params": {"max_bins": 1}},
            "no method 'dp-ebm-gpd'; did you mean 'dp-ebm-gdp",
        ),
        (
            {"method": "dp-ebm-gdp", "params": {"max_bin": 1}},
            "its defaults has no 'max_bin'; did you mean 'max_bins'",
        ),
        (
            {"config": "adult", "method": "dp-ebm-gdp-2021", "params": {"max_bin": 1}},
            "dp-ebm-gdp-2021 in adult has no 'max_bin'",
        ),
        ({"config": "adult", "keys": {"split": 1}}, "did you mean 'splits'"),
        ({"config": "mnist", "method": "dp-llm", "grid": {"rounds": [1]}}, "has no 'rounds'"),
        ({"method": "dp-ebm", "params": {"max_bins": 1}}, "unknown method"),
        ({"config": "adlut", "keys": {"splits": 1}}, "did you mean 'adult'. Only built-in"),
    ],
)
def test_names_that_do_not_exist_are_errors(fields, message):
    with pytest.raises(DpreproError, match=message):
        SettingsOf(**fields).ours()
