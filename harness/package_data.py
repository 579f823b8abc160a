"""The location of the files of the harness package: docker-bake.hcl, images/, scenarios/ and templates/."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_DATA = _PACKAGE / "_data"

#: Whether this is an installed wheel, which has them as package data (hatch_build.py); a checkout has them at its top.
IS_INSTALLED = _DATA.is_dir()

FOLDER = _DATA if IS_INSTALLED else _PACKAGE.parent
