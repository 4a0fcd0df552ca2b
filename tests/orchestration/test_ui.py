"""The gate that Dagster's user interface is given by the command that the README names.

That the command finds it is shown by `dg check defs` in test_yaml.py, that `dg dev` starts the interface by
the tutorial, and what its pages show by test_ui_pages.py.
"""

from support import gates
from support.paths import ROOT

from disclosure_pipeline.definitions import defs as load_definitions

# What `dg dev` is to show of the gates.
GATES = ("salaries", "survey")
OF_GATE = ("ground_truth", "synthetic", "bins", "dossier", "release", "candidates")
ASSETS = {(gate, name) for gate in GATES for name in (*OF_GATE, "identity_risk", "attribute_risk")}
SENSORS = {f"{gate}_{kind}" for gate in GATES for kind in ("arrivals", "failures")}
SCHEDULES = {f"{gate}_ground_truth_changed" for gate in GATES}


def test_the_code_location_has_the_gate() -> None:
    assert "make ui" in (ROOT / "README.md").read_text()
    assert "$(BIN)/dg dev" in (ROOT / "Makefile").read_text()
    with gates.quiet():
        repository = load_definitions().get_repository_def()
    assert {tuple(key.path) for key in repository.asset_graph.get_all_asset_keys()} == ASSETS
    assert {sensor.name for sensor in repository.sensor_defs} == SENSORS
    assert {schedule.name for schedule in repository.schedule_defs} == SCHEDULES


def test_definitions_are_loaded_once_a_process() -> None:
    """Dagster asks for them six times to launch one run."""
    with gates.quiet():
        assert load_definitions() is load_definitions()
