"""The wheel, installed not editable in an environment of its own, works from any folder."""

import email
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness import DISTRIBUTION, __version__
from tests.cli.conftest import stored
from tests.conftest import ROOT, copy_part
from tests.runs import launch, run

#: A Markdown link to a file.
LINK = re.compile(r"\]\((?!https?:|#)")

#: What an image's labels and an environment's folder are made from.
MADE_FROM = """
import json
from harness.backends.docker import recipe
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.project import Project

project = Project.find()
locks = [load_lock(project, one, device) for one in load_environments(project).values() for device in one.devices]
print(json.dumps([[k.lock.sha256, recipe.hash_recipe(recipe.find_dockerfile(project.root, k))] for k in locks]))
"""


@dataclass
class Installed:
    """A folder with nothing in it, and the programs of an environment that the wheel was installed in."""

    programs: Path
    here: Path

    def __call__(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return self.run(str(self.programs / "harness"), *arguments, **environ)

    def run(self, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder; PYTHONPATH, which pytest's callers may set, would find the checkout."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(
            command, cwd=self.here, env={**environment, **environ}, capture_output=True, text=True, check=False
        )

    def printed(self, *arguments: str, **environ: str) -> str:
        process = self(*arguments, **environ)
        assert process.returncode == 0, process.stderr
        return process.stdout


def in_checkout(*command: str) -> str:
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel; what the wheel needs is taken from the environment that the tests run in."""
    folder = tmp_path_factory.mktemp("package")
    uv = [sys.executable, "-m", "uv", "--quiet"]
    build = [*uv, "build", "--wheel", "--no-build-isolation", "--out-dir", str(folder), str(ROOT)]
    subprocess.run([*build, "--python", sys.executable], check=True)
    (wheel,) = folder.glob("*.whl")
    environment = folder / "environment"
    venv.create(environment)
    python = environment / "bin" / "python"
    subprocess.run([*uv, "pip", "install", "--offline", "--no-deps", "--python", str(python), str(wheel)], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


@pytest.fixture
def installed(programs: Path, tmp_path: Path) -> Installed:
    here = tmp_path / "elsewhere"
    here.mkdir()
    return Installed(programs, here)


@pytest.mark.slow
def test_the_wheel_has_its_version_and_metadata(installed):
    text = installed.printed("--version")
    assert text.startswith(f"harness {__version__} (installed: {installed.programs.parent}")
    assert len(text.splitlines()) == 3
    (path,) = installed.programs.parent.glob("lib/python*/site-packages/tf_harness-*.dist-info/METADATA")
    metadata = email.message_from_string(path.read_text())
    assert metadata["Name"] == DISTRIBUTION
    assert "Operating System :: POSIX :: Linux" in metadata.get_all("Classifier")
    assert metadata["Author"]
    assert all(">=" in requirement for requirement in metadata.get_all("Requires-Dist"))
    assert not LINK.search(metadata.get_payload())


def test_the_readme_of_an_index_has_no_link_to_a_file_beside_it():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    text = (ROOT / "README.md").read_text()
    assert LINK.search(text)
    for repository in ("", "https://example.org/me/harness"):
        readme = hook.readme(text, repository)
        assert not LINK.search(readme)
        assert (f"]({repository}/blob/HEAD/docs/explanation/accuracy.md#what-breaks" in readme) == bool(repository)
        addresses = re.findall(r'(?:src|srcset)="([^"]+)"', readme)
        assert len(addresses) == (2 if repository else 0)
        assert all(address.startswith(f"{repository}/raw/HEAD/docs/examples/") for address in addresses)


def test_no_line_of_docs_and_messages_installs_the_harness_from_an_index():
    # a command's words up to what ends it; of `uvx --from . harness` the place
    command = re.compile(r"\b(?:pipx?3? install|uv tool install|uvx)[ \n]+(?:--from )?([^`\n]+)")
    names = set()
    for pattern in ("*.md", "docs/**/*.md", "harness/**/*.py", "templates/**/*", ".github/**/*", "images/*"):
        for path in ROOT.glob(pattern):
            if not path.is_file() or path.suffix == ".pyc":
                continue
            for words in command.findall(path.read_text(encoding="utf-8")):
                requirements = words.split()[0] if words.startswith(".") else words
                names |= {re.split(r"[\[<>=~!@;]", word.strip("'\",.()"))[0].lower() for word in requirements.split()}
    assert {"ray", "uv"} <= names
    assert not names & {"harness", DISTRIBUTION}


@pytest.mark.slow
def test_scenarios_plans_and_images_are_those_of_the_checkout(installed):
    plan = ["matrix", "--suite", "quick", "--backend", "local", "--dry-run", "--seed", "1"]
    for arguments in (["scenarios", "list"], plan):
        assert installed.printed(*arguments) == in_checkout("-m", "harness", *arguments)
    installed.printed("scenarios", "check")
    process = installed.run(str(installed.programs / "python"), "-I", "-c", MADE_FROM)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == json.loads(in_checkout("-c", MADE_FROM))


@pytest.mark.slow
def test_a_new_scenario_lies_in_this_folder_beside_those_of_the_harness(installed):
    output = installed.printed("scenarios", "new", "mine")
    assert "Created scenarios/mine.py." in output
    assert (installed.here / "scenarios" / "mine.py").is_file()
    listed = installed.printed("scenarios", "list")
    assert "mine: " in listed
    assert "keras_step: " in listed
    installed.printed("scenarios", "check", "mine")
    plan = ["matrix", "-s", "mine", "-e", "tf2.0", "--backend", "local", "--dry-run"]
    assert "mine runs without a container, with your rights." in installed.printed(*plan)
    (by_hand,) = (line.split(":", 1)[1] for line in output.splitlines() if line.startswith("run it"))
    assert "PYTHONPATH=" in by_hand


@pytest.mark.slow
def test_a_project_that_is_named_is_read_and_the_templates_are_the_harnesss_own(installed, tmp_path):
    project = tmp_path / "project"
    for name in ("images", "scenarios"):
        copy_part(name, project)
    shutil.copy(ROOT / "docker-bake.hcl", project)
    (project / "scenarios" / "train_batch.py").unlink()
    named = {"HARNESS_PROJECT": str(project)}
    assert "train_batch: " not in installed.printed("scenarios", "list", **named)
    group = run().plan.groups[0]
    folder = stored(tmp_path, run(), [launch(group=group.name, cell=group.cells[0])])
    installed.printed("report", str(folder), **named)
    installed.printed("doctor", "--no-listen", **named)
    installed.printed("scenarios", "new", "mine", **named)
    assert (project / "scenarios" / "mine.py").is_file()


@pytest.mark.slow
def test_a_catalogues_lock_is_not_changed_in_the_installation(installed):
    change = (
        "from harness.environments import locks\n"
        "from harness.environments.catalog import load_environments\n"
        "from harness.project import Project\n"
        "from harness.model.environment import Device\n"
        "locks.resolve = lambda *_, **__: 'another'\n"
        "project = Project.find()\n"
        "locks.write_lock(project, load_environments(project)['tf2.0'], Device.CPU)\n"
    )
    process = installed.run(str(installed.programs / "python"), "-I", "-c", change)
    assert "part of the installed harness" in process.stderr
