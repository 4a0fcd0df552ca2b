"""A figure is one entry: that of docs/architecture.md, added to a copy of the package, is everywhere."""

import os
import re
import shutil
import sys
from pathlib import Path

from support.paths import PACKAGE, ROOT
from support.processes import run_program
from support.sampling import on_some_days

pytestmark = on_some_days

CHECK = Path(__file__).parent / "added_figure.py"


def read_entry() -> str:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    [entry] = re.findall(r"^```python\n(Figure\(\n.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return str(entry)


def test_an_entry_is_all_that_a_figure_takes(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    module = tmp_path / PACKAGE.name / "measures" / "attribute.py"
    module.write_text(
        f"{module.read_text(encoding='utf-8')}\nFIGURES = (*FIGURES, {read_entry()})\n", "utf-8"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT / "tests")])
    ran = run_program([sys.executable, CHECK], env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "found everywhere\n"
