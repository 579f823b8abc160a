"""Files of packages as environments."""

from pathlib import Path

import pytest

from harness.catalog.lines import PYTHONS
from harness.catalog.requirement_files import LOCKS, is_package_file, read
from harness.catalog.requirement_specs import parse
from harness.machine.uv import run_uv
from harness.model.errors import UsageError

PIP = """# my env
absl-py==2.1.0
pandas>=2.0  # for tables
tensorflow==2.15.0
scikit-learn==1.4.0 ; sys_platform != "win32"
colorama==0.4.6 ; sys_platform == "win32"
tomli==2.0.1 ; python_version < "3.11"
--extra-index-url https://example.org/simple
"""
CONDA = """
name: mine
channels: [conda-forge]
dependencies:
  - python=3.9
  - cudatoolkit=11.8
  - conda-forge::numpy=1.26
  - scipy >=1.10,<1.12
  - pandas==2.1.4
  - matplotlib
  - tensorflow=2.15.0
  - pip
  - pip:
      - absl-py==2.1.0
"""
POETRY = """
[[package]]
name = "tensorflow"
version = "2.15.0"
optional = false
groups = ["main", "dev"]

[[package]]
name = "numpy"
version = "1.26.4"
optional = false
groups = ["main"]
markers = "python_version >= '3.9'"

[[package]]
name = "pytest"
version = "8.0.0"
groups = ["dev"]

[[package]]
name = "extra"
version = "1"
optional = true
"""
PYLOCK = """
lock-version = "1.0"
created-by = "pip"

[[packages]]
name = "tensorflow"
version = "2.15.0"

[[packages]]
name = "pywin32"
version = "306"
marker = "sys_platform == 'win32'"
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_requirements(tmp_path: Path):
    file = read(written(tmp_path, "requirements.txt", PIP))
    assert file.tensorflow == "tensorflow==2.15.0"
    assert file.depends_on_python
    assert file.list_requirements("3.11") == ["absl-py==2.1.0", "pandas>=2.0", "scikit-learn==1.4.0"]
    assert file.list_requirements("3.9") == [*file.list_requirements("3.11"), "tomli==2.0.1"]
    assert parse(",".join([file.tensorflow, *file.list_requirements("3.9")])).version == "2.15.0"


def test_a_requirement_for_the_newest_python_is_kept(tmp_path: Path):
    file = read(written(tmp_path, "r.txt", f'x==1 ; python_version >= "{PYTHONS[-1]}"\ny==2'))
    assert file.depends_on_python
    assert (file.list_requirements(PYTHONS[-1]), file.list_requirements("3.11")) == (["x==1", "y==2"], ["y==2"])


def test_a_file_without_tensorflow(tmp_path: Path):
    file = read(written(tmp_path, "requirements.txt", "numpy==1.26.4"))
    assert (file.tensorflow, file.list_requirements(""), file.depends_on_python) == ("", ["numpy==1.26.4"], False)


def test_an_environment_of_conda(tmp_path: Path):
    file = read(written(tmp_path, "environment.yml", CONDA))
    assert file.tensorflow == "tensorflow==2.15.0"
    assert file.list_requirements("") == [
        "numpy==1.26.*",
        "scipy<1.12,>=1.10",
        "pandas==2.1.4",
        "matplotlib",
        "absl-py==2.1.0",
    ]


@pytest.mark.parametrize(
    ("name", "text", "others"), [("poetry.lock", POETRY, ["numpy==1.26.4"]), ("pylock.toml", PYLOCK, [])]
)
def test_a_project_has_the_packages_of_its_lock(tmp_path: Path, name: str, text: str, others: list[str]):
    written(tmp_path, name, text)
    project = written(tmp_path, "pyproject.toml", "")
    for path in (project, tmp_path / name):
        file = read(path)
        assert (file.tensorflow, file.list_requirements("3.11")) == ("tensorflow==2.15.0", others)


def test_a_project_that_uv_locked(tmp_path: Path):
    project = written(
        tmp_path, "pyproject.toml", '[project]\nname = "mine"\nversion = "1"\nrequires-python = ">=3.11"\n'
    )
    process = run_uv(["lock", f"--directory={tmp_path}", "--offline"])
    assert process.returncode == 0, process.stderr
    assert read(project).list_requirements("") == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.txt", "./wheel.whl", "line 1: './wheel.whl' isn't a package from an index"),
        ("r.txt", "x==1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n\n-e .", "line 5: '-e .' isn't a package"),
        ("r.txt", "x @ https://example.org/x.whl", "isn't a package from an index"),
        ("r.txt", "-r other.txt", "other.txt can't be read: No such file"),
        ("r.txt", "x==1\n-r r.txt", "line 2: .*r.txt includes itself"),
        ("r.txt", "--constraint=other.txt", "isn't a package from an index"),
        ("r.txt", "-e .", "isn't a package from an index"),
        ("e.yml", "dependencies: [numpy=1.26.4=py311h64a7726_0]", "one build of a conda package"),
        ("e.yml", "dependencies: {numpy: 1}", "no list of dependencies"),
        ("e.yml", "dependencies: [[numpy]]", "neither a package nor a list"),
        ("e.yml", "name: x\na: [", "line 2: this isn't valid YAML"),
        ("e.yml", "a: " + "[" * 5000, "isn't valid YAML"),
        ("poetry.lock", "[[package]]\nname='x'\nversion='1'\nsource={type='git'}", "'x' isn't a package from an index"),
        ("pylock.toml", "[[packages]]\nname='x'\nversion='1'\nvcs={}", "'x' isn't a package from an index"),
        ("poetry.lock", "a = 1", "isn't the lock file of a project"),
        ("poetry.lock", "a = ", "isn't valid TOML"),
        ("uv.lock", "a = ", "can't be read by uv"),
        ("pyproject.toml", "", "has no lock file"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, text: str, message: str):
    with pytest.raises(UsageError, match=message):
        read(written(tmp_path, name, text))


def test_a_tensorflow_without_an_exact_version_is_that_of_other_environments(tmp_path: Path):
    file = read(written(tmp_path, "r.txt", "tensorflow>=2.15\nx==1"))
    assert (file.tensorflow, file.list_requirements("")) == ("", ["x==1"])
    assert "line 1: 'tensorflow>=2.15' has no exact version" in file.unpinned
    assert read(written(tmp_path, "e.yml", "dependencies: [tensorflow=2.15]")).unpinned


def test_a_file_has_the_packages_of_the_files_that_it_includes(tmp_path: Path):
    written(tmp_path, "base.txt", "x==1\n--requirement=more.txt")
    written(tmp_path, "more.txt", "y==2")
    file = read(written(tmp_path, "r.txt", "-r base.txt\ntensorflow==2.15.0\n-r more.txt"))
    assert (file.tensorflow, file.list_requirements("")) == ("tensorflow==2.15.0", ["x==1", "y==2"])


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="No such file"):
        read(tmp_path / "requirements.txt")
    (tmp_path / "r.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="UTF-8"):
        read(tmp_path / "r.txt")


def test_a_file_is_known_by_its_name():
    assert all(map(is_package_file, ["env/requirements.txt", "environment.yml", "pyproject.toml", *LOCKS]))
    assert not is_package_file("tf2.15")
    assert not is_package_file("tensorflow==2.15.0")
