import shutil
from pathlib import Path

import pytest

from harness.environments.lines import PYTHONS
from harness.environments.requirement_files import read
from harness.machine.uv import run_uv
from harness.model.errors import FileError, UsageError
from tests.errors import catch_text

FILES = Path(__file__).parent / "package_files"


def describe(path: Path) -> tuple[str, list[str], list[str], bool]:
    """Return TensorFlow and what else a file requires, of two releases of Python, and whether that depends on them."""
    file = read(path)
    return file.tensorflow, file.list_requirements("3.9"), file.list_requirements("3.11"), file.depends_on_python


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_files_have_the_requirements_that_apply(tmp_path, snapshot):
    assert {path.name: describe(path) for path in sorted(FILES.iterdir())} == snapshot
    # also with a project beside the lock, and on the newest Python
    shutil.copy(FILES / "pylock.toml", tmp_path)
    assert describe(write(tmp_path, "pyproject.toml", "")) == describe(FILES / "pylock.toml")
    file = read(write(tmp_path, "r.txt", f'x==1 ; python_version >= "{PYTHONS[-1]}"\ny==2'))
    assert file.depends_on_python
    assert (file.list_requirements(PYTHONS[-1]), file.list_requirements("3.11")) == (["x==1", "y==2"], ["y==2"])
    # of TensorFlow, without the extra for GPUs, which harness adds itself
    assert read(write(tmp_path, "r.txt", "tensorflow[and-cuda]==2.15")).tensorflow == "tensorflow==2.15"
    # of a lock, the groups that are installed by default, and no extras
    package = "[[packages]]\nname = '{0}'\nversion = '1'\nmarker = \"'{1}' {2} {3}\"\n"
    package += "[[packages.wheels]]\nurl = 'https://example.org/{0}-1-py3-none-any.whl'\nhashes = {{sha256 = 'ab'}}\n"
    rows = (("a", "b", "in"), ("b", "c", "in"), ("c", "b", "not in"), ("d", "a", "not in"))
    packages = "".join(package.format(*row, "dependency_groups") for row in rows) + package.format(
        "e", "b", "in", "extras"
    )
    text = f"lock-version = '1.0'\ncreated-by = 'x'\ndefault-groups = ['b']\n{packages}"
    assert read(write(tmp_path, "pylock.toml", text)).list_requirements("") == ["a==1", "d==1"]
    # and without TensorFlow
    assert describe(write(tmp_path, "r.txt", "numpy==1.26.4")) == ("", ["numpy==1.26.4"], ["numpy==1.26.4"], False)


def test_a_project_that_uv_locked(tmp_path):
    text = '[project]\nname = "mine"\nversion = "1"\nrequires-python = ">=3.11"\n'
    project = write(tmp_path, "pyproject.toml", text)
    process = run_uv(["lock", f"--directory={tmp_path}", "--offline"])
    assert process.returncode == 0, process.stderr
    assert read(project).list_requirements("") == []


REFUSED = [
    ("r.txt", "./wheel.whl"),
    ("r.txt", "x==1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n\n-e ."),
    ("r.txt", "x @ https://example.org/x.whl"),
    ("r.txt", "-r other.txt"),
    ("r.txt", "x==1\n-r r.txt"),
    ("r.txt", "--constraint=other.txt"),
    ("r.txt", "-e ."),
    ("r.txt", "tensorflow==" + "9" * 5000),
    ("r.txt", "tensorflow==2.15\ntensorflow-cpu==2.15.0\ntensorflow==2.16.1"),
    ("r.txt", f'x==1; python_version > "{"9" * 5000}"'),
    ("r.txt", 'x==1; os_name ~= "posix"'),
    ("r.txt", 'x==1; "a" in extras'),
    ("r.txt", "-r \x00"),
    ("e.yml", "dependencies: [numpy=1.26.4=py311h64a7726_0]"),
    ("e.yml", "dependencies: {numpy: 1}"),
    ("e.yml", "dependencies: [[numpy]]"),
    (
        "pylock.toml",
        "lock-version='1.0'\ncreated-by='x'\n[[packages]]\nname='x'\nversion='1'\n"
        "vcs={type='git', commit-id='1', url='https://example.org/x'}",
    ),
    ("pylock.toml", "a = 1"),
    ("poetry.lock", "a = 1"),
    ("pyproject.toml", ""),
]


