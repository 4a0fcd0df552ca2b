"""The examples in the docstrings of the public functions run, and print what they say."""

import doctest
import importlib
import inspect
from collections.abc import Iterator

import pytest
from support.paths import ROOT

import disclosure_pipeline as dp

PUBLIC_NAMES = [name for name in dp.__all__ if name != "DisclosureGate"]  # which would import Dagster
PUBLIC_FUNCTIONS = [name for name in PUBLIC_NAMES if inspect.isfunction(getattr(dp, name))]

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def examples() -> Iterator[doctest.DocTest]:
    """Yield the examples of the public names that have one."""
    finder = doctest.DocTestFinder(recurse=False)
    for name in PUBLIC_NAMES:
        yield from (test for test in finder.find(getattr(dp, name), name) if test.examples)


OF_PUBLIC_NAMES = list(examples())


@pytest.mark.parametrize("name", PUBLIC_FUNCTIONS)
def test_every_public_function_has_an_example(name: str) -> None:
    code = [example.source for test in OF_PUBLIC_NAMES if test.name == name for example in test.examples]
    assert f"dp.{name}(" in "".join(code)


@pytest.mark.parametrize("example", OF_PUBLIC_NAMES, ids=lambda example: example.name)
def test_examples_print_what_they_say(example: doctest.DocTest) -> None:
    example.globs = {}  # an example imports what it needs
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    assert runner.run(example).failed == 0


MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "disclosure_pipeline").rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_modules_print_what_they_say(name: str) -> None:
    """Those that readers of the code alone meet: they take what the module has imported."""
    module = importlib.import_module(name)
    examples = [test for test in doctest.DocTestFinder().find(module) if test.examples]
    assert examples
    public = {example.docstring for example in OF_PUBLIC_NAMES}
    for example in examples:
        if example.docstring not in public:
            assert doctest.DocTestRunner(optionflags=OPTIONS).run(example).failed == 0, example.name
