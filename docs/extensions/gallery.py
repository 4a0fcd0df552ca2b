"""The pictures of the gallery, made by the code that the page shows."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def draw(page: str, folder: Path) -> None:
    """Run the page's code, block after block, within `folder`, where it saves its pictures."""
    names: dict[str, Any] = {}
    with _within(folder):
        for number, code in enumerate(_CODE.findall(page)):
            exec(compile(code, f"gallery, block {number}", "exec"), names)


@contextlib.contextmanager
def _within(folder: Path) -> Iterator[None]:
    """What contextlib.chdir does, which Python 3.10 does not have."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
