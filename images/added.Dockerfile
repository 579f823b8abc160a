# The image of an environment with added packages: its base's image, and what the lock has besides the base's lock.
# Built by docker-bake.hcl with BASE and LOCK.
ARG BASE

# Wheels to install from in place of the network: the named context `wheels`, where one is given, takes this stage's place.
FROM scratch AS wheels

# uv, as in cpu.Dockerfile
FROM python:3.11-slim-bookworm AS uv
COPY uv.txt /uv.txt
RUN --mount=type=bind,from=wheels,target=/wheels \
    python3 -m pip install $(test -z "$(ls -A /wheels)" || echo --no-index --find-links=/wheels) \
      --no-cache-dir --require-hashes --target /uv --requirement /uv.txt

FROM ${BASE} AS environment
USER root
ARG LOCK
RUN --mount=type=bind,from=uv,source=/uv/bin/uv,target=/usr/local/bin/uv \
    --mount=type=bind,source=install.sh,target=/tmp/install.sh \
    --mount=type=bind,from=locks,source=${LOCK},target=/tmp/lock.txt \
    --mount=type=bind,from=wheels,target=/wheels \
    --mount=type=cache,id=harness-uv-cpu,target=/root/.cache/uv \
    sh /tmp/install.sh /usr/local/bin/python3 /tmp/lock.txt /opt/environment /wheels
USER harness
