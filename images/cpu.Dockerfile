# The CPU image of one environment: a Python base and what the lock names, nothing else.
# Built by docker-bake.hcl with PYTHON and LOCK. No `# syntax=` line: the builder's own front end
# knows all that is used here, and fetching another needs a registry.
ARG PYTHON

# uv, the installer of the local backend too. It needs a newer Python than the oldest environments have.
FROM python:3.11-slim-bookworm AS uv
COPY uv.txt /uv.txt
RUN python3 -m pip install --no-cache-dir --require-hashes --target /uv --requirement /uv.txt

FROM python:${PYTHON}-slim-bookworm
ARG LOCK
# The environment lies beside the base's own site-packages, not in them: what is installed is the lock alone.
# Bytecode is compiled, as pip does for users: a container has nowhere to keep it, and would compile at every import.
RUN --mount=type=bind,from=uv,source=/uv/bin/uv,target=/usr/local/bin/uv \
    --mount=type=bind,source=install.sh,target=/tmp/install.sh \
    --mount=type=bind,from=locks,source=${LOCK},target=/tmp/lock.txt \
    --mount=type=cache,id=harness-uv,target=/root/.cache/uv \
    sh /tmp/install.sh /usr/local/bin/python3 /tmp/lock.txt /opt/environment
ENV PATH=/opt/environment/bin:$PATH
# /harness is where a launch's files are put, and where its artifacts are taken from
RUN useradd --create-home --uid 1000 harness && install -d -o harness -g harness /harness
USER harness
WORKDIR /harness
