# A wheel from a source. What the build needs is installed first, from a lock with hashes, and without its bytecode,
# because compiling it would start these packages. The build itself runs a stranger's code: as another user, and without
# a network. The source names the packages, so their cache isn't shared with other images.
# Built by docker-bake.hcl with PYTHON, VERSION and SOURCE_DATE_EPOCH.
ARG PYTHON

# Wheels to install from in place of the network: the named context `wheels`, where one is given, takes this stage's place.
FROM scratch AS wheels

# uv, as in cpu.Dockerfile
FROM python:3.11-slim-bookworm AS uv
COPY uv.txt /uv.txt
RUN --mount=type=bind,from=wheels,target=/wheels \
    python3 -m pip install $(test -z "$(ls -A /wheels)" || echo --no-index --find-links=/wheels) \
      --no-cache-dir --require-hashes --target /uv --requirement /uv.txt

FROM python:${PYTHON}-slim-bookworm AS build
RUN useradd --create-home --uid 1000 harness && install -d -o harness -g harness /source /wheel
RUN --mount=type=bind,from=uv,source=/uv/bin/uv,target=/usr/local/bin/uv \
    --mount=type=bind,source=install.sh,target=/tmp/install.sh \
    --mount=type=bind,from=locks,source=build.txt,target=/tmp/lock.txt \
    --mount=type=bind,from=wheels,target=/wheels \
    --mount=type=cache,id=harness-uv-build,target=/root/.cache/uv \
    COMPILE= sh /tmp/install.sh /usr/local/bin/python3 /tmp/lock.txt /opt/build /wheels
COPY --from=source --chown=harness:harness . /source
USER harness
ARG VERSION
ARG SOURCE_DATE_EPOCH
RUN --network=none \
    --mount=type=bind,from=uv,source=/uv/bin/uv,target=/usr/local/bin/uv \
    --mount=type=bind,source=build.sh,target=/tmp/build.sh \
    sh /tmp/build.sh /opt/build /source /wheel "${VERSION}" "${SOURCE_DATE_EPOCH}"

FROM scratch
COPY --from=build /wheel /
