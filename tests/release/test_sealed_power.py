"""The power of a policy: measured once with the ground truth, kept under a seal, stated by a release."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from support import gates, releases
from support.gates import HONEST, Home

from disclosure_pipeline.candidates.store import STATEMENT
from disclosure_pipeline.evaluation.power import COPIES, DILUTED, KINDS, NEAR_COPIES, GatePower
from disclosure_pipeline.release import keys, readiness
from disclosure_pipeline.release.keys import SALT
from disclosure_pipeline.release.predicate import StatedPower, StatedRefusals, StatementError
from disclosure_pipeline.release.statement import build_statement, encode_statement, read_statement

pytestmark = pytest.mark.usefixtures("remembered_results")

MEASURED = GatePower(147, {COPIES: (3.0,) * 19 + (30.0,), NEAR_COPIES: (50.0,) * 20, DILUTED: (5.0,)})
ANEW = GatePower(147, {COPIES: (7.0, 7.0), NEAR_COPIES: (50.0, 0.0), DILUTED: (5.0,)})


@pytest.fixture(scope="module")
def measuring() -> dg.Definitions:
    """The small gate, which measures its power; how, is replaced."""
    return gates.load(gates.definition(power_seconds=1.0))


@pytest.fixture
def home(tmp_path: Path, measuring: dg.Definitions, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with gates.home_in_memory(tmp_path, measuring, monkeypatch) as home:
        yield home


@pytest.fixture
def approved(finished_home: Home, measuring: dg.Definitions) -> Home:
    """A home where an honest candidate was approved, of which nothing is published."""
    shutil.rmtree(finished_home.path / "releases")
    return replace(finished_home, defs=measuring)


def release(home: Home) -> StatedPower | None:
    assert home.materialize("release", HONEST).success
    return gates.stated(home.published(HONEST)).power


@pytest.fixture
def measurements(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of each measurement of a policy's power: the first finds one thing, the next another."""
    asked: list[float] = []

    def measure(folders: Any, seconds: float) -> tuple[GatePower, str]:
        asked.append(seconds)
        return (MEASURED if len(asked) == 1 else ANEW), str(folders.ground_truth.sha256())

    monkeypatch.setattr(readiness, "measure_power", measure)
    return asked


def power_in_metadata(home: Home) -> str:
    ran = home.run_ground_truth()
    assert ran.success
    [event] = ran.get_asset_materialization_events()
    return str(event.materialization.metadata["power"].value)


def test_it_is_measured_once_for_each_ground_truth(home: Home, measurements: list[float]) -> None:
    home.write_ground_truth(gates.ground_truth())
    assert power_in_metadata(home) == MEASURED.summarize()
    assert power_in_metadata(home) == MEASURED.summarize()
    assert measurements == [1]
    home.write_ground_truth(gates.ground_truth(310))
    assert power_in_metadata(home) == ANEW.summarize()
    assert measurements == [1, 1]


def test_page_statement_and_verify_say_it(approved: Home, measurements: list[float]) -> None:
    assert approved.run_ground_truth().success
    assert approved.materialize("dossier", HONEST).success
    power = release(approved)
    assert measurements == [1]
    page = approved.record(HONEST, "dossier.html").read_text()
    public = (approved.published(HONEST) / "dossier.html").read_text()
    for text in (page, public):
        assert MEASURED.summarize() in text
        assert "% of the people who are copied" in text
    assert "random halves of 147 records" in page
    assert "random halves of 140 records" in public and "147 records" not in public
    assert str(power) == MEASURED.summarize()
    assert power == state(3, (19, 20), (0, 40))


@pytest.mark.parametrize(
    "seal", [{}, {"seal": "0" * 64}, {"seal": None}], ids=["its own", "by another salt", "none"]
)
def test_a_release_measures_again_what_is_not_sealed(
    approved: Home, measurements: list[float], seal: dict[str, Any]
) -> None:
    """Forged figures, under whatever seal."""

    def forge(content: dict[str, Any]) -> None:
        content["content"]["noticed"] = {kind: [1] * 200 for kind in KINDS}
        content.update(seal)

    assert approved.run_ground_truth().success
    gates.edit_json(approved.store / "power.json", forge)
    power, published = release(approved), approved.published(HONEST)
    assert measurements == [1, 1]
    assert str(power) == ANEW.summarize()
    assert power == StatedPower(records=140, share=None, noticed=None, honest=None)
    told = gates.run_command("verify", published, "--key", approved.path / "keys" / "public-key.pem")
    assert "not measured well enough to say" in told.output and "of 2 times" not in told.output
    assert "% of the people who are copied" not in (published / "dossier.html").read_text()