def test_other_files_are_refused(tmp_path, snapshot):
    def refuse(name, text):
        folder = tmp_path / str(len([*tmp_path.iterdir()]))
        folder.mkdir()
        return catch_text(UsageError, read, write(folder, name, text)).replace(str(folder), "")

    texts = {f"{name}: {text[:50]}".replace("\n", " / "): refuse(name, text) for name, text in REFUSED}
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe")
    for name in ("bytes.txt", "missing.txt"):
        texts[name] = catch_text(FileError, read, tmp_path / name).replace(str(tmp_path), "")
    assert texts == snapshot
    # what the parsers say is theirs
    assert "line 2: " in refuse("e.yml", "name: x\na: [")
    for name, text in (("e.yml", "a: " + "[" * 1000), ("pylock.toml", "a = "), ("uv.lock", "a = ")):
        assert f"/{name}" in refuse(name, text)


def test_a_file_has_the_packages_of_those_it_includes_and_an_open_tensorflow_is_another_ones(tmp_path):
    file = read(write(tmp_path, "r.txt", "tensorflow>=2.15\nx==1"))
    assert (file.tensorflow, file.list_requirements("")) == ("", ["x==1"])
    assert "line 1: tensorflow " in file.unpinned
    assert read(write(tmp_path, "e.yml", "dependencies: [tensorflow=2.15]")).unpinned
    write(tmp_path, "base.txt", "x==1\n--requirement=more.txt")
    write(tmp_path, "more.txt", "y==2")
    file = read(write(tmp_path, "r.txt", "-r base.txt\ntensorflow==2.15.0\n-r more.txt"))
    assert (file.tensorflow, file.list_requirements("")) == ("tensorflow==2.15.0", ["x==1", "y==2"])


def test_errors_quote_no_line_of_an_included_file(tmp_path, snapshot):
    secret, folder = "s3cret:$6$x:19000::", tmp_path / "project"
    (folder / "more").mkdir(parents=True)
    write(tmp_path, "outside.txt", secret)
    write(folder, "more/inside.txt", secret)
    write(folder, "more/includes.txt", f"-r ../{secret}")
    write(folder, "more/outside.txt", f"x==1\n-r ../../{secret}")
    write(folder, "more/loose.txt", "tensorflow>=2.0.1234")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "loop.txt").symlink_to(folder / "loop.txt")
    names = (
        "../outside.txt",
        str(tmp_path / "outside.txt"),
        "link.txt",
        "loop.txt",
        *(f"more/{name}.txt" for name in ("inside", "includes", "outside")),
    )
    errors = {
        name.replace(str(tmp_path), ""): catch_text(UsageError, read, write(folder, "r.txt", f"-r {name}")).replace(
            str(folder), ""
        )
        for name in names
    } | {"the link": catch_text(UsageError, read, folder / "link.txt").replace(str(folder), "")}
    assert "s3cret" not in str(errors)
    assert errors == snapshot
    assert "2.0.1234" not in read(write(folder, "r.txt", "-r more/loose.txt")).unpinned


@pytest.mark.parametrize(
    "lines", ["root:$6$s3cret:19000::", '["s3cret"]', "password = s3cret", "a: *s3cret", "dependencies: [s3cret/]"]
)
def test_no_error_quotes_a_file_elsewhere_that_a_line_or_a_link_names(lines, tmp_path):
    write(tmp_path, "elsewhere", lines)
    folder = tmp_path / "project"
    (folder / "inside").mkdir(parents=True)
    (folder / "inside" / "link.txt").symlink_to(tmp_path / "elsewhere")
    for number, name in enumerate(("../elsewhere", str(tmp_path / "elsewhere"), "inside/link.txt", "inside/r.txt")):
        write(folder / "inside", "r.txt", "-r ../../elsewhere")
        refusal = catch_text(UsageError, read, write(folder, f"{number}.txt", f"x==1\n-r {name}"))
        assert "s3cret" not in refusal
        assert " is outside the folder of " in refusal
    for name in ("r.txt", "e.yml", "pylock.toml", "uv.lock"):
        (folder / name).symlink_to(tmp_path / "elsewhere")
        assert "s3cret" not in catch_text(UsageError, read, folder / name), name
    (folder / "uv.lock").unlink()
    write(folder, "uv.lock", "version = 1")
    (folder / "pyproject.toml").symlink_to(tmp_path / "elsewhere")
    assert "s3cret" not in catch_text(UsageError, read, folder / "uv.lock")
