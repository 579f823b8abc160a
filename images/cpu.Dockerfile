# The CPU image of one environment: a Python base and what the lock names, nothing else.
# Built by docker-bake.hcl with PYTHON and LOCK. No `# syntax=` line: the builder's own front end
# knows all that is used here, and fetching another needs a registry.
ARG PYTHON

# Wheels to install from in place of the network: the named context `wheels`, where one is given, takes this stage's place.
FROM scratch AS wheels

# uv, the installer of the local backend too. It needs a newer Python than the oldest environments have.
FROM python:3.11-slim-bookworm AS uv
COPY uv.txt /uv.txt
RUN --mount=type=bind,from=wheels,target=/wheels \
    python3 -m pip install $(test -z "$(ls -A /wheels)" || echo --no-index --find-links=/wheels) \
      --no-cache-dir --require-hashes --target /uv --requirement /uv.txt

FROM python:${PYTHON}-slim-bookworm AS environment
# /harness is where a launch's files are put, and where its artifacts are taken from. What does not depend on the lock
# comes first: all environments of one Python share it.
RUN useradd --create-home --uid 1000 harness && install -d -o harness -g harness /harness
ENV PATH=/opt/environment/bin:$PATH
WORKDIR /harness
ARG LOCK
# The environment lies beside the base's own site-packages, not in them: what is installed is the lock alone, with its
# bytecode, as pip leaves it for users: a container has nowhere to keep it, and would compile at every import.
RUN --mount=type=bind,from=uv,source=/uv/bin/uv,target=/usr/local/bin/uv \
    --mount=type=bind,source=install.sh,target=/tmp/install.sh \
    --mount=type=bind,from=locks,source=${LOCK},target=/tmp/lock.txt \
    --mount=type=bind,from=wheels,target=/wheels \
    --mount=type=cache,id=harness-uv-cpu,target=/root/.cache/uv \
    sh /tmp/install.sh /usr/local/bin/python3 /tmp/lock.txt /opt/environment /wheels
USER harness
