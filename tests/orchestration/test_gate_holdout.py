"""The holdout of a gate: what a candidate tells of people who had no part in it stands beside its figures."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import gates
from support.figures import without_guards
from support.gates import HONEST, Home
from support.sampling import on_some_days

import disclosure_pipeline as dp
from disclosure_pipeline.candidates import arrival, evaluation
from disclosure_pipeline.candidates.measuring import Measured, measure_candidate
from disclosure_pipeline.evaluation.long_table import ALL_FILES, view_frame
from disclosure_pipeline.evaluation.resemblance import WHOLE_KEY
from disclosure_pipeline.evidence.page.clauses_section import tabulate_clauses, write_baselines
from disclosure_pipeline.evidence.page.rendering import make_publishable
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.sentences import MISSING
from disclosure_pipeline.policy.verdict import Judgement

pytestmark = [pytest.mark.usefixtures("remembered_results"), on_some_days]

NAME = "others"
LOOSE = {"repU": 100, "DiSCO": 100, "whole_key_overlap": 0, "key_overlap": 1}


def definition(**changes: Any) -> dict[str, Any]:
    return gates.definition(policy=LOOSE, confidential={NAME: "others.csv"}, holdout=NAME, **changes)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    gates.last_year(200).to_csv(tmp_path / "others.csv", index=False)
    with gates.home_in_memory(tmp_path, gates.load(definition()), monkeypatch) as home:
        home.prepare()
        yield home


@pytest.mark.parametrize("files", [1, 2])
def test_its_figures_are_those_of_disclosure(home: Home, files: int) -> None:
    tables = [gates.honest()[part::files] for part in range(files)]
    home.deliver(HONEST, {f"synthetic_{part}.csv": table for part, table in enumerate(tables)})
    ran = home.run_gate(HONEST)
    assert ran.success, gates.failures(ran)
    gate = Gate.model_validate(definition())
    # The frames are not checked against a dictionary.
    with without_guards(), pytest.warns(UserWarning) as warned:
        expected = dp.disclosure(
            gates.ground_truth(),
            tables,
            gate.keys,
            gate.targets,
            groups=gate.groups,
            special_values={name: gate.columns[name].special_values for name in gate.measured_columns},
            exclude=gate.exclusions.to_exclusions(),
            holdout=gates.last_year(200),
        ).holdout
    assert warned
    rows = [row for row in home.dossier(HONEST)["figures"]["table"] if "holdout" in row]
    measured = {(row["about"] or WHOLE_KEY, row["part"], row["figure"]): row["holdout"] for row in rows}
    assert {figure for _, _, figure in measured} >= {"repU", "unique_hits", "DiSCO", "guessed", "iS"}
    assert measured == expected["holdout"].loc[list(measured)].to_dict()
    if files > 1:
        assert_none_beside_the_stack(home.dossier(HONEST))


def assert_none_beside_the_stack(content: dict[str, Any]) -> None:
    """The figures of a holdout are of each table: they do not stand beside those of all tables as one."""
    by_file = {row["DiSCO"] for row in view_frame(content["figures"], "attribute")}
    clauses = [clause for clause in content["clauses"] if clause["figure"] == "DiSCO"]
    assert clauses
    for clause in clauses:
        assert write_baselines(Judgement.from_row(clause)).holdout != MISSING
        [target] = clause["about"]
        place = ("DiSCO", target, ALL_FILES)
        rows = content["figures"]["table"]
        [of_all] = [row for row in rows if (row["figure"], row["about"], row["part"]) == place]
        assert of_all["value"] not in by_file and "holdout" not in of_all
        assert write_baselines(Judgement.from_row({**clause, "row": of_all})).holdout == MISSING


def test_the_page_shows_it_and_the_public_edition_rounds_it(home: Home) -> None:
    home.deliver(HONEST, {"synthetic.csv": gates.honest()})
    assert home.run_gate(HONEST).success
    content = home.dossier(HONEST)
    exact = {row["target"]: row["DiSCO_holdout"] for row in view_frame(content["figures"], "attribute")}
    shown = {
        clause["name"]: write_baselines(Judgement.from_row(clause)).holdout for clause in content["clauses"]
    }
    [beside] = [
        dict(zip(table.headings, row.cells, strict=True))
        for table in tabulate_clauses(content)
        for row in table.rows
        if row.cells[0] == "DiSCO: holdout"
    ]
    for target, holdout in exact.items():
        assert beside[target] == shown[f"DiSCO[{target}]"] == f"{holdout:.1f} %"
    assert shown["found[nearly] beyond"] == MISSING
    page = home.record(HONEST, "dossier.html").read_text(encoding="utf-8")
    assert "of the people who took no part in the synthesis" in page
    public = make_publishable(content)
    people = content["smallest_count"] / content["figures"]["N_holdout"] * 100
    rows = [*public["figures"]["table"], *(clause["row"] for clause in public["clauses"])]
    rounded = [row["holdout"] for row in rows if row.get("holdout", 100) < 100]
    assert rounded
    for holdout in rounded:
        assert holdout / people == pytest.approx(round(holdout / people), abs=1e-6)
    assert gates.CANARY_AMOUNT not in gates.everything_logged(home.instance)
    assert not gates.files_with(home.path, [gates.CANARY_AMOUNT], ["others.csv"])


def test_what_the_arrival_measured_is_not_measured_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the release measures again, and copies of the confidential tables come later."""
    measured = 0

    def counted(measure: Callable[..., Measured]) -> Callable[..., Measured]:
        def count(*given: Any) -> Measured:
            nonlocal measured
            measured += 1
            return measure(*given)

        return count

    for module in (arrival, evaluation):
        monkeypatch.setattr(module, "measure_candidate", counted(measure_candidate))
    home.deliver(HONEST, {"synthetic.csv": gates.honest()})
    assert home.run_gate(HONEST).success
    assert measured == 2


def test_a_changed_holdout_is_measured_anew(home: Home) -> None:
    home.deliver(HONEST, {"synthetic.csv": gates.honest()})
    assert home.run_gate(HONEST).success
    before = home.dossier(HONEST)["figures"]
    gates.last_year(200).head(150).to_csv(home.path / "others.csv", index=False)
    assert home.run_ground_truth().success
    home.run_gate(HONEST)
    after = home.dossier(HONEST)["figures"]
    assert (before["N_holdout"], after["N_holdout"]) == (200, 150)
    attribute = [
        [
            {name: row[name] for name in row if not name.endswith("_holdout")}
            for row in view_frame(figures, "attribute")
        ]
        for figures in (before, after)
    ]
    assert before["table"] != after["table"] and attribute[0] == attribute[1]


def test_it_decides_of_claims_alone() -> None:
    with_it, without = (
        Gate.model_validate(written)
        for written in (definition(), gates.definition(policy=LOOSE, confidential={NAME: "others.csv"}))
    )
    assert {*with_it.clauses()} - {*without.clauses()} == {Clause("epsilon_beyond_claim", "at_most", 0)}
    assert with_it.policy_digest() != without.policy_digest()