def test_without_a_salt_it_is_kept_unsealed_and_measured_again(
    approved: Home, measurements: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.delenv(SALT)
        assert approved.run_ground_truth().success
    assert gates.read_json(approved.store / "power.json")["seal"] == ""
    assert str(release(approved)) == ANEW.summarize()
    assert len(measurements) == 2


def test_a_seal_is_no_salted_hash(home: Home) -> None:
    """Whoever lets the gate hash a table of theirs has no seal of its bytes."""
    sha256 = "0" * 64
    assert keys.make_seal(sha256.encode()) != keys.hash_with_salt(sha256)
    assert keys.make_seal(b"a") != keys.make_seal(b"b")


@pytest.mark.parametrize("error", [ValueError(gates.CANARIES[0]), keys.KeysError("no key")])
def test_what_goes_wrong_stands_in_nobodys_way(
    approved: Home, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release for which there is no key to seal it says that nothing was measured."""

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(readiness, "measure_power", fail)
    told = power_in_metadata(approved)
    assert told.startswith("not measured: ")
    assert gates.CANARIES[0] not in told
    if isinstance(error, ValueError):
        return
    assert release(approved) is None
    assert "The gate would have noticed if" in (approved.published(HONEST) / "dossier.html").read_text()


def test_zero_seconds_switch_it_off(
    approved: Home, small_gate: dg.Definitions, measurements: list[float]
) -> None:
    home = replace(approved, defs=small_gate)
    assert home.run_ground_truth().success
    assert release(home) is None
    assert not measurements
    assert not (home.store / "power.json").exists()
    assert b'"power"' not in (home.published(HONEST) / STATEMENT).read_bytes()


def test_a_statement_without_it_is_as_it_was_before() -> None:
    """And null has no form of its own."""
    statement = build_statement(releases.hashes(), releases.predicate())
    content = encode_statement(statement)
    assert b'"power"' not in content
    assert read_statement(content) == statement
    spelled_out = content.replace(b'"predicate":{', b'"predicate":{"power":null,', 1)
    with pytest.raises(StatementError, match="canonical form"):
        read_statement(spelled_out)


def state(share: float | None, *found: tuple[int, int]) -> StatedPower:
    """A power by the refusals and tries of copies, and of honest tables."""
    noticed, honest = (StatedRefusals(refused=refused, tries=tries) for refused, tries in found)
    return StatedPower(records=140, share=share, noticed=noticed, honest=honest)


def test_a_statement_says_both_figures() -> None:
    told = state(None, (1, 20), (1, 100))
    stated = releases.predicate().model_copy(update={"power": told})
    content = encode_statement(build_statement(releases.hashes(), stated))
    assert read_statement(content).predicate.power == told
    assert str(told).endswith("repeats everybody only 1 of 20 times; it refuses 1 of 100 honest tables.")


@pytest.mark.parametrize(
    "told", [state(3, (1, 1), (0, 2)), state(None, (0, 1), (0, 2)), state(5, (19, 19), (0, 19))]
)
def test_few_tries_of_an_earlier_statement_are_shown_as_unknown(told: StatedPower) -> None:
    stated = releases.predicate().model_copy(update={"power": told})
    assert build_statement(releases.hashes(), stated)
    assert "not measured well enough to say" in str(told) and " of " not in str(told)


@pytest.mark.parametrize(
    ("power", "problem"),
    [
        (state(3, (21, 20), (0, 1)), "more refusals than tries"),
        (state(3, (20, 20), (2, 1)), "more refusals than tries"),
        (state(3, (18, 20), (0, 1)), "was not refused 19 of 20 times, or omits it"),
        (state(None, (19, 20), (0, 1)), "was not refused 19 of 20 times, or omits it"),
        (StatedPower(records=140, share=3.0, noticed=None, honest=None), "was not refused 19 of 20 times"),
    ],
)
def test_a_statement_that_contradicts_itself_is_not_made(power: StatedPower, problem: str) -> None:
    with pytest.raises(StatementError, match=problem):
        build_statement(releases.hashes(), releases.predicate().model_copy(update={"power": power}))
