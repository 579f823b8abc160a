# The catalogue of environments. A release is one line here and one lock in images/locks/
# (`harness images lock NAME` writes it). `docker buildx bake` builds every image without the
# harness; the harness reads the same list.
#
#   name        what -e takes, and the image's name
#   tensorflow  the release, exactly
#   keras       the separate package `keras`, exactly; left out where TensorFlow brings its own
#   python      the interpreter, X.Y
#   as_of       the instant the lock is resolved at: the packages that users had then

variable "ENVIRONMENTS" {
  default = [
    { name = "tf1.14", tensorflow = "1.14.0", keras = "2.2.5", python = "3.7", as_of = "2019-09-01T00:00:00Z" },
    { name = "tf2.0", tensorflow = "2.0.0", keras = "2.3.1", python = "3.7", as_of = "2019-11-01T00:00:00Z" },
    { name = "tf2.1", tensorflow = "2.1.4", keras = "2.3.1", python = "3.7", as_of = "2021-06-20T00:00:00Z" },
    { name = "tf2.15", tensorflow = "2.15.1", python = "3.11", as_of = "2024-03-20T00:00:00Z" },
    { name = "tf2.16", tensorflow = "2.16.2", python = "3.11", as_of = "2024-07-10T00:00:00Z" },
    { name = "tf2.21", tensorflow = "2.21.0", python = "3.11", as_of = "2026-04-15T00:00:00Z" },
  ]
}

# Where images are pushed to and pulled from, with a slash at its end; empty: this engine alone.
variable "REGISTRY" {
  default = ""
}

group "default" {
  targets = ["cpu"]
}

target "cpu" {
  name       = "cpu-${replace(env.name, ".", "-")}"
  matrix     = { env = ENVIRONMENTS }
  context    = "images"
  dockerfile = "cpu.Dockerfile"
  args = {
    PYTHON = env.python
    LOCK   = "locks/${env.name}-cpu.txt"
  }
  tags = ["${REGISTRY}harness/${env.name}:cpu"]
  labels = {
    "harness.environment" = env.name
    "harness.device"      = "cpu"
    "harness.tensorflow"  = env.tensorflow
    "harness.keras"       = try(env.keras, "")
    "harness.python"      = env.python
    "harness.as_of"       = env.as_of
  }
}
