"""Verifying a published folder: whatever was done to it is found, offline, by the public key alone."""

import base64
import json
import os
import random
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner
from support import releases
from support.gates import HONEST, Home, run_command
from support.processes import Finished, run_program
from support.sampling import CI, examples, on_some_days

from disclosure_pipeline.candidates.store import STATEMENT
from disclosure_pipeline.policy.reviewed_files import TrustedKey, read_key_file
from disclosure_pipeline.release.keys import to_pem
from disclosure_pipeline.release.predicate import Predicate
from disclosure_pipeline.release.statement import (
    PAYLOAD_TYPE,
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    Statement,
    encode_statement,
    to_canonical_json,
)
from disclosure_pipeline.release.verifying import VerificationError, verify

PUBLISHED = releases.PUBLISHED
SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Release:
    folder: Path
    signer: CryptoSigner

    @property
    def keys(self) -> list[TrustedKey]:
        return [releases.trust(self.signer)]

    @property
    def statement(self) -> Path:
        return self.folder / STATEMENT

    def problems(self, keys: Sequence[TrustedKey] | None = None) -> tuple[str, ...]:
        with pytest.raises(VerificationError) as actual:
            verify(self.folder, self.keys if keys is None else keys)
        assert actual.value.problems
        assert all(problem in str(actual.value) for problem in actual.value.problems)
        return actual.value.problems

    def problem(self) -> str:
        (actual,) = self.problems()
        return actual

    def sign(self, content: bytes) -> None:
        envelope = Envelope(content, PAYLOAD_TYPE, {})
        envelope.sign(self.signer)
        self.statement.write_bytes(to_canonical_json(envelope.to_dict()) + b"\n")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release with a waiver. To be copied."""
    signer = CryptoSigner.generate_ed25519()
    folder = tmp_path_factory.mktemp("releases") / "honest"
    return Release(releases.publish(folder, signer, releases.predicate(waived=True)), signer)


@pytest.fixture
def release(published: Release, tmp_path: Path) -> Release:
    return Release(Path(shutil.copytree(published.folder, tmp_path / "honest")), published.signer)


def test_what_was_published_is_verified(published: Release) -> None:
    approval = verify(published.folder, published.keys)
    assert approval.predicate == releases.predicate(waived=True)
    assert approval.files == releases.hashes()
    assert approval.keyid == published.signer.public_key.keyid


def test_any_changed_byte_is_found(finished_home: Home) -> None:
    """Single bytes of the published files are changed, one at a time."""
    keys = read_key_file(finished_home.path / "keys" / "public-key.pem")
    folder, draw = finished_home.published(HONEST), random.Random(5)
    verify(folder, keys)
    contents = {path: path.read_bytes() for path in sorted(folder.iterdir())}
    for number in range(1000 if CI else 100):
        path = list(contents)[number % len(contents)]
        before = contents[path]
        place = draw.randrange(len(before))
        after = bytes([draw.choice([byte for byte in range(256) if byte != before[place]])])
        path.write_bytes(before[:place] + after + before[place + 1 :])
        with pytest.raises(VerificationError):
            verify(folder, keys)
        path.write_bytes(before)
    verify(folder, keys)


@examples(20)
@given(st.data())
def test_inserted_and_deleted_bytes_are_found(published: Release, data: st.DataObject) -> None:
    content = published.statement.read_bytes()
    place = data.draw(st.integers(0, len(content)))
    more = data.draw(st.binary(max_size=3) | st.sampled_from([b" ", b"\n", b"\r\n", b"\t", b"=", b"\\u0022"]))
    less = data.draw(st.integers(0 if more else 1, 3))
    changed = content[:place] + more + content[place + less :]
    if changed == content:
        return
    try:
        published.statement.write_bytes(changed)
        published.problems()
    finally:
        published.statement.write_bytes(content)


def _add(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(b"")


def _replace_by_link(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).symlink_to((folder / name).rename(folder.parent / name))


def _replace_by_pipe(folder: Path) -> None:
    (folder / "first.csv").unlink()
    os.mkfifo(folder / "first.csv")


def _move_first(to: str) -> Callable[[Path], object]:
    def moved(folder: Path) -> None:
        (folder / to).parent.mkdir(exist_ok=True)
        (folder / "first.csv").rename(folder / to)

    return moved


def _swap(folder: Path) -> None:
    for name, to in (("first.csv", "x"), ("second.csv", "first.csv"), ("x", "second.csv")):
        (folder / name).rename(folder / to)


def _empty(folder: Path, but: str = "") -> None:
    for path in folder.iterdir():
        if path.name != but:
            path.unlink()


MISSING, CHANGED, MORE = (
    "'first.csv' is missing",
    "'first.csv' was changed",
    "'more' cannot be read: it is a ",
)
FOLDERS: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "left out": (lambda at: (at / "first.csv").unlink(), [MISSING]),
    "added": (_add("third.csv"), ["'third.csv' was added"]),
    "added and hidden": (_add(".third.csv"), ["'.third.csv' was added"]),
    "added with a new line in its name": (_add("a\nb"), [r"'a\nb' was added"]),
    "added with a name that is no text": (
        lambda at: os.close(os.open(os.fsencode(at) + b"/\xff", os.O_CREAT)),
        [r"'\udcff' was added"],
    ),
    "added another statement": (_add("statement.json"), ["'statement.json' was added"]),
    "renamed": (_move_first("First.csv"), ["'First.csv' was added", MISSING]),
    "swapped": (_swap, [CHANGED, "'second.csv' was changed"]),
    "emptied": (_add("first.csv"), [CHANGED]),
    "longer": (lambda at: (at / "first.csv").open("ab").write(b"\n"), [CHANGED]),
    "an empty folder": (lambda at: (at / "more").mkdir(), [f"{MORE}folder"]),
    "in a folder": (_move_first("tables/first.csv"), ["'tables' cannot be read: it is a folder", MISSING]),
    "a link to the same": (
        _replace_by_link("first.csv"),
        ["'first.csv' cannot be read: it is a link", MISSING],
    ),
    "a link that leads nowhere": (lambda at: (at / "more").symlink_to("nowhere"), [f"{MORE}link"]),
    "a link to a folder": (lambda at: (at / "more").symlink_to(at.parent), [f"{MORE}link"]),
    "a pipe": (_replace_by_pipe, ["'first.csv' cannot be read: it is a special file", MISSING]),
    "everything": (lambda at: _empty(at, STATEMENT), [MISSING, "'second.csv' is missing"]),
    "no statement": (lambda at: (at / STATEMENT).unlink(), ["it holds no statement"]),
    "nothing at all": (_empty, ["it holds no statement"]),
    "a link to the statement": (
        _replace_by_link(STATEMENT),
        ["it holds no statement, statement.dsse.json", "'statement.dsse.json' cannot be read: it is a link"],
    ),
    "a huge statement": (
        lambda at: os.truncate(at / STATEMENT, 1 << 28),
        ["its statement has more than 16777216 bytes"],
    ),
}


@pytest.mark.parametrize("change", FOLDERS)
def test_other_files_than_those_approved_are_found(release: Release, change: str) -> None:
    """All of them, and nothing else is said."""
    tamper, message = FOLDERS[change]
    tamper(release.folder)
    actual = release.problems()
    assert len(actual) == len(message), actual
    for expected in message:
        assert any(problem.startswith(expected) for problem in actual), (expected, actual)


def test_only_a_folder_is_verified(release: Release, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(release.folder)
    for path, message in (
        (tmp_path / "none", "No such file"),
        (release.statement, "Not a directory"),
        (link, "it is a link"),
    ):
        with pytest.raises(VerificationError, match=f"cannot be opened as a folder: {message}"):
            verify(path, release.keys)


def _edit(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    def edited(raw: bytes) -> bytes:
        content = json.loads(raw)
        change(content)
        return to_canonical_json(content) + raw[len(raw.rstrip(b"\n")) :]

    return edited


def _signature(content: dict[str, Any]) -> dict[str, Any]:
    actual: dict[str, Any] = content["signatures"][0]
    return actual


def _in_another_order(raw: bytes) -> bytes:
    backwards = dict(reversed(json.loads(raw).items()))
    return json.dumps(backwards, separators=(",", ":")).encode() + b"\n"


def _replace(before: bytes, after: bytes) -> Callable[[bytes], bytes]:
    return lambda raw: raw.replace(before, after, 1)


def _with(**changes: Any) -> Callable[[bytes], bytes]:
    return _edit(lambda content: content.update(changes))


def _with_signature(**changes: Any) -> Callable[[bytes], bytes]:
    return _edit(lambda content: _signature(content).update(changes))


def _with_predicate(**changes: Any) -> Callable[[bytes], bytes]:
    return _edit(lambda content: content["predicate"].update(changes))


def _with_clause(**changes: Any) -> Callable[[bytes], bytes]:
    return _edit(lambda content: content["predicate"]["clauses"][0].update(changes))


def _with_file(name: str) -> Callable[[bytes], bytes]:
    file = {"name": name, "digest": {"sha256": releases.hex_of(b"")}}
    return _edit(lambda content: content["subject"].insert(0, file))


def _unpadded(content: dict[str, Any]) -> None:
    """Remove the padding of the payload, and of the signature, whose 64 bytes always need it."""
    content["payload"] = content["payload"].rstrip("=")
    _signature(content)["sig"] = _signature(content)["sig"].rstrip("=")


def _add_order(content: dict[str, Any]) -> None:
    """The other number that fits the equation of the signature: it must not be taken for the same."""
    order = 2**252 + 27742317777372353535851937790883648493
    raw = base64.b64decode(_signature(content)["sig"])
    more = int.from_bytes(raw[32:], "little") + order
    _signature(content)["sig"] = base64.b64encode(raw[:32] + more.to_bytes(32, "little")).decode()


def _trailing_bits(content: dict[str, Any]) -> None:
    """Base64 of the same bytes, with other bits where they do not count."""
    actual = _signature(content)
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    last = actual["sig"][-3]
    actual["sig"] = f"{actual['sig'][:-3]}{digits[digits.index(last) ^ 1]}=="


NO_ENVELOPE, OTHERWISE, WRONG = "not a signed envelope", "not encoded as", "signature is wrong"
ENVELOPES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda raw: b"", NO_ENVELOPE),
    "no JSON": (lambda raw: raw[:-2], NO_ENVELOPE),
    "no text": (lambda raw: b"\xff" + raw, NO_ENVELOPE),
    "UTF-16": (lambda raw: raw.decode().encode("utf-16"), OTHERWISE),
    "a byte order mark": (lambda raw: b"\xef\xbb\xbf" + raw, OTHERWISE),
    "nested": (lambda raw: b"[" * 100_000, NO_ENVELOPE),
    "a huge number": (lambda raw: b"9" * 10_000, NO_ENVELOPE),
    "a list": (lambda raw: b"[" + raw + b"]", NO_ENVELOPE),
    "null": (lambda raw: b"null", NO_ENVELOPE),
    "twice": (lambda raw: raw + raw, NO_ENVELOPE),
    "indented": (lambda raw: json.dumps(json.loads(raw), indent=1).encode(), OTHERWISE),
    "without the last line feed": (lambda raw: raw[:-1], OTHERWISE),
    "another line feed": (lambda raw: raw + b"\n", OTHERWISE),
    "carriage return": (lambda raw: raw[:-1] + b"\r\n", OTHERWISE),
    "in another order": (_in_another_order, OTHERWISE),
    "an entry twice": (_replace(b'{"payload":', b'{"payloadType":"x","payload":'), OTHERWISE),
    "an escape": (_replace(b"payloadType", b"payload\\u0054ype"), OTHERWISE),
    "an escape in the payload": (_replace(b'"payload":"e', b'"payload":"\\u0065'), OTHERWISE),
    "base64 without padding": (_edit(_unpadded), NO_ENVELOPE),
    "base64 with white space": (_edit(lambda of: of.update(payload=f"{of['payload']}\n")), NO_ENVELOPE),
    "base64 with other trailing bits": (_edit(_trailing_bits), OTHERWISE),
    "no payload": (_edit(lambda of: of.pop("payload")), "payload: Field required"),
    "an empty payload": (_with(payload=""), "signature is wrong|not JSON"),
    "a number for payload": (_with(payload=1), "payload: Input should be"),
    "no type": (_edit(lambda of: of.pop("payloadType")), "payloadType: Field required"),
    "another type": (_with(payloadType="text/plain"), "'text/plain', not application/vnd.in-toto+json"),
    "no signatures": (_edit(lambda of: of.pop("signatures")), "signatures: Field required"),
    "an empty list of signatures": (_with(signatures=[]), "signatures: List"),
    "two signatures": (_edit(lambda of: of.update(signatures=of["signatures"] * 2)), "signatures: List"),
    "a signature more": (
        _edit(lambda of: of["signatures"].append({"keyid": "", "sig": ""})), "signatures: List"
    ),
    "a signature by id": (
        _edit(lambda of: of.update(signatures={"0": _signature(of)})), "signatures: Input should be"
    ),
    "an empty signature": (_with_signature(sig=""), WRONG),
    "a signature of zeros": (_with_signature(sig=base64.b64encode(bytes(64)).decode()), WRONG),
    "a signature that is too long": (_with_signature(sig=base64.b64encode(bytes(65)).decode()), WRONG),
    "the signature in another number": (_edit(_add_order), WRONG),
    "no id of the key": (_edit(lambda of: _signature(of).pop("keyid")), "keyid: Field required"),
    "an empty id of the key": (_with_signature(keyid=""), "not with a given one"),
    "the id of the key in capitals": (
        _edit(lambda of: _signature(of).update(keyid=_signature(of)["keyid"].upper())), "not with a given one"
    ),
    "a long id of the key": (_with_signature(keyid="\x1b[2J" * 999), "not with a given one"),
    "half a character": (_with(payload="x"), NO_ENVELOPE),
    "a field more": (_with(more=1), "more: there is no such entry"),
    "a field more in the signature": (_with_signature(more=1), "more: there is no such entry"),
}  # fmt: skip


@pytest.mark.parametrize("change", ENVELOPES)
def test_there_is_one_envelope_for_a_statement(release: Release, change: str) -> None:
    """Also where another one would mean the same."""
    tamper, message = ENVELOPES[change]
    before = release.statement.read_bytes()
    after = tamper(before)
    assert after != before
    release.statement.write_bytes(after)
    actual = "\n".join(release.problems())
    assert any(expected in actual for expected in message.split("|")), actual
    assert "\x1b" not in actual


def test_base64_of_the_other_alphabet_is_not_taken_for_the_same(release: Release) -> None:
    """Securesystemslib reads it."""
    for number in range(100):
        release.sign(changed(releases.predicate(waived=True), run_id=str(number)))
        content = json.loads(release.statement.read_bytes())
        before = content["signatures"][0]["sig"]
        if {"+", "/"} & set(before):
            break
    verify(release.folder, release.keys)
    content["signatures"][0]["sig"] = before.replace("+", "-").replace("/", "_")
    release.statement.write_bytes(to_canonical_json(content) + b"\n")
    assert "not encoded as it was" in release.problem()


@examples(20)
@given(
    content=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))
)
def test_nonsense_is_told_to_be_so(
    published: Release, tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp() / "nonsense"
    folder.mkdir(exist_ok=True)
    (folder / STATEMENT).write_bytes(content)
    Release(folder, published.signer).problems()


def changed(message: Predicate, **changes: Any) -> bytes:
    """The payload of a statement with another predicate, contradictions and all."""
    made = Statement.model_validate(
        {
            "_type": STATEMENT_TYPE,
            "subject": [
                {"name": name, "digest": {"sha256": sha256}} for name, sha256 in releases.hashes().items()
            ],
            "predicateType": PREDICATE_TYPE,
            "predicate": message.model_copy(update=changes),
        }
    )
    return encode_statement(made)


# What a predicate, with its waiver, says otherwise.
Change = Callable[[Predicate], dict[str, Any]]


def with_clause(name: str, kind: str = "clauses", **changes: Any) -> Change:
    def change(predicate: Predicate) -> dict[str, Any]:
        clauses = getattr(predicate, kind)
        assert name in [clause.name for clause in clauses]
        return {
            kind: tuple(
                clause.model_copy(update=changes) if clause.name == name else clause for clause in clauses
            )
        }

    return change


def without_clause(*names: str) -> Change:
    return lambda predicate: {
        "clauses": tuple(clause for clause in predicate.clauses if clause.name not in names)
    }


def with_waiver(**changes: Any) -> Change:
    return lambda predicate: {"waivers": (predicate.waivers[0].model_copy(update=changes),)}


DISCO = "DiSCO[work]"
CONTROL = "controls"
AGAINST, UNKNOWN = "forbids an approval", "could not be determined"
NO_SHARE, OTHER_LIMIT = "has a value that must be withheld", "has a limit that is not its bound"
LOOSENED = "clause missing names a wrong default that it is loosened from"
CONTRADICTIONS: dict[str, tuple[Change, str]] = {
    "a value beyond its limit": (
        with_clause("repU", value=8.0000001), "but its value and limit say exceeded"
    ),
    "an exceeded clause": (with_clause("repU", value=9.0, outcome="exceeded"), AGAINST),
    "a kept clause said to be exceeded": (
        with_clause("repU", outcome="exceeded"), "value and limit say kept"
    ),
    "an undetermined clause": (with_clause("repU", outcome="undetermined"), UNKNOWN),
    "no value": (with_clause("repU", value=None), "clause repU lacks its value"),
    "no value, exceeded": (with_clause("repU", value=None, outcome="exceeded"), AGAINST),
    "a value of a relative bound": (with_clause("repU share", value=0.5), f"clause repU share {NO_SHARE}"),
    "the limit of a relative bound": (
        with_clause("repU share", limit=20.5),
        "reveals the limit of a share, which is a figure of the ground truth",
    ),
    "a relative bound that is broken": (
        with_clause("repU share", outcome="exceeded"), f"clause repU share {AGAINST}"
    ),
    "no value, undetermined": (with_clause("repU", value=None, limit=None, outcome="undetermined"), UNKNOWN),
    "no limit": (with_clause(DISCO, limit=None), OTHER_LIMIT),
    "a guard that is loosened in silence": (with_clause("missing", bound=80.0, limit=80.0), LOOSENED),
    "a guard that is said to be loosened and is not": (with_clause("missing", loosened_from=20.0), LOOSENED),
    "a guard with another bound than in the policy": (
        with_clause("missing", bound=80.0, limit=80.0, loosened_from=20.0), "another bound than its policy"
    ),
    "a limit that is not the bound": (with_clause(DISCO, limit=99.0), OTHER_LIMIT),
    "an overlap that is waived": (
        lambda of: with_clause("key_overlap", outcome="waived")(of)
        | {"waivers": (*of.waivers, of.waivers[0].model_copy(update={"clause": "key_overlap"}))},
        "the statement contradicts itself: clause key_overlap cannot be waived",
    ),
    "an overlap that is too low": (with_clause("key_overlap", outcome="exceeded"), AGAINST),
    "the value of an overlap": (with_clause("key_overlap", value=79.9), NO_SHARE),
    "a maximum said to be a minimum": (
        with_clause("repU", statistic="at_least", value=7.0), "value and limit say exceeded"
    ),
    "a binding clause that warns": (
        with_clause(DISCO, warns=True), "no bound on attribute disclosure of work"
    ),
    "no repU": (without_clause("repU", "repU share"), "no bound on identity disclosure"),
    "no DiSCO of a target": (without_clause(DISCO), "no bound on attribute disclosure of work"),
    "a clause twice": (lambda of: {"clauses": (*of.clauses, of.clauses[0])}, "it repeats clause repU"),
    "a clause with the name of another": (
        with_clause(DISCO, figure="repU"), f"clause {DISCO} must be named repU[work]"
    ),
    "a control that failed": (with_clause(CONTROL, "controls", outcome="exceeded"), AGAINST),
    "the value of a control": (with_clause(CONTROL, "controls", value=0.0), NO_SHARE),
    "a control that failed and says so": (with_clause(CONTROL, "controls", outcome="undetermined"), UNKNOWN),
    "a control that is waived": (with_clause(CONTROL, "controls", outcome="waived"), AGAINST),
    "a control that only warns": (with_clause(CONTROL, "controls", outcome="exceeded", warns=True), AGAINST),
    "waived without a waiver": (lambda _: {"waivers": ()}, "its waivers do not match"),
    "a waiver for nothing": (
        with_clause("DiSCO[income]", value=0.0, outcome="kept"), "its waivers do not match"
    ),
    "waived though it is kept": (
        with_clause("DiSCO[income]", value=0.0), "as waived, but its value and limit say kept"
    ),
    "a waiver for another clause": (with_waiver(clause="repU"), "its waivers do not match"),
    "beyond the ceiling": (with_waiver(ceiling=0.02), "beyond the ceiling"),
    "an expired waiver": (with_waiver(expires=PUBLISHED), "had expired"),
    "a table that is not counted": (lambda of: {"synthetic": of.synthetic[:1]}, "not the released ones"),
    "a table twice": (lambda of: {"synthetic": of.synthetic[:1] * 2}, "not the released ones"),
    "published before it was measured": (
        lambda _: {"measured_at": PUBLISHED + SECOND}, "before it was measured"
    ),
}  # fmt: skip


@pytest.mark.parametrize("contradiction", CONTRADICTIONS)
def test_a_contradiction_is_found_although_it_is_signed(release: Release, contradiction: str) -> None:
    change, message = CONTRADICTIONS[contradiction]
    predicate = releases.predicate(waived=True)
    release.sign(changed(predicate, **change(predicate)))
    problems = release.problems()
    assert any(message in problem for problem in problems), problems


def test_a_clause_that_warns_may_be_exceeded(release: Release) -> None:
    predicate = releases.predicate(waived=True)
    change = with_clause("repU share", outcome="exceeded", warns=True)
    release.sign(changed(predicate, **change(predicate)))
    approval = verify(release.folder, release.keys)
    [warning] = [clause for clause in approval.predicate.clauses if clause.name == "repU share"]
    assert f"  warns   {warning.words}" in str(approval)


OTHER_FORM = "not encoded in canonical form"
PAYLOADS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "not JSON"),
    "no JSON": (lambda _: b"{", "not JSON"),
    "no text": (lambda _: b"\xff", "not JSON"),
    "nested": (lambda _: b"[" * 100_000, "not JSON"),
    "a list": (lambda _: b"[]", "its _type is 'None'"),
    "an older statement": (
        _with(_type="https://in-toto.io/Statement/v0.1"), "its _type is 'https://in-toto.io/Statement/v0.1'"
    ),
    "a newer predicate": (
        _with(predicateType="urn:disclosure-pipeline:release:v2"),
        "its predicateType is 'urn:disclosure-pipeline:release:v2'.*newer version of this package",
    ),
    "a list for its type": (_with(predicateType=[]), "predicateType is"),
    "not approved": (_with_predicate(decision="refused"), "predicate.decision: Input should be 'approved'"),
    "a field more": (_with_predicate(more=1), "predicate.more: Extra"),
    "a field less": (_edit(lambda of: of["predicate"].pop("policy")), "policy: Field required"),
    "no files": (_with(subject=[]), "subject: Tuple should have"),
    "no clauses": (_with_predicate(clauses=[]), "clauses: Tuple should"),
    "a figure as text": (_with_clause(value="3.0"), OTHER_FORM),
    "a figure that is true": (_with_clause(value=True), OTHER_FORM),
    "a whole number for a figure": (_with_clause(value=3), OTHER_FORM),
    "NaN": (_replace(b'"limit":8.0', b'"limit":NaN'), "finite number"),
    "infinity": (_replace(b'"limit":8.0', b'"limit":1e999'), "finite number"),
    "NaN in the policy": (_replace(b'"smallest_count":10', b'"smallest_count":NaN'), "definition"),
    "a policy with very many levels": (
        _replace(b'"smallest_count":10', b'"smallest_count":' + b"[" * 700 + b"]" * 700),
        "its statement cannot be read",
    ),
    "a time without an offset": (
        _with_predicate(published_at="2026-03-01T12:00:00"),
        "published_at: Input should have timezone info",
    ),
    "a time as a number": (
        _with_predicate(published_at=1772366400),
        "published_at: expected a date and time with an offset",
    ),
    "a time written otherwise": (_with_predicate(published_at="2026-03-01T12:00:00Z"), OTHER_FORM),
    "white space": (lambda raw: json.dumps(json.loads(raw)).encode(), "not encoded in canonical form"),
    "a line feed": (lambda raw: raw + b"\n", OTHER_FORM),
    "an entry twice": (_replace(b'{"_type":', b'{"_type":"x","_type":'), OTHER_FORM),
    "files in another order": (_edit(lambda of: of["subject"].reverse()), "not listed once each"),
    "a file twice": (_edit(lambda of: of["subject"].append(of["subject"][-1])), "not listed once each"),
    **{
        f"a file called {name!r}": (_with_file(name), "is not a valid name of a released file")
        for name in ("../outside.csv", "/etc/passwd", STATEMENT, ".", "")
    },
}  # fmt: skip


@pytest.mark.parametrize("given_payload", PAYLOADS)
def test_what_cannot_be_understood_is_refused_although_it_is_signed(
    release: Release, given_payload: str
) -> None:
    change, message = PAYLOADS[given_payload]
    (release.folder.parent / "outside.csv").write_bytes(b"")
    release.sign(change(changed(releases.predicate(waived=True))))
    with pytest.raises(VerificationError, match=f"its statement cannot be read: .*{message}|{message}"):
        verify(release.folder, release.keys)


@examples(20)
@given(
    content=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=5,
    ),
    data=st.data(),
)
def test_whatever_is_put_into_a_statement_is_refused_in_words(
    published: Release, tmp_path_factory: pytest.TempPathFactory, content: Any, data: st.DataObject
) -> None:
    """Signed, at any place: never an exception of another kind."""
    folder = tmp_path_factory.getbasetemp() / "any"
    folder.mkdir(exist_ok=True)
    statement = json.loads(changed(releases.predicate(waived=True)))
    at = statement
    while True:
        names = list(at) if isinstance(at, dict) else list(range(len(at)))
        name = data.draw(st.sampled_from(names))
        if isinstance(at[name], dict | list) and at[name] and data.draw(st.booleans()):
            at = at[name]
            continue
        at[name] = content
        break
    signed = Release(folder, published.signer)
    signed.sign(json.dumps(statement, sort_keys=True, separators=(",", ":")).encode())
    signed.problems()  # at the least, the tables are missing


def test_another_key_does_not_verify(release: Release) -> None:
    other = CryptoSigner.generate_ed25519()
    (message,) = release.problems([releases.trust(other)])
    assert "not with a given one" in message
    assert release.signer.public_key.keyid in message and other.public_key.keyid in message
    assert verify(release.folder, [releases.trust(other), *release.keys]).keyid != other.public_key.keyid


def test_a_signature_of_another_key_under_the_id_of_a_trusted_one_is_found(release: Release) -> None:
    envelope = json.loads(release.statement.read_bytes())
    forged = Release(release.folder, CryptoSigner.generate_ed25519())
    forged.sign(changed(releases.predicate(waived=True)))
    content = json.loads(release.statement.read_bytes())
    content["signatures"][0]["keyid"] = envelope["signatures"][0]["keyid"]
    release.statement.write_bytes(to_canonical_json(content) + b"\n")
    assert "its signature is wrong" in release.problem()


def test_old_releases_are_valid_under_the_old_key_and_new_ones_are_not(tmp_path: Path) -> None:
    old, new = CryptoSigner.generate_ed25519(), CryptoSigner.generate_ed25519()
    change = PUBLISHED.astimezone(timezone(timedelta(hours=3)))
    keys = [
        TrustedKey(
            public_key=to_pem(old.public_key), valid_from=PUBLISHED - timedelta(days=365), valid_until=change
        ),
        TrustedKey(public_key=to_pem(new.public_key), valid_from=change),
    ]
    for signer, published, valid in (
        (old, PUBLISHED - timedelta(days=365), True),
        (old, PUBLISHED, True),
        (old, PUBLISHED + SECOND, False),
        (old, PUBLISHED - timedelta(days=365) - SECOND, False),
        (new, PUBLISHED - SECOND, False),
        (new, PUBLISHED, True),
        (new, PUBLISHED + timedelta(days=9999), True),
    ):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        release = Release(releases.publish(folder, signer, releases.predicate(published=published)), signer)
        if valid:
            assert verify(folder, keys).keyid == signer.public_key.keyid
        else:
            (message,) = release.problems(keys)
            assert published.isoformat() in message and "outside the period of the key" in message


def run(folder: Path, *keys: Path) -> Result:
    return run_command("verify", folder, *(f"--key={key}" for key in keys))


@pytest.fixture
def key(release: Release, tmp_path: Path) -> Path:
    path = tmp_path / "public.pem"
    path.write_text(to_pem(release.signer.public_key))
    return path


def test_the_command_says_what_was_approved(release: Release, key: Path) -> None:
    shown = run_command("verify", release.folder, "--key", key, "--verbose")
    assert shown.exit_code == 0, shown.output
    predicate = releases.predicate(waived=True)
    for expected in (
        f"Approved: candidate {releases.CANDIDATE} of gate small, published 2026-03-01 12:00 UTC.",
        f"Published 2026-03-01T12:00:00+00:00, signed with the key {release.signer.public_key.keyid}.",
        f"Policy: digest {predicate.policy.digest}.",
        *(f"  {name}: sha256 {sha256}, 298 records" for name, sha256 in releases.hashes().items()),
        *(f"  kept    {clause.words}" for clause in predicate.clauses if clause.outcome == "kept"),
        *(f"  kept    {clause.words}" for clause in predicate.controls),
        *(f"  waived  {clause.words}" for clause in predicate.clauses if clause.outcome == "waived"),
        "  income-2026: DiSCO[income] may go to 15",
        "approved by R. Okafor: The committee of 3 February found the incomes too coarse to harm.",
        f"disclosure-pipeline {version('disclosure-pipeline')}",
        "300 records",
        "run 3f0c",
    ):
        assert expected in shown.output


def test_the_command_ends_with_the_verdict_and_what_was_not_checked(release: Release, key: Path) -> None:
    """Without a hash and without the clauses that are kept."""
    lines = run(release.folder, key).stdout.splitlines()
    place = lines.index(
        f"Approved: candidate {releases.CANDIDATE} of gate small, published 2026-03-01 12:00 UTC."
    )
    assert lines[place + 1] == "Not checked:"
    assert all(line.startswith("  --") for line in lines[place + 2 :])
    assert not [line for line in lines if re.search("[0-9a-f]{40}", line) or line.startswith("  kept")]
    [waived] = [clause for clause in releases.predicate(waived=True).clauses if clause.outcome == "waived"]
    assert f"  waived  {waived.words}" in lines


def test_the_command_says_all_that_is_wrong(release: Release, key: Path) -> None:
    (release.folder / "first.csv").unlink()
    (release.folder / "\x1b[31mred").touch()
    shown = run(release.folder, key)
    assert shown.exit_code == 1
    assert "is not an approved release" in shown.output
    assert "- 'first.csv' is missing" in shown.output
    assert r"- '\x1b[31mred' was added" in shown.output
    assert "\x1b" not in shown.output
    assert "Approved" not in shown.output


def test_words_do_nothing_to_a_terminal(release: Release, key: Path) -> None:
    predicate = releases.predicate(waived=True)
    change = with_waiver(reason="fine\x1b[2J\nApproved: everything")
    release.sign(changed(predicate, **change(predicate)))
    shown = run(release.folder, key)
    assert shown.exit_code == 0
    assert "\x1b" not in shown.output
    [line] = [line for line in shown.output.splitlines() if line.startswith("Approved")]
    assert line.startswith(f"Approved: candidate {releases.CANDIDATE} of gate small, published ")


def test_the_command_fails_in_words(release: Release, key: Path, tmp_path: Path) -> None:
    """With exit code 1, and without a traceback."""
    nonsense = tmp_path / "nonsense"
    nonsense.mkdir()
    (nonsense / STATEMENT).write_bytes(os.urandom(1 << 20))
    private = tmp_path / "private.pem"
    private.write_bytes(release.signer.private_bytes)
    twice = tmp_path / "again.pem"
    twice.write_text(key.read_text())
    for folder, keys in (
        (tmp_path / "none", [key]),
        (key, [key]),
        (nonsense, [key]),
        (tmp_path, [key]),
        (Path("/dev/null"), [key]),
        (release.folder, [tmp_path / "none.pem"]),
        (release.folder, [tmp_path]),
        (release.folder, [Path("/dev/zero")]),
        (release.folder, [private]),
        (release.folder, [release.folder / "first.csv"]),
        (release.folder, [key, twice]),
    ):
        shown = run(folder, *keys)
        assert shown.exit_code == 1, (folder, keys, shown.output)
        assert isinstance(shown.exception, SystemExit)
        assert shown.output.startswith("Error: ")
    assert run(release.folder).exit_code == 2  # without a key


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"dagster", "pandera", "great_expectations", "altair", "sqlalchemy"}:
            raise ImportError(f"{name} is not here")
sys.meta_path.insert(0, Blocked())
from disclosure_pipeline.cli.main import main
main()
"""


@on_some_days
def test_nothing_is_needed_but_the_folder_and_the_key(release: Release, key: Path, tmp_path: Path) -> None:
    """Neither Dagster, nor a home, a store or any variable of the environment."""
    alone = tmp_path / "alone"
    alone.mkdir()
    release.folder.rename(alone / "release")
    key.rename(alone / "key.pem")
    environment: Mapping[str, str] = {"PATH": "/usr/bin"}

    def verified() -> Finished:
        command = [sys.executable, "-c", BLOCKED, "verify", "release", "--key", "key.pem"]
        return run_program(command, cwd=alone, env=environment)

    fine = verified()
    assert fine.returncode == 0, fine.stderr
    assert "\nApproved: " in fine.stdout
    (alone / "release" / "first.csv").write_bytes(b"")
    changed = verified()
    assert (changed.returncode, changed.stdout) == (1, "")
    assert "'first.csv' was changed" in changed.stderr
    assert {path.name for path in alone.iterdir()} == {"release", "key.pem"}
