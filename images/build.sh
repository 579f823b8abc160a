#!/bin/sh
# Builds a wheel from a source, with what is installed in a virtual environment: the one way, in containers and locally.
#
#   build.sh ENVIRONMENT SOURCE FOLDER VERSION INSTANT
#
# VERSION is for packages that take it from git, whose history isn't there; INSTANT is the time of the wheel's files.
set -eu
environment=$1 source=$2 folder=$3
export SETUPTOOLS_SCM_PRETEND_VERSION="$4" SOURCE_DATE_EPOCH="$5"
export UV_NO_CONFIG=1 UV_NO_CACHE=1 PYTHONHASHSEED=0 PATH="$environment/bin:$PATH"
uv build --wheel --offline --no-build-isolation --no-create-gitignore --python "$environment/bin/python" \
  --out-dir "$folder" "$source"
