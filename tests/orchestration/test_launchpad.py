"""Nothing that the launchpad lets somebody set releases what the policy refuses.

Every field of a run's configuration is found in the schema that Dagster makes of the job, so that one that
is added some day is set here as well. The policy is in none of them.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from support import gates
from support.event_stores import kept_connections
from support.gates import COPY, GATE, HONEST, Home
from support.homes import ALONE, code_location, copied, opened, refused
from support.paths import ROOT
from support.sampling import CI, some_of

from disclosure_pipeline.release.keys import SIGNING_KEY

pytestmark = pytest.mark.usefixtures("remembered_results")

# What somebody would set who wants a copy of the ground truth released.
LAX = {
    "policy": {"repU": 100, "DiSCO": 100},
    "repU": {"at_most": 100},
    "candidate": HONEST,
    "partition_key": HONEST,
    "ground_truth": "incoming/honest/synthetic.csv",
    "releases": "elsewhere",
    "decision": "approved",
    "skip_checks": True,
    "waivers": [{"clause": "repU", "ceiling": 100}],
}
# Of some texts Dagster itself takes only certain ones.
TEXTS = {"log_level": "CRITICAL"}


def gate_job() -> dg.JobDefinition:
    return code_location().resolve_job_def(f"{GATE}_gate")


def release_job() -> dg.JobDefinition:
    return code_location().resolve_job_def(ALONE)


def alternatives(kind: Any, name: str = "") -> list[Any]:
    """Values of a type of Dagster's configuration: together they set every field and take every choice."""
    values: list[Any]
    match kind.kind.name:
        case "STRICT_SHAPE" | "PERMISSIVE_SHAPE":
            fields = {key: alternatives(field.config_type, key) for key, field in kind.fields.items()}
            most = max(map(len, fields.values()), default=1)
            values = [
                {key: actual[number % len(actual)] for key, actual in fields.items()}
                for number in range(most)
            ]
            if kind.kind.name == "PERMISSIVE_SHAPE" and name not in {"ops", "resources"}:
                values = [LAX | value for value in values]
        case "SELECTOR":
            values = [
                {key: value}
                for key, field in kind.fields.items()
                for value in alternatives(field.config_type, key)
            ]
        case "SCALAR_UNION":
            values = [*alternatives(kind.scalar_type, name), *alternatives(kind.non_scalar_type, name)]
        case "NONEABLE":
            values = [*alternatives(kind.inner_type, name), None]
        case "ARRAY":
            values = [[value] for value in alternatives(kind.inner_type, name)]
        case "MAP":
            values = [{"key": value} for value in alternatives(kind.inner_type, name)]
        case "ENUM":
            values = [value.config_value for value in kind.enum_values]
        case "ANY":
            values = [LAX, [LAX], "elsewhere"]
        case "SCALAR":
            scalars: dict[str, list[Any]] = {
                "String": [TEXTS.get(name, "elsewhere")],
                "Bool": [False, True],
                "Int": [1],
                "Float": [0.5],
            }
            values = scalars[kind.given_name]
        case other:
            raise AssertionError(f"A kind of configuration that is new: {other}")
    return [SIGNING_KEY] if name == "env" else values


def fields(value: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, Mapping) and value is not LAX:
        for key, inner in value.items():
            yield from fields(inner, (*at, key))
    yield at


def configurations(job: dg.JobDefinition) -> list[dict[str, Any]]:
    """Run configurations that together set everything that can be set."""
    return alternatives(job.run_config_schema.run_config_schema_type)


