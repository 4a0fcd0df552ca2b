"""The package as it is distributed, environments in which it is installed, and a project that uses it."""

import os
import shutil
import site
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

from support.paths import PACKAGE, ROOT
from support.processes import Finished, run_program

# What a distribution is built from.
_SOURCES = ("disclosure_pipeline", "docs", "tests", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md")
# Programs of other packages that a project uses, and the modules whose `main` they run.
_PROGRAMS = {"dg": "dagster_dg_cli.cli", "create-dagster": "create_dagster.cli", "dagster": "dagster.cli"}


def build(kind: str, folder: Path) -> Path:
    """The wheel ("wheel") or the source distribution ("sdist"), built into `folder` from copied code."""
    source = folder / "source"
    if not source.exists():
        source.mkdir(parents=True)
        for name in _SOURCES:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / name, source / name, ignore=ignored)
            elif (ROOT / name).exists():
                shutil.copy(ROOT / name, source)
    return build_from(source, kind, folder)


def build_from(source: Path, kind: str, folder: Path) -> Path:
    command: list[str | Path] = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder]
    built = run_program(command, cwd=source)
    assert built.returncode == 0, built.stderr
    (made,) = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


def environment(folder: Path) -> Path:
    """A virtual environment that has the dependencies of the package, and nothing of the package.

    What is installed of this project for the tests is not there: no file of its folder runs.
    """
    venv.create(folder, symlinks=True)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    python = folder / "bin" / "python"
    for name, module in _PROGRAMS.items():
        program = folder / "bin" / name
        program.write_text(f"#!{python}\nimport sys\nfrom {module} import main\nsys.exit(main())\n")
        program.chmod(0o755)
    pip = folder / "bin" / "pip"
    pip.write_text(f'#!/bin/sh\nexec {python} -m pip "$@"\n')
    pip.chmod(0o755)
    return folder


def _inherited() -> dict[str, str]:
    """The variables of this process but for the home and the keys of a gate."""
    from disclosure_pipeline.release.keys import SALT, SIGNING_KEY

    return {name: os.environ[name] for name in os.environ.keys() - {"DAGSTER_HOME", SIGNING_KEY, SALT}}


def variables(environment: Path, **others: str) -> Mapping[str, str]:
    """The variables of a shell in which an environment is active, whose pip asks nobody."""
    inherited = {
        name: value
        for name, value in _inherited().items()
        if not name.startswith(("PYTHON", "PIP_")) or name == "PYTHONPYCACHEPREFIX"
    }
    return inherited | {
        "VIRTUAL_ENV": str(environment),
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        **others,
    }


def install(environment: Path, *what: str | Path) -> None:
    ran = run_program(
        [environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", *what],
        env=variables(environment),
    )
    assert ran.returncode == 0, ran.stderr


def run_dg(*arguments: str, folder: Path, **others: str) -> Finished:
    """Run Dagster's command in a folder, with no home and no key of a gate but those that are given."""
    shell = {"VIRTUAL_ENV": sys.prefix, "COLUMNS": "200"}
    command: list[str | Path] = [Path(sys.executable).parent / "dg", *arguments]
    return run_program(command, cwd=folder, env=_inherited() | shell | others)


PROJECT = (
    '[project]\nname = "custodian"\nversion = "0"\n'
    '[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "custodian"\n'
)


def write_project(folder: Path, definition: str) -> None:
    (folder / "pyproject.toml").write_text(PROJECT)
    package = folder / "custodian"
    (package / "defs" / "survey").mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copy(PACKAGE / "definitions.py", package)
    (package / "defs" / "survey" / "defs.yaml").write_text(definition)
