# The catalog of environments. A release is one line here, and its locks in images/locks/, which
# `harness images lock NAME` writes. `docker buildx bake` builds the images without harness. harness reads the same
# list.
#
#   name        what -e takes, and the image's name
#   tensorflow  the exact version
#   keras       the exact version of the separate package `keras`; left out if TensorFlow contains Keras
#   python      the interpreter, X.Y
#   released    the day on which the wheel was published
#   as_of       the locks contain the packages that users had at this instant
#
# For GPUs (left out if there is no GPU image):
#
#   cuda, cudnn the versions that the official build was made with; those in the image are at least as new
#   cuda_as_of  the instant for NVIDIA's packages, if they are newer than the release
#   cuda_image  the image that CUDA is copied from, if it has no packages; any patch release of the same X.Y has the same
#   gpu_image   an image that contains TensorFlow; such an environment has no CPU image
#
# The GPU code in each wheel is in images/gpu-code.json, which `python -m bench.gpu_oracle NAME` writes.

variable "ENVIRONMENTS" {
  default = [
    { name = "tf1.14", tensorflow = "1.14.0", keras = "2.2.5", python = "3.7", released = "2019-06-19", as_of = "2019-09-01T00:00:00Z", cuda = "10.0", cudnn = "7.4", cuda_image = "tensorflow/tensorflow:1.14.0-gpu-py3" },
    { name = "tf1.15", tensorflow = "1.15.5", keras = "2.2.5", python = "3.7", released = "2021-01-06", as_of = "2021-02-01T00:00:00Z", cuda = "10.0", cudnn = "7.6", cuda_image = "tensorflow/tensorflow:1.15.0-gpu-py3" },
    { name = "tf1.15-ngc", tensorflow = "1.15.5", keras = "2.2.5", python = "3.8", released = "2023-03", as_of = "2023-04-15T00:00:00Z", cuda = "12.1", cudnn = "8.8", gpu_image = "nvcr.io/nvidia/tensorflow:23.03-tf1-py3" },
    { name = "tf2.0", tensorflow = "2.0.0", keras = "2.3.1", python = "3.7", released = "2019-09-30", as_of = "2019-11-01T00:00:00Z", cuda = "10.0", cudnn = "7.6", cuda_image = "tensorflow/tensorflow:2.0.0-gpu-py3" },
    { name = "tf2.1", tensorflow = "2.1.4", keras = "2.3.1", python = "3.7", released = "2021-06-15", as_of = "2021-06-20T00:00:00Z", cuda = "10.1", cudnn = "7.6", cuda_image = "tensorflow/tensorflow:2.1.0-gpu-py3" },
    { name = "tf2.2", tensorflow = "2.2.3", keras = "2.3.1", python = "3.8", released = "2021-06-15", as_of = "2021-06-20T00:00:00Z", cuda = "10.1", cudnn = "7.6", cuda_image = "tensorflow/tensorflow:2.2.0-gpu" },
    { name = "tf2.2-py3.7", tensorflow = "2.2.3", keras = "2.3.1", python = "3.7", released = "2021-06-15", as_of = "2021-06-20T00:00:00Z", cuda = "10.1", cudnn = "7.6", cuda_image = "tensorflow/tensorflow:2.2.0-gpu" },
    { name = "tf2.3", tensorflow = "2.3.4", python = "3.8", released = "2021-08-10", as_of = "2021-09-01T00:00:00Z", cuda = "10.1", cudnn = "7.6", cuda_image = "tensorflow/tensorflow:2.3.0-gpu" },
    { name = "tf2.4", tensorflow = "2.4.4", python = "3.8", released = "2021-11-01", as_of = "2021-11-15T00:00:00Z", cuda = "11.0", cudnn = "8.0", cuda_image = "tensorflow/tensorflow:2.4.0-gpu" },
    { name = "tf2.5", tensorflow = "2.5.3", python = "3.8", released = "2022-02-02", as_of = "2022-02-15T00:00:00Z", cuda = "11.2", cudnn = "8.1", cuda_as_of = "2022-12-01T00:00:00Z" },
    { name = "tf2.6", tensorflow = "2.6.5", python = "3.8", released = "2022-05-23", as_of = "2022-06-05T00:00:00Z", cuda = "11.2", cudnn = "8.1", cuda_as_of = "2022-12-01T00:00:00Z" },
    { name = "tf2.7", tensorflow = "2.7.4", python = "3.8", released = "2022-09-02", as_of = "2022-09-15T00:00:00Z", cuda = "11.2", cudnn = "8.1", cuda_as_of = "2022-12-01T00:00:00Z" },
    { name = "tf2.8", tensorflow = "2.8.4", python = "3.8", released = "2022-11-16", as_of = "2022-12-01T00:00:00Z", cuda = "11.2", cudnn = "8.1" },
    { name = "tf2.9", tensorflow = "2.9.3", python = "3.8", released = "2022-11-16", as_of = "2022-12-01T00:00:00Z", cuda = "11.2", cudnn = "8.1" },
    { name = "tf2.10", tensorflow = "2.10.1", python = "3.8", released = "2022-11-16", as_of = "2022-12-01T00:00:00Z", cuda = "11.2", cudnn = "8.1" },
    { name = "tf2.11", tensorflow = "2.11.1", python = "3.8", released = "2023-03-20", as_of = "2023-04-01T00:00:00Z", cuda = "11.2", cudnn = "8.1" },
    { name = "tf2.12", tensorflow = "2.12.1", python = "3.8", released = "2023-07-05", as_of = "2023-07-20T00:00:00Z", cuda = "11.8", cudnn = "8.6" },
    { name = "tf2.13", tensorflow = "2.13.1", python = "3.8", released = "2023-09-26", as_of = "2023-10-15T00:00:00Z", cuda = "11.8", cudnn = "8.6" },
    { name = "tf2.13-py3.11", tensorflow = "2.13.1", python = "3.11", released = "2023-09-26", as_of = "2023-10-15T00:00:00Z", cuda = "11.8", cudnn = "8.6" },
    { name = "tf2.14", tensorflow = "2.14.1", python = "3.11", released = "2023-11-14", as_of = "2023-12-20T00:00:00Z", cuda = "11.8", cudnn = "8.7" },
    { name = "tf2.15", tensorflow = "2.15.1", python = "3.11", released = "2024-03-08", as_of = "2024-03-20T00:00:00Z", cuda = "12.2", cudnn = "8.9" },
    { name = "tf2.16", tensorflow = "2.16.2", python = "3.11", released = "2024-06-28", as_of = "2024-07-10T00:00:00Z", cuda = "12.3", cudnn = "8.9" },
    { name = "tf2.17", tensorflow = "2.17.1", python = "3.11", released = "2024-10-24", as_of = "2024-11-10T00:00:00Z", cuda = "12.3", cudnn = "8.9" },
    { name = "tf2.17-ngc", tensorflow = "2.17.0", keras = "3.6.0", python = "3.12", released = "2025-02", as_of = "2025-03-15T00:00:00Z", cuda = "12.8", cudnn = "9.7", gpu_image = "nvcr.io/nvidia/tensorflow:25.02-tf2-py3" },
    { name = "tf2.18", tensorflow = "2.18.1", python = "3.11", released = "2025-03-12", as_of = "2025-03-25T00:00:00Z", cuda = "12.5", cudnn = "9.3" },
    { name = "tf2.19", tensorflow = "2.19.1", python = "3.11", released = "2025-08-13", as_of = "2025-08-25T00:00:00Z", cuda = "12.5", cudnn = "9.3" },
    { name = "tf2.20", tensorflow = "2.20.0", python = "3.11", released = "2025-08-13", as_of = "2025-09-01T00:00:00Z", cuda = "12.5", cudnn = "9.3" },
    { name = "tf2.21", tensorflow = "2.21.0", python = "3.11", released = "2026-03-06", as_of = "2026-04-15T00:00:00Z", cuda = "12.5", cudnn = "9.3" },
    # a release candidate, with the stable Keras of its day in place of the nightly one that it requires
    { name = "tf2.22", tensorflow = "2.22.0rc0", keras = "3.15.1", python = "3.11", released = "2026-09-22", as_of = "2026-10-15T00:00:00Z" },
  ]
}

