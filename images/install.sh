#!/bin/sh
# Installs a lock into a new virtual environment: the one way, in images and in local environments.
#
#   install.sh PYTHON LOCK FOLDER
#
# Old source packages (absl-py, termcolor, wrapt, …) are built with the lock's own setuptools and wheel, which
# therefore go in first: an isolated build would fetch today's.
set -eu
python=$1 lock=$2 folder=$3
tools=$(mktemp)
trap 'rm -f "$tools"' EXIT
# a requirement starts in the first column; its hashes and comments are indented
awk '/^[^ #]/ { keep = /^(setuptools|wheel)==/ } keep' "$lock" >"$tools"

export UV_LINK_MODE="${UV_LINK_MODE:-copy}" UV_NO_CONFIG=1
uv venv --quiet --no-project --python "$python" "$folder"
install() {
  uv pip install --quiet --python "$folder" --require-hashes --no-deps --no-build-isolation --compile-bytecode "$@"
}
if [ -s "$tools" ]; then install --requirement "$tools"; fi
install --requirement "$lock"
