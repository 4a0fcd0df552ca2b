"""The statement of a release: what it says, in which form, and what is never stated or signed."""

import copy
import json
import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.signer import CryptoSigner, Signature
from support import releases
from support.paths import ROOT

from disclosure_pipeline.candidates.store import STATEMENT
from disclosure_pipeline.policy.reviewed_files import read_key_file
from disclosure_pipeline.policy.rounding import round_figure
from disclosure_pipeline.release.keys import KeysError, parse_keys_by_id, to_pem
from disclosure_pipeline.release.predicate import Predicate, StatementError, build_predicate
from disclosure_pipeline.release.statement import (
    Statement,
    build_statement,
    encode_statement,
    read_envelope,
    read_statement,
    sign,
    to_canonical_json,
)

DOCS = ROOT / "docs"
SIGNER = CryptoSigner.generate_ed25519()


def stated(content: dict[str, Any], definition: dict[str, Any] | None = None, **changes: Any) -> Predicate:
    arguments: dict[str, Any] = {
        "dossier": releases.hex_of(b"dossier"),
        "ground_truth": releases.hex_of(b"salted"),
        "tables": dict.fromkeys(releases.files(), 298),
        "run_id": "3f0c",
        "measured_at": releases.PUBLISHED,
        "published_at": releases.PUBLISHED,
    }
    return build_predicate(content, definition or releases.content()[1], **arguments | changes)


# Ten of the fewest records, in percent.
STEP = 100 * 10 / 298


@pytest.mark.parametrize("waived", [False, True])
def test_it_says_what_the_dossier_says(waived: bool) -> None:
    content, definition = releases.content(waived=waived)
    predicate = releases.predicate(waived=waived)
    assert (predicate.gate, predicate.candidate, predicate.decision) == (
        "small",
        releases.CANDIDATE,
        "approved",
    )
    assert predicate.snapshot == content["measured"]["snapshot"]
    assert predicate.policy.digest == content["policy_digest"]
    assert predicate.policy.definition == definition
    assert (predicate.policy.keys, predicate.policy.targets) == (("sex", "age"), ("work", "income"))
    releases.assert_states_clauses(predicate, content)
    # A note is on a clause that is not kept, and such a guard is not approved.
    assert not any(row["note"] for row in content["clauses"])
    assert predicate.ground_truth.records == content["figures"]["N_d"] == 300
    assert [(table.name, table.records) for table in predicate.synthetic] == [
        ("first.csv", 298),
        ("second.csv", 298),
    ]
    assert {"python", "disclosure-pipeline", "dagster"} <= predicate.versions.keys()


def test_it_tells_the_figures_in_words() -> None:
    words = {clause.name: clause.words for clause in releases.predicate(waived=True).clauses}
    rounded = r"\(rounded up to 10 records\); at most"
    people = "At most [0-9.]+ % of the people"
    assert re.fullmatch(rf"{people} are singled out .* {rounded} 8 % is allowed\.", words["repU"])
    assert words["repU share"].startswith("People singled out in both tables: no more than allowed")
    income = rf"For a{people[1:]} .* their income {rounded} 0\.01 % is allowed; waived .*\."
    assert re.fullmatch(income, words["DiSCO[income]"])


def test_it_is_an_in_toto_statement_on_the_files_without_the_hash_of_the_ground_truth() -> None:
    encoded = encode_statement(build_statement(releases.hashes(), releases.predicate()))
    assert releases.content()[0]["measured"]["ground_truth"].encode() not in encoded
    content = json.loads(encoded)
    assert content["_type"] == "https://in-toto.io/Statement/v1"
    assert content["predicateType"] == "urn:disclosure-pipeline:release:v1"
    assert content["subject"] == [
        {"name": name, "digest": {"sha256": sha256}} for name, sha256 in sorted(releases.hashes().items())
    ]
    assert content["predicate"]["published_at"] == "2026-03-01T12:00:00+00:00"
    assert datetime.fromisoformat(content["predicate"]["measured_at"]) < releases.PUBLISHED


@pytest.mark.parametrize(
    "zone", [timezone.utc, timezone(timedelta(hours=5, minutes=45)), timezone(timedelta(hours=-9))]
)
def test_times_keep_their_offset(zone: timezone) -> None:
    when = datetime(2026, 3, 1, 12, 30, 15, 250, tzinfo=zone)
    statement = build_statement(releases.hashes(), releases.predicate(published=when))
    assert json.loads(encode_statement(statement))["predicate"]["published_at"] == when.isoformat()
    assert read_statement(encode_statement(statement)) == statement


