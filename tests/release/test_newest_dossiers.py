"""Which dossiers are the newest."""

import json
import os
from pathlib import Path

from support import gate_steps, gates

from disclosure_pipeline.release.standing import read_newest_dossiers


def test_the_newest_dossiers_come_first_and_damaged_ones_not_at_all(tmp_path: Path) -> None:
    folders = gate_steps.folders(tmp_path, gates.definition(), "auto", "ground_truth.csv")
    for age, name in enumerate(("newest", "damaged", "older", "oldest")):
        path = folders.store.candidate_folder(name) / "dossier.json"
        path.parent.mkdir(parents=True)
        path.write_text("{" if name == "damaged" else json.dumps({"candidate": name, "clauses": []}))
        os.utime(path, (10**9 - age, 10**9 - age))
    names = [dossier["candidate"] for dossier in read_newest_dossiers(folders, 2)]
    assert names == ["newest", "older"]
    assert len(read_newest_dossiers(folders, 9)) == 3