# Where images are pushed to and pulled from, with a slash at its end; empty: this engine alone.
variable "REGISTRY" {
  default = ""
}

# The architecture of the images: empty for x86-64, or arm64. TensorFlow 2.7 and later have wheels for arm64. Its images
# have names of their own, and so have their bases, so that one engine can have both.
variable "ARCHITECTURE" {
  default = ""
}

variable "SUFFIX" {
  default = ARCHITECTURE == "" ? "" : "-${ARCHITECTURE}"
}

group "default" {
  targets = ["cpu"]
}

# What an image says of its environment; the harness adds the hashes of what it was made from.
function "labels" {
  params = [env, device]
  result = {
    "harness.environment" = env.name
    "harness.device"      = device
    "harness.tensorflow"  = env.tensorflow
    "harness.keras"       = try(env.keras, "")
    "harness.python"      = env.python
    "harness.as_of"       = env.as_of
  }
}

target "_image" {
  context  = "images"
  platforms = ARCHITECTURE == "" ? [] : ["linux/${ARCHITECTURE}"]
  contexts = merge({ locks = "images/locks" }, ARCHITECTURE == "" ? {} : {
    for python in ["3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"] :
    "python:${python}-slim-bookworm" => "docker-image://${ARCHITECTURE}v8/python:${python}-slim-bookworm"
  })
}