REFUSED: dict[str, Callable[[dict[str, Any]], object]] = {
    "refused": lambda content: content.update(decision="refused"),
    "undetermined": lambda content: content.update(decision="undetermined"),
    "no decision": lambda content: content.pop("decision"),
    "a value is NaN": lambda content: content["clauses"][0].update(value=math.nan),
    "a value is infinite": lambda content: content["clauses"][0].update(value=math.inf),
    "a bound is missing": lambda content: content["clauses"][0].pop("bound"),
    "an unknown outcome": lambda content: content["clauses"][0].update(outcome="fine"),
    "a clause under another name": lambda content: content["clauses"][0].update(name="iS[work]"),
    "a default that was not loosened": lambda content: content["clauses"][0].update(loosened_from=1.0),
    "no clauses": lambda content: content.update(clauses=[]),
    "no controls": lambda content: content.update(
        clauses=[row for row in content["clauses"] if row["figure"] != "controls"]
    ),
    "only controls": lambda content: content.update(
        clauses=[row for row in content["clauses"] if row["figure"] == "controls"]
    ),
    "a table is missing": lambda content: content["figures"]["N_s"].pop(),
    "a table is empty": lambda content: content["figures"].update(N_s=[298, 0]),
    "ground truth is empty": lambda content: content["figures"].update(N_d=0),
    "no figures": lambda content: content.pop("figures"),
    "no targets": lambda content: content["figures"].update(targets=[]),
    "no snapshot": lambda content: content["measured"].update(snapshot=None),
    "no digest of the policy": lambda content: content.update(policy_digest=""),
    "a waiver that is not there": lambda content: content["clauses"][0].update(waiver="none"),
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_only_an_approval_is_stated(change: Callable[[dict[str, Any]], object]) -> None:
    content = releases.content()[0]
    assert stated(content)
    change(content)
    with pytest.raises(StatementError, match="No statement can be made"):
        stated(content)


@pytest.mark.parametrize(
    "changes",
    [
        {"published_at": datetime(2026, 3, 1)},
        {"measured_at": datetime(2026, 3, 1)},
        {"ground_truth": ""},
        {"ground_truth": "not salted"},
        {"dossier": "0" * 63},
        {"run_id": ""},
        {"tables": {"first.csv": 0}},
        {"tables": {}},
    ],
)
def test_what_is_not_known_is_not_stated(changes: dict[str, Any]) -> None:
    with pytest.raises(StatementError, match="No statement can be made"):
        stated(releases.content()[0], **changes)


@pytest.mark.parametrize("bound", [math.nan, math.inf, -math.inf])
def test_there_is_no_form_for_nan(bound: float) -> None:
    with pytest.raises(StatementError, match="definition"):
        stated(releases.content()[0], {"repU": {"targets": [bound]}})
    with pytest.raises(ValueError, match="JSON"):
        to_canonical_json({"a": [bound]})


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", ".hidden", "a/b.csv", "/a.csv", "a\0.csv", "ü.csv", "a\nb.csv", STATEMENT, "x" * 101],
)
def test_only_names_of_files_in_the_folder_are_stated(name: str) -> None:
    with pytest.raises(StatementError, match="is not a valid name of a released file"):
        build_statement({**releases.hashes(), name: releases.hex_of(b"")}, releases.predicate())


@pytest.mark.parametrize("sha256", ["", "0" * 63, "0" * 65, "A" * 64, "0" * 64 + "\n", "sha256"])
def test_only_hashes_are_stated(sha256: str) -> None:
    with pytest.raises(StatementError, match="sha256"):
        build_statement({**releases.hashes(), "more.csv": sha256}, releases.predicate())


def test_the_tables_that_were_measured_are_stated() -> None:
    with pytest.raises(StatementError, match="not the released ones"):
        build_statement({"first.csv": releases.hashes()["first.csv"]}, releases.predicate())
    with pytest.raises(StatementError):
        build_statement({}, releases.predicate())
    with pytest.raises(StatementError, match="not the released ones"):
        build_statement({**releases.hashes(), "dossier.md": releases.hex_of(b"")}, releases.predicate())


