"""The folder that contains the data files of harness: docker-bake.hcl, images/, scenarios/ and templates/."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_DATA = _PACKAGE / "_data"

#: Whether harness was installed from a wheel. A wheel contains the files as package data (hatch_build.py), and a
#: checkout has them in its top folder.
IS_INSTALLED = _DATA.is_dir()

FOLDER = _DATA if IS_INSTALLED else _PACKAGE.parent
