# A wheel from a source. What the build needs is installed first, from a lock with hashes, and without its bytecode,
# because compiling it would start these packages. The build itself runs a stranger's code: as another user, and without
# a network. The source names the packages, so their cache isn't shared with other images.
# Built by docker-bake.hcl with PYTHON, VERSION and SOURCE_DATE_EPOCH.
ARG PYTHON

# uv, as in cpu.Dockerfile
FROM python:3.11-slim-bookworm AS uv
COPY uv.txt /uv.txt
RUN python3 -m pip install --no-cache-dir --require-hashes --target /uv --requirement /uv.txt

FROM python:${PYTHON}-slim-bookworm AS build
RUN useradd --create-home --uid 1000 harness && install -d -o harness -g harness /source /wheel
RUN --mount=type=bind,from=uv,source=/uv/bin/uv,target=/usr/local/bin/uv \
    --mount=type=bind,source=install.sh,target=/tmp/install.sh \
    --mount=type=bind,from=locks,source=build.txt,target=/tmp/lock.txt \
    --mount=type=cache,id=harness-uv-build,target=/root/.cache/uv \
    COMPILE= sh /tmp/install.sh /usr/local/bin/python3 /tmp/lock.txt /opt/build
# a folder in the context, because a .dockerignore at the context's top leaves files out
COPY --from=source --chown=harness:harness files /source
USER harness
ARG VERSION
ARG SOURCE_DATE_EPOCH
RUN --network=none \
    --mount=type=bind,from=uv,source=/uv/bin/uv,target=/usr/local/bin/uv \
    --mount=type=bind,source=build.sh,target=/tmp/build.sh \
    sh /tmp/build.sh /opt/build /source /wheel "${VERSION}" "${SOURCE_DATE_EPOCH}"
# the source's code has ended, and one file leaves the build: it may be written to a folder in memory
USER root
RUN --network=none mkdir /one; set -- /wheel/*.whl; \
    test $# = 1 -a -f "$1" -a ! -L "$1" && test "$(stat -c %s "$1")" -le $((512 * 1024 * 1024)) && mv "$1" /one || \
    { echo "The build must leave one wheel of at most 512 MiB. It left:"; ls -Ash /wheel; exit 1; }

FROM scratch
COPY --from=build /one /
