"""NumPy does not sort with AVX-512 where that is slow."""

import os
import sys
from importlib import metadata
from pathlib import Path

import pytest
from support.processes import run_program

from disclosure_pipeline.runtime.machine import avoid_slow_sort

VARIABLE = "NPY_DISABLE_CPU_FEATURES"
ZEN_4 = ("AuthenticAMD", 25, 17)


@pytest.fixture
def before_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numpy", raising=False)


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")  # so that it is restored
    monkeypatch.delenv(VARIABLE)


def describe(folder: Path, vendor: str, family: int, model: int) -> Path:
    """Write of two cores what Linux says of them."""
    core = f"vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: EPYC 9\n\n"
    path = folder / "cpuinfo"
    path.write_text(f"processor\t: 0\n{core}processor\t: 1\n{core}")
    return path


@pytest.mark.usefixtures("before_numpy")
@pytest.mark.parametrize(
    ("processor", "numpy", "expected"),
    [
        (ZEN_4, "2.4.0", "X86_V4"),
        (ZEN_4, "2.3.5", "AVX512F"),
        (ZEN_4, "2.10.0rc1", "X86_V4"),
        (("AuthenticAMD", 25, 1), "2.4.0", None),  # Zen 3
        (("AuthenticAMD", 26, 17), "2.4.0", None),  # Zen 5
        (("GenuineIntel", 25, 17), "2.4.0", None),
    ],
)
def test_on_zen_4_alone(
    processor: tuple[str, int, int],
    numpy: str,
    expected: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: numpy)
    avoid_slow_sort(describe(tmp_path, *processor))
    assert os.environ.get(VARIABLE) == expected


@pytest.mark.usefixtures("before_numpy")
def test_what_the_environment_says_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "AVX512_ICL")
    avoid_slow_sort(describe(tmp_path, *ZEN_4))
    assert os.environ[VARIABLE] == "AVX512_ICL"


@pytest.mark.usefixtures("before_numpy")
def test_elsewhere_nothing_is_known_of_the_processor(tmp_path: Path) -> None:
    avoid_slow_sort(tmp_path / "missing")
    (tmp_path / "empty").write_text("")
    avoid_slow_sort(tmp_path / "empty")
    assert VARIABLE not in os.environ


def test_an_imported_numpy_cannot_be_told(tmp_path: Path) -> None:
    import numpy  # noqa: F401

    avoid_slow_sort(describe(tmp_path, *ZEN_4))
    assert VARIABLE not in os.environ


@pytest.mark.parametrize("first", ["numpy", "disclosure_pipeline"])
def test_numpy_understands_it(first: str) -> None:
    """Without a warning, on whichever processor this is."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    script = f"import {first}, disclosure_pipeline, numpy, os; print(os.environ.get('{VARIABLE}'))"
    command = [sys.executable, "-W", "error::ImportWarning", "-c", script]
    run = run_program(command, env=environment)
    assert first != "numpy" or run.stdout.strip() == "None"
    assert (run.returncode, run.stderr) == (0, "")
