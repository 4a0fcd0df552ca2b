"""Original and synthetic tables that others published, measured and held against what was expected.

`PYTHONPATH=benchmarks python -m pairs --files FOLDER` runs all: those of packages, and those whose
repositories lie in FOLDER as owner/name, at the commit of their recipe.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import disclosure_pipeline as dp

RECIPES = Path(__file__).with_name("recipes.yaml")


@dataclass(frozen=True)
class Pair:
    """A recipe: two files of a package or of a repository, what to measure, and whether people are copied."""

    name: str
    why: str
    original: dict[str, str]
    synthetic: dict[str, str]
    keys: tuple[str, ...]
    targets: tuple[str, ...]
    copied: bool
    package: str | None = None
    repository: str | None = None
    commit: str | None = None

    def folder(self, files: Path | None) -> Path | None:
        """Return the folder of the package or repository, or None if it is not here."""
        if self.package is not None:
            spec = importlib.util.find_spec(self.package)
            return Path(spec.origin).parent if spec is not None and spec.origin is not None else None
        folder = None if files is None else files / str(self.repository)
        return folder if folder is not None and folder.is_dir() else None


def read_recipes() -> dict[str, Pair]:
    """Return the pairs by name."""
    content: dict[str, dict[str, Any]] = yaml.safe_load(RECIPES.read_text(encoding="utf-8"))
    return {
        name: Pair(**recipe | {"name": name} | {part: tuple(recipe[part]) for part in ("keys", "targets")})
        for name, recipe in content.items()
    }


def measure(pair: Pair, folder: Path) -> tuple[bool, str]:
    """Return whether the pair is as expected, and a line for each thing found."""
    lines, paths = [], []
    for file in (pair.original, pair.synthetic):
        path = folder / file["path"]
        paths.append(path)
        if not path.is_file():
            return False, f"  {file['path']} is not in this version of the repository"
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        expected = file.get("sha256")
        if expected is None:
            lines.append(f"  {file['path']} has sha256 {digest}: write it into the recipe")
        elif digest != expected:
            return False, f"  {file['path']} is another file than that of the recipe (sha256 {digest})"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they stand in the result
        result = dp.disclosure(paths[0], paths[1], pair.keys, pair.targets)
    found = bool(result.copies.sentences)
    lines += [
        f"  {result.headline}",
        *(f"  {sentence}" for sentence in (*result.copies.not_examined, *result.warnings)),
    ]
    is_expected = found == pair.copied
    said = f"{'found' if found else 'not found'}, {'as' if is_expected else 'not as'} expected"
    lines.append(f"  copied people {said}: {pair.why}")
    return is_expected, "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=Path, help="the folder of the repositories")
    arguments = parser.parse_args()
    failed = []
    for name, pair in read_recipes().items():
        folder = pair.folder(arguments.files)
        if folder is None:
            print(f"{name}: left out, {pair.package or pair.repository} is not here")
            continue
        as_expected, text = measure(pair, folder)
        print(f"{name}:\n{text}")
        failed += [] if as_expected else [name]
    if failed:
        raise SystemExit(f"Not as expected: {', '.join(failed)}")


if __name__ == "__main__":
    main()