def test_the_signature_is_verified_as_the_documentation_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By nothing of ours: the standard library and cryptography."""
    folder = releases.publish(tmp_path / "release", SIGNER)
    (folder / "public-key.pem").write_text(to_pem(SIGNER.public_key))
    monkeypatch.chdir(folder)
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "statement.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["statement"]["subject"] == [
        {"name": name, "digest": {"sha256": sha256}} for name, sha256 in releases.hashes().items()
    ]


def test_the_documentation_names_every_field_and_a_list_of_keys_that_can_be_read(tmp_path: Path) -> None:
    documented = (DOCS / "statement.md").read_text(encoding="utf-8")
    assert [name for name in Predicate.model_fields if f"`{name}`" not in documented] == []
    (text,) = re.findall(r"```yaml\n(.*?)```", documented, re.DOTALL)
    (tmp_path / "keys.yaml").write_text(text)
    assert len(parse_keys_by_id(read_key_file(tmp_path / "keys.yaml"))) == 2


def test_signing_the_same_gives_the_same_bytes() -> None:
    statement = build_statement(releases.hashes(), releases.predicate())
    raw = sign(statement, SIGNER)
    backwards = build_statement(dict(reversed(releases.hashes().items())), releases.predicate())
    assert raw == sign(backwards, SIGNER)
    envelope, wrong = read_envelope(raw)
    assert wrong == []
    assert read_statement(envelope.payload) == statement
    assert raw.endswith(b"}\n") and raw.count(b"\n") == 1


class Faulty(CryptoSigner):
    def __init__(self, fault: str) -> None:
        super().__init__(Ed25519PrivateKey.generate())
        self.fault = fault

    def sign(self, data: bytes) -> Signature:
        if self.fault == "none":
            raise ConnectionError("no answer")
        signature = super().sign(data + b"x" * (self.fault == "data"))
        return Signature("other" if self.fault == "keyid" else signature.keyid, signature.signature)


@pytest.mark.parametrize("fault", ["none", "data", "keyid"])
def test_a_signature_that_nobody_could_verify_is_not_written(fault: str) -> None:
    with pytest.raises(KeysError, match="failed to sign"):
        sign(build_statement(releases.hashes(), releases.predicate()), Faulty(fault))


@pytest.mark.parametrize("kind", ["generate_rsa", "generate_ecdsa"])
def test_only_ed25519_signs(kind: str) -> None:
    with pytest.raises(KeysError, match="failed to sign"):
        sign(build_statement(releases.hashes(), releases.predicate()), getattr(CryptoSigner, kind)())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def is_text(content: Any) -> bool:
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@given(JSON.filter(is_text), st.randoms())
def test_there_is_one_form(content: Any, random: Any) -> None:
    """Whatever the order, white space and escapes it was read from."""
    written = to_canonical_json(content)
    assert json.loads(written) == content
    assert to_canonical_json(json.loads(written)) == written
    indent = random.choice([None, 0, 3])
    otherwise = json.dumps(shuffled(content, random), indent=indent, ensure_ascii=random.random() < 0.5)
    assert to_canonical_json(json.loads(otherwise)) == written


def shuffled(content: Any, random: Any) -> Any:
    if isinstance(content, dict):
        names = random.sample(list(content), len(content))
        return {name: shuffled(content[name], random) for name in names}
    return [shuffled(part, random) for part in content] if isinstance(content, list) else content


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=0, max_value=8))
def test_every_figure_comes_back_rounded(value: float) -> None:
    content = releases.content()[0]
    next(row for row in content["clauses"] if row["name"] == "repU")["value"] = value
    statement = build_statement(releases.hashes(), stated(content))
    (clause,) = [
        clause
        for clause in read_statement(encode_statement(statement)).predicate.clauses
        if clause.name == "repU"
    ]
    assert clause.value == round_figure(value, STEP, [8.0], highest=100.0)


def test_ground_truths_that_differ_in_few_records_are_told_alike() -> None:
    """And a relative bound tells nothing of them: neither its limit nor its value."""
    content = releases.content()[0]
    other = copy.deepcopy(content)
    other["figures"]["N_d"] += 9
    for row in other["clauses"]:
        if row["statistic"] == "at_most_share":
            row["limit"] *= 1.03
    first, second = (stated(stated_content) for stated_content in (content, other))
    assert first == second and first.ground_truth.records == 300


def test_the_schema_in_the_documentation_describes_a_statement() -> None:
    """Written anew: `json.dumps(schema, indent=2, ensure_ascii=False)`."""
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    schema = dialect | Statement.model_json_schema()
    documented = json.loads((DOCS / "statement.schema.json").read_text(encoding="utf-8"))
    assert documented == schema
    jsonschema.Draft202012Validator.check_schema(documented)
    validator = jsonschema.Draft202012Validator(documented)
    for waived in (False, True):
        statement = build_statement(releases.hashes(), releases.predicate(waived=waived))
        content = json.loads(encode_statement(statement))
        validator.validate(content)
    changes: list[dict[str, Any]] = [
        {"predicateType": "urn:disclosure-pipeline:release:v2"},
        {"predicate": {**content["predicate"], "decision": "refused"}},
        {"predicate": {**content["predicate"], "more": 1}},
        {"subject": []},
    ]
    for change in changes:
        assert not validator.is_valid({**content, **change})
