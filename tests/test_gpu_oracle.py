"""The plan for a GPU agrees with the recorded verdicts of NVIDIA's assembler."""

import json

from bench.gpu_code import KEPT
from bench.gpu_oracle import compare, find_needed, load_verdicts
from harness.environments.catalog import load_environments
from harness.project import Project
from tests.conftest import ROOT


def test_the_plan_and_the_assembler_agree(capsys):
    catalog, code, verdicts = load_environments(Project(ROOT)).values(), json.loads(KEPT.read_text()), load_verdicts()
    assert compare(catalog, code, verdicts) == 0
    # XLA up to 2.21 can't generate code for Blackwell, whatever the driver
    assert not any(result for cuda in verdicts["XLA 8.5/sm_120"].values() for result in cuda.values())
    verdicts["8.5/sm_90"]["12.8"]["9.0"] = False
    assert compare(catalog, code, verdicts) == 1
    assert "tf2.21 on 9.0 with 570.86.10" in capsys.readouterr().out


def test_a_module_without_machine_code_for_the_gpu_needs_its_newest_ptx():
    modules = [["sm_60", "ptx_60:6.3/sm_60", "ptx_70:7.0/sm_70"], ["sm_70"], ["ptx_90:8.5/sm_90"]]
    assert find_needed(modules, (7, 5)) == {"7.0/sm_70"}
    assert find_needed(modules, (6, 1)) == set()  # the first has machine code, and the second is for newer GPUs
