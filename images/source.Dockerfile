# The image of an environment with a package from a source: its base's image, and one wheel over it.
# Built by docker-bake.hcl with BASE, WHEEL and REPLACED, the packages that the wheel takes the place of.
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
ARG WHEEL
ARG REPLACED
RUN --network=none \
    --mount=type=bind,from=uv,source=/uv/bin/uv,target=/usr/local/bin/uv \
    --mount=type=bind,source=overlay.sh,target=/tmp/overlay.sh \
    --mount=type=bind,from=wheel,target=/wheel \
    sh /tmp/overlay.sh /opt/environment "/wheel/${WHEEL}" ${REPLACED}
USER harness
