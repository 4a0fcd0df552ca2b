"""A release is judged by what its statement says, whatever the catalogue of the verifying version says."""

import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from securesystemslib.signer import CryptoSigner
from support import gates, releases

from disclosure_pipeline.measures import catalogue
from disclosure_pipeline.measures.entry import Default, Figure
from disclosure_pipeline.policy.reviewed_files import read_key_file
from disclosure_pipeline.release.predicate import Predicate
from disclosure_pipeline.release.statement import find_contradictions
from disclosure_pipeline.release.verifying import verify

SIGNED = Path(__file__).parents[1] / "golden" / "signed_0.1.0.zip"
Change = Callable[[Figure], Figure | None]


def with_default(times: float) -> Change:
    def change(entry: Figure) -> Figure:
        default = entry.default and replace(entry.default, bound=times * entry.default.bound + (times > 1))
        return replace(entry, default=default)

    return change


CHANGES: dict[str, Change] = {
    "every default is halved": with_default(0.5),
    "every default is doubled": with_default(2),
    "nothing is published": lambda entry: replace(entry, place=replace(entry.place, frame="withheld")),
    "every figure is renamed": lambda entry: replace(entry, name=f"{entry.name}_renamed"),
    "every figure is dropped": lambda _: None,
    "every figure is a guard": lambda entry: replace(entry, default=Default("at_most", 0.001, "A guard now")),
    "every figure is a doubt": lambda entry: replace(entry, is_doubt=True, default=None),
    "every figure is bounded otherwise": lambda entry: replace(entry, statistics=("at_least",)),
    "every figure is a share of another": lambda entry: replace(
        entry, place=replace(entry.place, own="another")
    ),
}


@contextmanager
def changed_catalogue(change: Change) -> Iterator[None]:
    """Change the entries in every table that the policy is read from.

    Each table gets its own entries back in their order, which documents and schemas follow.
    """
    entries = map(change, [*catalogue.FIGURES.values()])
    changed = {entry.name: entry for entry in entries if entry is not None}
    tables: list[tuple[Any, dict[str, Any]]] = [
        (catalogue.FIGURES, changed),
        (catalogue.BOUNDABLE, {name: of for name, of in changed.items() if of.statistics}),
        (
            catalogue.DEFAULTS,
            {name: of.default.bound for name, of in changed.items() if of.default is not None},
        ),
    ]
    with ExitStack() as stack:
        for table, content in tables:
            stack.enter_context(patch.dict(table, content, clear=True))
        yield


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signed")
    with zipfile.ZipFile(SIGNED) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A release of today's version, with a waiver."""
    signer = CryptoSigner.generate_ed25519()
    folder = tmp_path_factory.mktemp("published") / releases.CANDIDATE
    return releases.publish(folder, signer, releases.predicate(waived=True)), [releases.trust(signer)]


@pytest.mark.parametrize("change", CHANGES)
def test_a_release_verifies_whatever_has_changed_in_the_catalogue(
    signed: Path, published: tuple[Path, Any], change: str
) -> None:
    keys = read_key_file(signed / "public-key.pem")
    before = dict(catalogue.FIGURES)
    with changed_catalogue(CHANGES[change]):
        assert before != catalogue.FIGURES
        for candidate in ("conditional-model", "two-syntheses"):
            approval = verify(signed / candidate, keys)
            assert approval.predicate.candidate == candidate
            stated = [*approval.predicate.clauses, *approval.predicate.controls]
            assert all(clause.words in str(approval) for clause in stated)
        folder, own_keys = published
        assert "Approved" in str(verify(folder, own_keys))
    assert list(before) == list(catalogue.FIGURES)


def find_problems(predicate: Predicate, name: str, **changes: Any) -> list[str]:
    """Return the contradictions after a clause has been changed."""
    kind = "controls" if name in {clause.name for clause in predicate.controls} else "clauses"
    edited = tuple(
        clause.model_copy(update=changes) if clause.name == name else clause
        for clause in getattr(predicate, kind)
    )
    assert edited != getattr(predicate, kind)
    forged = predicate.model_copy(update={kind: edited})
    files = {table.name: "" for table in forged.synthetic} | {"dossier.html": ""}
    return find_contradictions(forged, files)


FORGED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a value beyond its limit": ("repU", {"value": 20.001}, "its value and limit say exceeded"),
    "a looser bound of a guard": ("nearer", {"bound": 80.0, "limit": 80.0}, "another bound than its policy"),
    "a looser limit": ("repU", {"limit": 90.0}, "has a limit that is not its bound"),
    "not loosened": (
        "guessed_beyond[work]", {"loosened_from": 12.0}, "a wrong default that it is loosened from"
    ),
    "a waived guard": ("nearer", {"outcome": "waived"}, "waivers do not match"),
    "the value of a share": ("repU / UiO", {"value": 0.1}, "a value that must be withheld"),
    "the value of a control": ("copy_difference[work]", {"value": 0.0}, "a value that must be withheld"),
    "undetermined": ("repU", {"outcome": "undetermined"}, "could not be determined"),
    "only warns": ("DiSCO[work]", {"warns": True}, "no bound on attribute disclosure of work"),
}  # fmt: skip


@pytest.mark.parametrize("forgery", FORGED)
@pytest.mark.parametrize("change", [None, *CHANGES])
def test_a_forged_statement_of_an_earlier_version_is_refused_under_any_catalogue(
    signed: Path, forgery: str, change: str | None
) -> None:
    predicate = gates.stated(signed / "two-syntheses", signed / "public-key.pem")
    name, changes, problem = FORGED[forgery]
    with nullcontext() if change is None else changed_catalogue(CHANGES[change]):
        assert any(problem in found for found in find_problems(predicate, name, **changes))


def test_no_waiver_of_an_earlier_statement_lifts_a_guard(signed: Path) -> None:
    predicate = gates.stated(signed / "two-syntheses", signed / "public-key.pem")
    for name in ("nearer", "guessed_beyond[work]", "key_overlap[sex]", "equal_content", "warnings"):
        waiver = predicate.waivers[0].model_copy(update={"clause": name, "ceiling": 0.0})
        edited = predicate.model_copy(update={"waivers": (*predicate.waivers, waiver)})
        assert f"clause {name} cannot be waived" in find_problems(edited, name, outcome="waived")


def test_a_statement_says_the_rules_that_it_is_judged_by() -> None:
    predicate = releases.predicate(waived=True)
    rules = {clause.name: clause.rules for clause in (*predicate.clauses, *predicate.controls)}
    assert all(rules.values())
    missing, of_DiSCO, identity = rules["missing"], rules["DiSCO[income]"], rules["repU"]
    assert missing is not None and of_DiSCO is not None and identity is not None
    assert missing.model_dump() == {
        "default": 20.0, "is_published": False, "can_be_waived": False, "required": None,
    }  # fmt: skip
    assert (of_DiSCO.required, identity.required) == ("attribute", "identity")
    assert of_DiSCO.can_be_waived and of_DiSCO.is_published and of_DiSCO.default is None
