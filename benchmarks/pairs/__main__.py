"""Original and synthetic tables that others published, measured and held against what was expected.

`PYTHONPATH=benchmarks python -m pairs --files FOLDER` runs all: those of packages, and those whose
repositories are cloned to FOLDER as owner/name. Files of a package are known by their SHA-256, those of a
repository by a commit, which is the hash of everything in it.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import subprocess
import tempfile
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

    def folder(self, files: Path | None) -> Path | None:
        """Return the folder of the package or repository, or None if it is not here."""
        if self.package is not None:
            spec = importlib.util.find_spec(self.package)
            return Path(spec.origin).parent if spec is not None and spec.origin is not None else None
        folder = None if files is None else files / str(self.repository)
        return folder if folder is not None and folder.is_dir() else None

    def read(self, file: dict[str, str], folder: Path) -> bytes:
        """Return the content of a file. Raise LookupError if it is not there, or is another file."""
        path = file["path"]
        if self.package is None:
            # Asked of git, as what is checked out may be of another commit, or changed.
            asked = ["git", "-C", str(folder), "cat-file", "blob", f"{file['commit']}:{path}"]
            answer = subprocess.run(asked, capture_output=True, check=False)
            if answer.returncode:
                raise LookupError(f"{path} of commit {file['commit']} is not in this clone")
            return answer.stdout
        if not (folder / path).is_file():
            raise LookupError(f"{path} is not in this version of the package")
        content = (folder / path).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if digest != file["sha256"]:
            raise LookupError(f"{path} is another file than that of the recipe (SHA-256 {digest})")
        return content


def read_recipes() -> dict[str, Pair]:
    """Return the pairs by name."""
    content: dict[str, dict[str, Any]] = yaml.safe_load(RECIPES.read_text(encoding="utf-8"))
    return {
        name: Pair(**recipe | {"name": name} | {part: tuple(recipe[part]) for part in ("keys", "targets")})
        for name, recipe in content.items()
    }


def measure(pair: Pair, folder: Path) -> tuple[bool, str]:
    """Return whether the pair is as expected, and a line for each thing found."""
    with tempfile.TemporaryDirectory() as copies, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they stand in the result
        paths = [Path(copies) / name for name in ("original.csv", "synthetic.csv")]
        try:
            for path, file in zip(paths, (pair.original, pair.synthetic), strict=True):
                path.write_bytes(pair.read(file, folder))
        except LookupError as error:
            return False, f"  {error.args[0]}"
        result = dp.disclosure(paths[0], paths[1], pair.keys, pair.targets)
    found = bool(result.copies.sentences)
    lines = [
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
