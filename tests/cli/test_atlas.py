"""`harness atlas`: runs of other machines become a part of the pages about what is slow today."""

import json
import shutil
import tarfile

import pytest

from bench.observatory import facts
from harness.model.errors import UsageError
from harness.upstream import atlas


@pytest.mark.slow
def test_a_finished_run_of_this_machine_is_added_and_shown(harness, tmp_path, monkeypatch):
    process = harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "2")
    assert process.returncode == 0, process.stderr
    machines = tmp_path / "observatory" / "machines"
    with pytest.raises(UsageError, match="in a clone"):
        atlas.add(harness.run, machines)
    machines.parent.mkdir()
    path = atlas.add(harness.run, machines)
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path / "copy", filter="data")
    document = (tmp_path / "copy" / "run.json").read_text()
    assert str(harness.root) not in document
    assert atlas.add(tmp_path / "copy", tmp_path / "observatory" / "again")  # the copy is signed, too
    monkeypatch.setattr(facts, "MACHINES", machines)
    shown = [fact for fact in facts.read_facts() if fact.source == f"{path.parent.name}/{path.name}"]
    assert [(fact.scenario, fact.kind, fact.places[0].release) for fact in shown] == [("ways", "line", "2.0")]
    assert shown[0].machine.startswith(path.parent.name)

    changed = tmp_path / "changed"
    shutil.copytree(harness.run, changed)
    (changed / "run.json").write_text((harness.run / "run.json").read_text().replace('"seed": ', '"seed": 1', 1))
    with pytest.raises(UsageError, match="isn't signed by you"):
        atlas.add(changed, machines)
    torn = tmp_path / "torn"
    shutil.copytree(harness.run, torn)
    with (torn / "launches.jsonl").open("a") as launches:
        launches.write(json.dumps({"status": "ok"}))
    with pytest.raises(UsageError, match="isn't finished"):
        atlas.add(torn, machines)
