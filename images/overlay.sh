#!/bin/sh
# Installs a wheel over what a lock has installed: the one way, in images and in local environments.
#
#   overlay.sh FOLDER WHEEL PACKAGE...
#
# The wheel takes the place of the packages. Nothing is fetched.
set -eu
folder=$1 wheel=$2
shift 2
export UV_LINK_MODE="${UV_LINK_MODE:-copy}" UV_NO_CONFIG=1
# as in install.sh
export PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
uv pip uninstall --quiet --python "$folder" "$@"
uv pip install --quiet --python "$folder" --offline --no-index --no-deps --no-cache --compile-bytecode "$wheel"
