"""A run that is broken at the first call of each of many functions: once for all that precedes the calls.

Until its first call a function that is broken changes nothing. So one run goes as far as that call and forks
there; the child ends the run with the function broken, then files are put back, and the run goes on with the
function whole.
"""

from __future__ import annotations

import os
import shutil
import stat
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from support.processes import Branch, branch


@dataclass(frozen=True)
class _Trap:
    functions: Sequence[FunctionType]
    whole: Sequence[CodeType]
    called: Callable[[int], None]


_set: list[_Trap] = []


def _first_call(*arguments: Any, **named: Any) -> Any:
    # Only constants and imports: this code is put in the place of that of other functions.
    from support.first_calls import call_first

    return call_first(-1, arguments, named)


def _code_of(number: int) -> CodeType:
    code = _first_call.__code__
    return code.replace(co_consts=tuple(number if value == -1 else value for value in code.co_consts))


def call_first(number: int, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """The first call of the function of that number, after the function is whole again."""
    trap = _set[-1]
    function = trap.functions[number]
    function.__code__ = trap.whole[number]
    trap.called(number)
    return function(*arguments, **named)


@contextmanager
def at_first_calls(functions: Sequence[FunctionType], called: Callable[[int], None]) -> Iterator[None]:
    """Call `called` with a function's number before it is called for the first time."""
    whole = [function.__code__ for function in functions]
    _set.append(_Trap(functions, whole, called))
    for number, function in enumerate(functions):
        function.__code__ = _code_of(number)
    try:
        yield
    finally:
        for function, code in zip(functions, whole, strict=True):
            function.__code__ = code
        _set.pop()


def broken_at_first_calls(
    functions: Sequence[FunctionType],
    broken: CodeType,
    folder: Path,
    run: Callable[[], Any],
    ended: Callable[[int, Any], None],
    before_fork: Callable[[], object],
) -> Any:
    """A run that is undisturbed, and what it returns; `ended` is called with what each broken one returns.

    `before_fork` does what is the same for all that is forked from there on. `run` writes nowhere but in the
    folder. Functions of which `ended` hears nothing were not called, or first while other threads were at
    work, which a fork would not take along.
    """
    child: list[Branch] = []
    threads = set(threading.enumerate())
    whole = [function.__code__ for function in functions]

    def called(number: int) -> None:
        if set(threading.enumerate()) != threads:
            return
        before_fork()
        files = _Files.move_away(folder)
        other = branch()
        if not other.child:
            child.append(other)
            for function, code in zip(functions, whole, strict=True):
                function.__code__ = code
            functions[number].__code__ = broken
            return
        value = other.result()
        files.move_back()
        ended(number, value)

    try:
        with at_first_calls(functions, called):
            value = run()
    except BaseException:
        if child:  # which is not to go on as a second suite
            traceback.print_exc()
            child[0].end(None)
        raise
    if child:
        child[0].end(value)
    return value


@dataclass(frozen=True)
class _Files:
    """A folder that was moved away, with what its process has open in it; a copy lies in its place."""

    root: Path
    original: Path
    contents: Mapping[Path, bytes]
    offsets: Mapping[int, int]

    @classmethod
    def move_away(cls, root: Path) -> _Files:
        contents = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
        original = root.rename(root.with_name(f"{root.name}-original"))
        shutil.copytree(original, root)
        return cls(root, original, contents, dict(_offsets()))

    def move_back(self) -> None:
        shutil.rmtree(self.root)
        self.original.rename(self.root)
        for path, content in self.contents.items():
            if path.read_bytes() != content:  # written to by a child that had it open
                path.write_bytes(content)
        for handle, offset in self.offsets.items():
            os.lseek(handle, offset, os.SEEK_SET)


def _offsets() -> Iterator[tuple[int, int]]:
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 (numbers, not paths)
        try:
            if stat.S_ISREG(os.fstat(int(name)).st_mode):
                yield int(name), os.lseek(int(name), 0, os.SEEK_CUR)
        except OSError:  # closed meanwhile
            continue
