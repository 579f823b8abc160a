# The GPU image of an environment that comes with a TensorFlow of its own: NVIDIA's image, and what the lock adds to it.
# Built by docker-bake.hcl with GPU_IMAGE and LOCK.
ARG GPU_IMAGE

# Wheels to install from in place of the network: the named context `wheels`, where one is given, takes this stage's place.
FROM scratch AS wheels

FROM ${GPU_IMAGE} AS environment
# /harness is where a launch's files are put, and where its artifacts are taken from; on /cache a volume is mounted, for
# the code that the driver compiles. Ubuntu has a user of its own with this number from 24.04 on.
RUN taken=$(getent passwd 1000 | cut -d: -f1); if [ -n "$taken" ]; then userdel --remove "$taken"; fi \
 && useradd --create-home --uid 1000 harness && install -d -o harness -g harness /harness /cache
ARG LOCK
# The image's own pip, for its own Python; without dependencies, and without the image's constraints, which have no
# hashes: its packages stay as they are.
RUN --mount=type=bind,from=locks,source=${LOCK},target=/tmp/lock.txt \
    --mount=type=bind,from=wheels,target=/wheels \
    env -u PIP_CONSTRAINT python3 -m pip install $(test -z "$(ls -A /wheels)" || echo --no-index --find-links=/wheels) \
      --no-cache-dir --no-deps --require-hashes --requirement /tmp/lock.txt \
 && { command -v python || ln -s "$(command -v python3)" /usr/local/bin/python; }
# NVIDIA's images ask for all GPUs, and greet on stdout, which is the worker's.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility NVIDIA_VISIBLE_DEVICES=void
ENTRYPOINT []
USER harness
WORKDIR /harness
