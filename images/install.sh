#!/bin/sh
# Installs a lock into a virtual environment: the one way, in images and in local environments.
#
#   install.sh PYTHON LOCK FOLDER [WHEELS]
#
# WHEELS is a folder with every file that the lock names. Where there is one and it is not empty, it takes the network's
# place.
#
# Old source packages (absl-py, termcolor, wrapt, …) are built with the lock's own setuptools and wheel, which
# therefore go in first: an isolated build would fetch today's.
#
# In: COMPILE; if it is set and empty, no bytecode is compiled, and no package of the lock runs.
set -eu
python=$1 lock=$2 folder=$3 wheels=${4:-}
TMPDIR=$(mktemp -d) # uv leaves files there
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
# a requirement starts in the first column; its hashes and comments are indented
tools=$TMPDIR/tools.txt
awk '/^[^ #]/ { keep = /^(setuptools|wheel)==/ } keep' "$lock" >"$tools"
# uv keeps what it builds by the settings, and not by what it is built with: another lock's would be taken
built_with=$(cksum <"$tools" | cut -d ' ' -f 1)

export UV_LINK_MODE="${UV_LINK_MODE:-copy}" UV_NO_CONFIG=1
# what the interpreter imports here leaves no bytecode beside the base's own modules; that of the lock is compiled
# below, where sets of constants have the same order each time
export PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
uv venv --quiet --no-project --allow-existing --python "$python" "$folder"
install() {
  uv pip install --quiet --python "$folder" --require-hashes --no-deps --no-build-isolation ${COMPILE---compile-bytecode} \
    --config-setting "built_with=$built_with" "$@"
}
set --
if [ -n "$wheels" ] && [ -n "$(ls -A "$wheels")" ]; then set -- --offline --no-index --find-links "$wheels"; fi
if [ -s "$tools" ]; then install "$@" --requirement "$tools"; fi
install "$@" --requirement "$lock"