target "cpu" {
  inherits   = ["_image"]
  name       = "cpu-${replace(env.name, ".", "-")}"
  matrix     = { env = [for env in ENVIRONMENTS : env if try(env.gpu_image, "") == ""] }
  dockerfile = "cpu.Dockerfile"
  args = {
    PYTHON = env.python
    LOCK   = "${env.name}-cpu${SUFFIX}.txt"
  }
  tags   = ["${REGISTRY}harness/${env.name}:cpu${SUFFIX}"]
  labels = labels(env, "cpu")
}

# One target for each environment that has a GPU; `docker buildx bake gpu` builds them all.
target "gpu" {
  inherits   = ["_image"]
  name       = "gpu-${replace(env.name, ".", "-")}"
  matrix     = { env = [for env in ENVIRONMENTS : env if try(env.cuda, "") != ""] }
  dockerfile = try(env.gpu_image, "") == "" ? "gpu.Dockerfile" : "ngc.Dockerfile"
  args = {
    PYTHON     = env.python
    LOCK       = "${env.name}-gpu.txt"
    CUDA       = try(env.cuda_image, "") == "" ? "packages" : "image"
    CUDA_IMAGE = try(env.cuda_image, "scratch")
    GPU_IMAGE  = try(env.gpu_image, "scratch")
  }
  tags   = ["${REGISTRY}harness/${env.name}:gpu"]
  labels = merge(labels(env, "gpu"), { "harness.cuda" = env.cuda, "harness.cudnn" = env.cudnn })
}

# Environments that are not in the list: what sets one apart (args, tags, labels, where its lock lies) is given with --set.
target "cpu-any" {
  inherits   = ["_image"]
  dockerfile = "cpu.Dockerfile"
}

target "gpu-any" {
  inherits   = ["_image"]
  dockerfile = "gpu.Dockerfile"
}

# An environment with a package from a source, over its base's image.
target "source-any" {
  inherits   = ["_image"]
  dockerfile = "source.Dockerfile"
}

# The wheel of a source, as a file.
target "wheel" {
  inherits   = ["_image"]
  dockerfile = "wheel.Dockerfile"
}
