"""The preparation of a runner: uv, Python, locked packages and images."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from tests.nightly.conftest import MEASURE
from tests.workflow import run_script, write_program

#: A uv that writes down its arguments.
UV = """\
echo "$@" >>"{log}"
for last; do :; done
case "$1" in venv) mkdir -p "$last/bin"; ln -s /bin/true "$last/bin/harness" ;; esac
"""


@pytest.fixture
def runner(tmp_path):
    """Return a function that runs `install` on a runner without pip and without a Python from 3.11 on.

    The package index has uv's wheel.
    """
    clone, programs, log = tmp_path / "clone", tmp_path / "bin", tmp_path / "log"
    script = clone / ".github" / "actions" / "measure" / "install"
    script.parent.mkdir(parents=True)
    shutil.copy(MEASURE / "install", script)
    machine = os.uname().machine
    name = f"uv-1.2.3-py3-none-manylinux_2_17_{machine}.manylinux2014_{machine}.whl"
    uv = UV.format(log=log).replace('case "$1" in', 'if [ "$1 $2" = "python find" ]; then exit 1; fi\ncase "$1" in')
    with zipfile.ZipFile(tmp_path / name, "w") as wheel:
        wheel.writestr("uv-1.2.3.data/scripts/uv", f"#!/bin/sh\n{uv}")
    (clone / "images").mkdir()
    digest = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    (clone / "images" / "uv.txt").write_text(f"uv==1.2.3 \\\n    --hash=sha256:{digest}\n")
    (tmp_path / "page").write_text(f'<a href="https://files/{name}#sha256={digest}">{name}</a>')
    curl = f"""\
while [ $# -gt 1 ]; do if [ "$1" = --output ]; then out=$2; fi; shift; done
case "$1" in
  */simple/uv/) cat "{tmp_path}/page" ;;
  https://files/*) cp "{tmp_path}/${{1##*/}}" "$out" ;;
  *) exit 22 ;;
esac"""
    write_program(programs / "curl", curl)
    write_program(programs / "unzip", f'exec "{sys.executable}" -m zipfile -e "$3" "$5"')
    tools = "bash cat chmod cp cut dirname env grep head ln mkdir sed sh sha256sum true uname"
    for tool in tools.split(" "):
        (programs / tool).symlink_to(shutil.which(tool))

    def install(index):
        (tmp_path / "temp").mkdir(exist_ok=True)
        environ = {"RUNNER_TEMP": str(tmp_path / "temp"), "GITHUB_PATH": str(tmp_path / "path"), "PATH": str(programs)}
        process = subprocess.run(
            [script], env={**environ, "PACKAGE_INDEX": index}, capture_output=True, text=True, check=False
        )
        return process, log.read_text().splitlines() if log.exists() else []

    return install


INDEX = "https://me:s3cret@index.example.org/simple/"


def test_a_runner_without_python_gets_uv_from_the_index_python_from_uv_and_locked_versions_only(runner, tmp_path):
    process, commands = runner(INDEX)
    assert process.returncode == 0, process.stderr
    assert "python install 3.11" in commands
    assert any(command.startswith("venv --quiet --no-project --python 3.11 ") for command in commands)
    (command,) = [command for command in commands if command.startswith("pip install ")]
    for option in ("--constraint", "--build-constraint"):
        assert f" {option} {tmp_path / 'clone' / 'requirements.txt'} " in command


def test_a_runner_that_cannot_get_uv_reports_what_is_missing_and_no_password(runner, tmp_path, snapshot):
    locked, page = tmp_path / "clone" / "images" / "uv.txt", tmp_path / "page"
    wheel = page.read_text()
    errors = {}
    for case, index, text in (("no index", "", wheel), ("no file", INDEX, "nothing"), ("another file", INDEX, wheel)):
        locked.write_text("uv==1.2.3 --hash=sha256:0\n")
        page.write_text(text)
        process, commands = runner(index)
        assert (process.returncode, commands) == (4, [])
        output = process.stdout + process.stderr
        errors[case] = [
            line.replace(os.uname().machine, "MACHINE") for line in output.splitlines() if line.startswith("::error::")
        ]
    assert "s3cret" not in str(errors)
    assert errors == snapshot


#: A Docker Engine with the images of two releases and of release lines.
DOCKER = """\
echo "$@" >>"{log}"
case "$1 $2" in
  "image ls") printf 'harness/%s\\n' tf2.15:cpu tf2.21:cpu tf2.21-keras-nightly:cpu tf-nightly:cpu '<none>' ;;
  "image inspect") printf '%s\\n' 2000000000 "${{SIZE:-1000}}" ;;
  save*) echo images ;;
esac
"""


@pytest.fixture
def images(tmp_path):
    """Return a function that runs the script that keeps images in GitHub's cache.

    It returns the outputs, the commands of docker, and what the script prints.
    """
    log, output = tmp_path / "log", tmp_path / "output"
    write_program(tmp_path / "docker", DOCKER.format(log=log))

    def run_images(command, **environ):
        log.write_text("")
        output.write_text("")
        defaults = {"RUNNER_ENVIRONMENT": "github-hosted", "ARGUMENTS": "-s step", "RUNNER_TEMP": str(tmp_path)}
        process = run_script(
            MEASURE / "images", command, programs=tmp_path, cwd=tmp_path, GITHUB_OUTPUT=output, **defaults | environ
        )
        process.check_returncode()
        return dict(line.split("=", 1) for line in output.read_text().splitlines()), log.read_text(), process.stdout

    return run_images


def test_images_of_releases_are_kept_in_the_cache_of_runners_that_are_new_each_night(images, tmp_path):
    outputs, commands, _ = images("save")
    assert outputs == {"saved": "true"}
    assert "save harness/tf2.15:cpu harness/tf2.21:cpu\n" in commands
    file = tmp_path / "harness-images.tar.gz"
    _, commands, _ = images("load")
    assert f"load --quiet --input {file}" in commands
    assert not file.exists()
    # too large for GitHub
    outputs, _, output = images("save", SIZE="7000000000")
    assert (outputs, file.exists()) == ({}, False)
    assert " 9 GB" in output
    ((_, key),) = images("key")[0].items()
    assert images("key", ARGUMENTS="-s step --seed 7 --shard 1/2")[0] == {"key": key}
    assert images("key", ARGUMENTS="-s step -e tf2.15")[0]["key"] != key
    assert images("key", RUNNER_ENVIRONMENT="self-hosted", MACHINE_ID="aws")[0] == {"key": key}
    assert images("key", RUNNER_ENVIRONMENT="self-hosted")[0] == {}
    assert images("key", REGISTRY="ghcr.io/me/")[0] == {}
