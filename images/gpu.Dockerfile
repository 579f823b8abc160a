# The GPU image of one environment: a Python base, CUDA, and what the lock names. Built by docker-bake.hcl.
#
#   PYTHON, LOCK   as in cpu.Dockerfile
#   CUDA           `packages`: the lock names NVIDIA's; `image`: copied from CUDA_IMAGE, TensorFlow's own of that release
#
# The builder makes only the stages that the last one needs, so CUDA_IMAGE is not asked for where there are packages.
ARG PYTHON
ARG CUDA=packages
ARG CUDA_IMAGE=scratch

# Wheels to install from in place of the network: the named context `wheels`, where one is given, takes this stage's place.
FROM scratch AS wheels

# uv, the installer of the local backend too. It needs a newer Python than the oldest environments have.
FROM python:3.11-slim-bookworm AS uv
COPY uv.txt /uv.txt
RUN --mount=type=bind,from=wheels,target=/wheels \
    python3 -m pip install $(test -z "$(ls -A /wheels)" || echo --no-index --find-links=/wheels) \
      --no-cache-dir --require-hashes --target /uv --requirement /uv.txt

# What TensorFlow loads, out of several gigabytes. cuBLAS moved to the system's folder in 10.1 and back in 11.0.
FROM ${CUDA_IMAGE} AS cuda-image
RUN <<'EOF'
set -eu
cuda=/gathered/usr/local/cuda
mkdir -p "$cuda/lib64" "$cuda/bin" "$cuda/nvvm"
gather() {
  set -- $(ls -d /usr/local/cuda/lib64/lib$1.so.* /usr/local/cuda/extras/CUPTI/lib64/lib$1.so.* \
    /usr/lib/x86_64-linux-gnu/lib$1.so.* 2>/dev/null)
  for file; do cp -n "$(readlink -f "$file")" "$cuda/lib64/"; done
  [ $# -gt 0 ]
}
for name in cudart cublas cufft curand cusolver cusparse cudnn cupti; do
  gather "$name" || { echo "This image has no lib$name." >&2; exit 1; }
done
# parts that not every version has, and the OpenMP that cuSOLVER asks for and the base lacks
for name in cublasLt 'cudnn_*' 'nvrtc*' gomp; do gather "$name" || true; done
# each library gets the name that it is asked for by
ldconfig -n "$cuda/lib64"
# XLA's assembler and device library, where they are
if [ -e /usr/local/cuda/bin/ptxas ]; then cp /usr/local/cuda/bin/ptxas "$cuda/bin/"; fi
if [ -e /usr/local/cuda/nvvm/libdevice ]; then cp -R /usr/local/cuda/nvvm/libdevice "$cuda/nvvm/"; fi
EOF

# Nothing is gathered, into a folder: the builder (of Engine 26) takes the copy of an empty `scratch` for that of any
# other stage's root, and the next image gets the last one's CUDA.
FROM uv AS cuda-packages
RUN mkdir /gathered

FROM cuda-${CUDA} AS cuda

# NVIDIA's part of the lock
FROM uv AS nvidia
ARG LOCK
RUN --mount=type=bind,from=locks,source=${LOCK},target=/tmp/lock.txt \
    awk '/^[^ #]/ { keep = /^nvidia-/ } keep' /tmp/lock.txt >/nvidia.txt

FROM python:${PYTHON}-slim-bookworm AS environment
# /harness is where a launch's files are put, and where its artifacts are taken from; on /cache a volume is mounted, for
# the code that the driver compiles. What does not depend on the lock comes first: all environments of one Python share it.
RUN useradd --create-home --uid 1000 harness && install -d -o harness -g harness /harness /cache
# What of the driver NVIDIA's runtime brings in; which GPUs is the run's to say.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
ENV PATH=/opt/environment/bin:/usr/local/cuda/bin:$PATH
WORKDIR /harness
COPY --from=cuda /gathered /
# NVIDIA's packages are most of the image, and have a layer of their own: releases that lock the same ones share it.
RUN --mount=type=bind,from=uv,source=/uv/bin/uv,target=/usr/local/bin/uv \
    --mount=type=bind,source=install.sh,target=/tmp/install.sh \
    --mount=type=bind,from=nvidia,source=/nvidia.txt,target=/tmp/lock.txt \
    --mount=type=bind,from=wheels,target=/wheels \
    --mount=type=cache,id=harness-uv-gpu,target=/root/.cache/uv \
    sh /tmp/install.sh /usr/local/bin/python3 /tmp/lock.txt /opt/environment /wheels
# The loader's own list of folders, not LD_LIBRARY_PATH: NVIDIA's runtime writes the loader's cache anew at every start,
# from this list. /usr/local/cuda is where every TensorFlow's XLA looks for its assembler and its device library.
# The profiler of 2.5 to 2.11 asks for libcupti.so.11.2, which CUDA 11.8 does not have, and then for libcupti.so.
RUN <<'EOF'
set -eu
packages=$(echo /opt/environment/lib/python*/site-packages/nvidia)
if [ -d "$packages/cuda_nvcc" ]; then ln -s "$packages/cuda_nvcc" /usr/local/cuda; fi
for library in "$packages"/cuda_cupti/lib/libcupti.so.*; do
  if [ -e "$library" ]; then ln -s "${library##*/}" "${library%.so.*}.so"; fi
done
for folder in /usr/local/cuda/lib64 "$packages"/*/lib; do
  if [ -d "$folder" ]; then echo "$folder"; fi
done >/etc/ld.so.conf.d/harness-cuda.conf
ldconfig
EOF
ARG LOCK
# The rest of the lock, as in cpu.Dockerfile.
RUN --mount=type=bind,from=uv,source=/uv/bin/uv,target=/usr/local/bin/uv \
    --mount=type=bind,source=install.sh,target=/tmp/install.sh \
    --mount=type=bind,from=locks,source=${LOCK},target=/tmp/lock.txt \
    --mount=type=bind,from=wheels,target=/wheels \
    --mount=type=cache,id=harness-uv-gpu,target=/root/.cache/uv \
    sh /tmp/install.sh /usr/local/bin/python3 /tmp/lock.txt /opt/environment /wheels
USER harness
