"""The published distribution can be built again, and a forge checks it as CI does."""

import os
import re
from pathlib import Path
from zipfile import ZipFile

import yaml
from support.distributions import build
from support.paths import PACKAGE, ROOT


def list_cited() -> set[str]:
    """Return the documents that messages, a gate's file and the page cite, and the pages to look up."""
    texts = (
        path.read_text(encoding="utf-8")
        for path in PACKAGE.rglob("*")
        if path.suffix in {".py", ".yaml", ".jinja", ".html"}
    )
    cited = {path for text in texts for path in re.findall(r"\bdocs/[\w/]+\.md\b", text)}
    return cited | {f"docs/reference/{name}.md" for name in ("gate", "glossary", "library")}


def test_a_wheel_that_is_built_twice_has_the_same_bytes(tmp_path: Path) -> None:
    """Whenever its files were written."""
    first, second = (build("wheel", tmp_path / name) for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    for path in (tmp_path / "second" / "source").rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    second.unlink()
    assert build("wheel", tmp_path / "second").read_bytes() == first.read_bytes()
    with ZipFile(first) as wheel:
        names = wheel.namelist()
        metadata = wheel.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert {"disclosure_pipeline/__init__.pyi", "disclosure_pipeline/py.typed"} <= set(names)
    documents = {f"disclosure_pipeline/{path}" for path in list_cited()}
    assert len(documents) > 3 and documents <= set(names)
    assert not [name for name in names if "docs/extensions" in name]
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "docs/"))]
    fields = (
        "Summary: ",
        "License-Expression: Apache-2.0",
        "Requires-Python: ",
        "Classifier: Typing :: Typed",
    )
    for field in fields:
        assert f"\n{field}" in metadata, field


def test_a_forge_runs_what_ci_runs() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    [job] = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
