"""The page's style and scripts."""

import base64
import hashlib
import re

import pytest

from harness.report.html.assets import (
    FIRST,
    FLAME_STYLES,
    FLAMES,
    LAST,
    STYLES,
    PageScript,
    load_scripts,
    make_vega_script,
    read_files,
)
from harness.report.templates import FOLDER


def test_the_page_has_every_file_and_policies_name_scripts_by_their_hash():
    names = {*FIRST, *LAST, *STYLES, *FLAMES, *FLAME_STYLES}
    assert names == {path.name for path in (FOLDER / "html").iterdir() if path.suffix in {".css", ".js"}}
    digest = base64.b64encode(hashlib.sha256("say(‘é’)".encode()).digest()).decode()
    assert PageScript("say(‘é’)").source == f"'sha256-{digest}'"


@pytest.mark.slow
def test_no_script_or_style_ends_its_element_early_or_fetches_anything():
    assert all(not re.search(r"</script|<!--", script.text, re.IGNORECASE) for script in load_scripts())
    assert not re.search(r"</style|url\(|@import|@font-face", read_files(STYLES))
    vega = make_vega_script().text
    assert "vegaEmbed" in vega
    assert not re.search(r"^\s*(import|export)\s", vega, re.MULTILINE)


def test_an_end_of_the_element_in_a_string_stays_that_string(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.report.html.assets.FOLDER", tmp_path)
    (tmp_path / "html").mkdir()
    for name in (*FIRST, *LAST, *STYLES):
        (tmp_path / "html" / name).write_text("")
    (tmp_path / "html" / FIRST[0]).write_text('const end = "</SCRIPT><!-- "; const less = 1 <2;')
    assert r'"\x3c/SCRIPT>\x3c!-- "; const less = 1 <2;' in load_scripts()[0].text


@pytest.fixture
def vega(monkeypatch) -> PageScript:
    """Return a short text instead of a script that takes seconds to make."""
    script = PageScript("window.vegaEmbed = 0;")

    class Drawer:
        def scripts(self) -> str:
            return script.text

    monkeypatch.setattr("harness.report.html.assets.drawer", Drawer)
    make_vega_script.cache_clear()
    yield script
    make_vega_script.cache_clear()


def test_vega_is_kept_where_a_cache_can_be_written(tmp_path, vega):
    folder = tmp_path / "new" / "cache"
    assert make_vega_script(folder) == vega
    (path,) = folder.iterdir()
    assert path.read_text() == vega.text
    path.write_text("window.vegaEmbed = 1;")
    make_vega_script.cache_clear()
    assert make_vega_script(folder) == PageScript("window.vegaEmbed = 1;")
    path.write_bytes(b"\xff")
    make_vega_script.cache_clear()
    assert make_vega_script(folder) == vega
    assert path.read_text() == vega.text
    (tmp_path / "file").write_text("")
    assert make_vega_script(tmp_path / "file" / "cache") == vega
