"""The pictures of the gallery, made by the code that the page shows."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_GRADIENT = re.compile(r"\bgradient_\d+\b")


def draw(page: str, folder: Path) -> None:
    """Run the page's code, block after block, within `folder`, where it saves its pictures.

    Vega numbers the gradients of all pictures that a process draws: each picture gets numbers of its own.
    """
    names: dict[str, Any] = {}
    with _within(folder):
        for number, code in enumerate(_CODE.findall(page)):
            exec(compile(code, f"gallery, block {number}", "exec"), names)
    for picture in folder.glob("*.svg"):
        text = picture.read_text(encoding="utf-8")
        for number, gradient in enumerate(dict.fromkeys(_GRADIENT.findall(text))):
            text = re.sub(rf"\b{gradient}\b", f"gradient_{number}", text)
        picture.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def _within(folder: Path) -> Iterator[None]:
    """What contextlib.chdir does, which Python 3.10 does not have."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