@pytest.fixture
def home(finished: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with copied(finished) as path:
        shutil.copy(ROOT / "dagster_home" / "dagster.yaml", path)
        with opened(path, code_location()) as home, kept_connections():
            (path / "elsewhere").mkdir()
            monkeypatch.chdir(path)
            yield home


def launch(
    home: Home,
    job: Callable[[], dg.JobDefinition],
    config: Mapping[str, Any] | None = None,
    tags: Mapping[str, str] | None = None,
    **settings: Any,
) -> dg.JobExecutionResult:
    with gates.quiet():
        return dg.execute_job(
            dg.reconstructable(job),
            home.instance,
            run_config={**gates.SILENT, **(config or {})},
            tags={"dagster/partition": COPY} if tags is None else tags,
            raise_on_error=False,
            **settings,
        )


def only_the_honest_one(home: Home) -> None:
    assert [path.name for path in (home.path / "releases" / GATE).iterdir()] == [HONEST]
    predicate = gates.stated(home.published(HONEST))
    assert predicate.candidate == HONEST
    assert gates.published_records(home.published(HONEST)) == gates.sorted_records(gates.honest())
    assert not list((home.path / "elsewhere").iterdir())


def test_everything_that_can_be_set_is_found() -> None:
    for job in (gate_job, release_job):
        actual = {path for config in configurations(job()) for path in fields(config)}
        actual |= {(*path[:2], *path[3:]) for path in actual if path[2:3] == ("in_process",)}
        assert {
            ("execution", "config", "step_dependency_config", "require_upstream_step_success"),
            ("execution", "config", "retries", "enabled"),
            ("loggers", "console", "config", "log_level"),
            ("resources", "io_manager", "config", "base_dir"),
            ("resources", "io_manager", "config", "base_dir", "env"),
            ("ops", f"{GATE}__release", "config"),
        } <= actual
        # A resource of ours that can be configured would be a way in: there is none.
        assert {path[1] for path in actual if path[:1] == ("resources",) and path[1:]} == {"io_manager"}


def test_no_configuration_of_the_gate_releases_what_it_refuses(home: Home) -> None:
    for config in some_of(configurations(gate_job()), 8):
        before = home.record(COPY, "dossier.json").stat().st_mtime_ns
        message = refused(launch(home, gate_job, config))
        assert home.record(COPY, "dossier.json").stat().st_mtime_ns != before, config
        assert home.dossier(COPY)["decision"] == "refused"
        required = config["execution"]["config"]["step_dependency_config"]["require_upstream_step_success"]
        # A launcher can have steps go on after a blocking check: the release then refuses by itself.
        assert required or "is refused: " in message, config
        only_the_honest_one(home)


def test_no_configuration_of_the_release_alone_releases_what_was_refused(home: Home) -> None:
    for config in configurations(release_job()):
        assert "is refused: " in refused(launch(home, release_job, config))
        only_the_honest_one(home)


def test_no_configuration_changes_what_is_approved(home: Home) -> None:
    """The same configurations do no harm to what may be released: it is published as ever."""
    for number, config in enumerate(some_of(configurations(gate_job()))):
        candidate = f"honest-{number}"
        home.deliver(candidate, {"synthetic.csv": gates.honest()})
        home.instance.add_dynamic_partitions(f"{GATE}_candidates", [candidate])
        ran = launch(home, gate_job, config, {"dagster/partition": candidate})
        assert ran.success
        assert gates.stated(home.published(candidate)).candidate == candidate
        published = (home.published(candidate) / "synthetic.parquet").read_bytes()
        assert published == (home.published(HONEST) / "synthetic.parquet").read_bytes()
    assert not list((home.path / "elsewhere").iterdir())


UNKNOWN: dict[str, Any] = {
    "at the root": LAX,
    "a resource": {"resources": {"policy": {"config": LAX}}},
    "of the IO manager": {"resources": {"io_manager": {"config": LAX}}},
    "an IO manager of its own": {"resources": {"release_io_manager": {"config": {"base_dir": "elsewhere"}}}},
    "of a step": {"ops": {f"{GATE}__release": LAX}},
    "of a step's configuration": {"ops": {f"{GATE}__disclosure": {"config": LAX}}},
    "an input": {"ops": {f"{GATE}__release": {"inputs": {"dossier": {"value": LAX}}}}},
    "an output": {"ops": {f"{GATE}__release": {"outputs": {"result": {"json": {"path": "elsewhere/x"}}}}}},
    "a step": {"ops": {"approve": {"config": LAX}}},
    "of the executor": {"execution": {"config": LAX}},
    "another executor": {"execution": {"multiprocess": {}}},
    "a logger": {"loggers": {"approving": {"config": {}}}},
}


def test_nothing_else_can_be_set(home: Home) -> None:
    for what, config in UNKNOWN.items():
        with pytest.raises(dg.DagsterInvalidConfigError):
            pytest.fail(f"{what}: {launch(home, gate_job, config)}")
    only_the_honest_one(home)


START, END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
TAGS: dict[str, dict[str, str]] = {
    "none": {},
    "the other candidate's range": {"dagster/partition": HONEST, START: COPY, END: COPY},
    "its range in the other's name": {"dagster/partition": COPY, START: HONEST, END: HONEST},
    "its range alone": {START: COPY, END: COPY},
    "the range of both": {START: COPY, END: HONEST},
    "half a range": {START: COPY},
    "one dimension of many": {"dagster/partition": HONEST, "dagster/partition/candidate": COPY},
    "the other in one dimension": {"dagster/partition": COPY, "dagster/partition/candidate": HONEST},
    "both in two dimensions": {"dagster/partition/a": COPY, "dagster/partition/b": HONEST},
    "nobody": {"dagster/partition": "nobody"},
    "retries": {
        "dagster/partition": COPY,
        "dagster/max_retries": "5",
        "dagster/retry_on_asset_or_op_failure": "true",
        "dagster/is_resume_retry": "true",
    },
    "what looks like an approval": {
        "dagster/partition": COPY,
        "approved": "true",
        f"{GATE}/decision": "approved",
        "disclosure_pipeline/gate": "another",
        "dagster/run_key": f"{HONEST}:approved",
        "dagster/code_location": "another",
    },
}


@pytest.mark.parametrize("what", some_of(TAGS, 8))
def test_no_tags_release_what_was_refused(home: Home, what: str) -> None:
    """Nor do they let one candidate be measured and another be published."""
    mixed = any("/partition/" in tag or tag == START for tag in TAGS[what])
    for job in (release_job, gate_job) if CI or mixed else (release_job,):
        with suppress(dg.DagsterError):  # some Dagster does not take: then nothing runs
            launch(home, job, tags=TAGS[what])
        only_the_honest_one(home)


def test_measured_under_one_name_nothing_is_released_under_another(home: Home) -> None:
    """With such tags a run measures one candidate, and the event log has it of the other."""
    tags = {"dagster/partition": COPY, "dagster/partition/candidate": HONEST}
    launch(home, gate_job, tags=tags)
    assert "refused" in refused(launch(home, release_job))
    only_the_honest_one(home)


def test_running_a_refusal_again_from_where_it_failed_releases_nothing(home: Home) -> None:
    first = launch(home, gate_job)
    assert not first.success
    failed = dg.ReexecutionOptions.from_failure(first.run_id, home.instance)
    refused(launch(home, gate_job, reexecution_options=failed))
    only_the_honest_one(home)
    last = dg.ReexecutionOptions(first.run_id, step_selection=[f"{GATE}__release"])
    assert "is refused: " in refused(launch(home, gate_job, reexecution_options=last))
    only_the_honest_one(home)
