"""Settings: options that any scenario can run with, without special code.

The methods are called in this order, which tests/scenarios/test_settings.py checks:

- `prepare`, before TensorFlow is imported, sets environment variables and options of the C library.
- `apply`, before the first device is used, calls functions of TensorFlow and Keras. They refuse some settings later,
  such as the number of threads.
- `observe`, after the work of every launch, reads the active settings from TensorFlow and Keras. If an active setting
  differs from the requested one, the cell isn't available.
"""

import os
import re
import shutil
import sys

from . import driver
from .outcome import NotAvailable
from .releases import version

AS_IT_COMES = "default"

# As in harness/model/settings.py.
VALUES = {
    "tf32": ("on", "off", AS_IT_COMES),
    "xla": ("on", "off", AS_IT_COMES),
    "precision": ("mixed_float16", "float32", AS_IT_COMES),
    "deterministic": ("on", "off", AS_IT_COMES),
    "malloc": ("keep", AS_IT_COMES),
    "cuda_loading": ("lazy", "eager", AS_IT_COMES),
    "cudnn_autotune": ("on", "off", AS_IT_COMES),
}

# Makes XLA compile parts of each graph; on a CPU, this needs two flags. -1: never, even if a session requests it.
XLA_ON = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"
XLA_OFF = "--tf_xla_auto_jit=-1"
# Makes TensorFlow write each graph that XLA may compile to the folder in this variable.
XLA_SHOWN, XLA_FOLDER = "--tf_xla_clustering_debug", "TF_DUMP_GRAPH_PREFIX"
# The attribute of a graph's node that XLA compiles.
CLUSTER = b"_XlaCluster"
AUTO_JIT = re.compile(r"--tf_xla_auto_jit=(\S+)")
# The observed value if XLA compiles everything that it can. Otherwise the names of functions are observed.
CLUSTERS = "what it can"

TF32_OVERRIDE = "NVIDIA_TF32_OVERRIDE"
DETERMINISTIC, CUDNN_DETERMINISTIC = "TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC"
# Deterministic operations refuse to generate random numbers without a seed.
SEED = 1

# Options that make glibc's malloc keep freed memory (malloc.h, mallopt(3)). M_TRIM_THRESHOLD is the free memory at the
# end of the heap that it keeps; M_MMAP_THRESHOLD is the size from which a block gets separate pages. Both are at their
# maximum.
KEEPING = ((-1, 2**31 - 1), (-3, 32 * 1024**2))

# GPUs from this compute capability on have TF32.
AMPERE = (8, 0)
# When CUDA loads GPU code: EAGER, LAZY. From CUDA 12.2 on, the default on Linux is LAZY.
LOADING = "CUDA_MODULE_LOADING"
# Whether TensorFlow times cuDNN's algorithms at the first use of a convolution. By default, it does.
AUTOTUNE = "TF_CUDNN_USE_AUTOTUNE"
# NVIDIA's images have this variable. Their TensorFlow 1.15 has Google's version number.
NVIDIAS = "NVIDIA_TENSORFLOW_VERSION"
# The parts of a traced function's name that TensorFlow adds before and after the name of the Python function.
TRACED = re.compile(r"^__(?:inference|forward|backward)_|(?:_\d+)+$")

# The module of the optimizers in Keras 2.9 to 2.15, which compile their step with XLA on a GPU.
OPTIMIZERS = (
    "keras.src.optimizers.optimizer",
    "keras.optimizers.optimizer",
    "keras.optimizers.optimizer_experimental.optimizer",
    "tf_keras.src.optimizers.optimizer",
)
# The place in Keras 3 that decides whether XLA compiles a model's steps.
TRAINER = "keras.src.trainers.trainer"


class Settings:
    """The requested settings by name, without those that are left at their default."""

    def __init__(self, asked=None):
        self._asked = {name: value for name, value in (asked or {}).items() if value != AS_IT_COMES}
        self._folder = None
        self._keeps = False

    def prepare(self, thorough):
        """Set environment variables, before TensorFlow is imported. thorough: record whether XLA compiles anything."""
        xla = self._asked.get("xla")
        if xla == "on" and thorough:
            import tempfile  # here, because the imports that every launch needs are timed

            self._folder = os.environ[XLA_FOLDER] = tempfile.mkdtemp()
        flags = {"on": XLA_ON, "off": XLA_OFF}.get(xla)
        if flags:
            # if a flag occurs twice, the last one counts
            flag_list = [os.environ.get("TF_XLA_FLAGS"), flags, XLA_SHOWN if self._folder else None]
            os.environ["TF_XLA_FLAGS"] = " ".join(filter(None, flag_list))
        if self._asked.get("tf32") == "off":
            os.environ[TF32_OVERRIDE] = "0"
        elif self._asked.get("tf32") == "on":
            os.environ.pop(TF32_OVERRIDE, None)
        if "deterministic" in self._asked:
            flag_value = "1" if self._asked["deterministic"] == "on" else "0"
            os.environ[DETERMINISTIC] = os.environ[CUDNN_DETERMINISTIC] = flag_value
        if "cuda_loading" in self._asked:
            os.environ[LOADING] = self._asked["cuda_loading"].upper()
        if "cudnn_autotune" in self._asked:
            os.environ[AUTOTUNE] = "1" if self._asked["cudnn_autotune"] == "on" else "0"
        if self._asked.get("malloc") == "keep":
            self._keeps = keep_freed_memory()

    def apply(self, tf):
        """Apply settings by calls to TensorFlow and Keras, before the first device. Raises NotAvailable."""
        if not self._asked or tf is None:
            return
        if "tf32" in self._asked and hasattr(tf.config.experimental, "enable_tensor_float_32_execution"):
            tf.config.experimental.enable_tensor_float_32_execution(self._asked["tf32"] == "on")
        if "deterministic" in self._asked:
            tf.compat.v1.set_random_seed(SEED)
        if self._asked.get("xla") == "off":
            have_keras_compile_nothing()
        if "precision" in self._asked:
            set_policy(tf, self._asked["precision"])

    def observe(self, tf, device_name):
        """Return the active settings by name. Raises NotAvailable, with the active value, if a setting differs."""
        readers = {"xla": find_compiled, "precision": policy, "deterministic": deterministic}
        if device_name == "gpu":
            readers["tf32"] = tf32
            if "cuda_loading" in self._asked:
                readers["cuda_loading"] = lambda _: driver.loading()
            if "cudnn_autotune" in self._asked:  # TensorFlow doesn't report it; it reads the variable
                readers["cudnn_autotune"] = lambda _: "off" if os.environ.get(AUTOTUNE) == "0" else "on"
        active = {}
        for name, reader in readers.items():
            value = read_setting(reader, tf)
            if value is not None:
                active[name] = value
        if self._keeps:
            active["malloc"] = "keep"
        if "cpus" in self._asked:  # harness pins the process; this shows whether that worked
            active["cpus"] = str(len(os.sched_getaffinity(0)))
        self._check(active)
        return active

    def _check(self, active):
        for name in sorted(set(self._asked).difference(active)):
            raise NotAvailable("the effect of {}={} can't be observed here".format(name, self._asked[name]))
        xla = active.get("xla")
        if self._asked.get("xla") == "off" and xla:
            raise NotAvailable("XLA still compiles {}, because the work itself requests it".format(", ".join(xla)))
        if self._folder and xla == [CLUSTERS]:
            uses_clusters = has_clusters(self._folder)
            shutil.rmtree(self._folder, ignore_errors=True)
            if not uses_clusters:
                raise NotAvailable("XLA finds nothing to compile in this work: it compiles graphs and functions")
        for name in sorted(set(self._asked) - {"xla"}):
            requested, is_found = self._asked[name], active[name]
            if is_found != requested and not (requested == "on" and is_found == "of cuDNN"):
                raise NotAvailable("{}={} was requested, but the active value is {}".format(name, requested, is_found))


def keep_freed_memory():
    """Make malloc keep freed memory, to avoid page faults on reuse. Return True if the setting took effect.

    It applies to blocks below 32 MiB, which is glibc's maximum. Other C libraries have no such setting.
    """
    import ctypes  # here, because the imports that every launch needs are timed

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(option, value) == 1 for option, value in KEEPING)


def read_setting(read, tf):
    """Return `read(tf)`, or None if it raises an error, so that no launch fails because of it."""
    try:
        return read(tf)
    except Exception:  # noqa: BLE001, each release has its own
        return None


def find_compiled(tf):
    """Return what XLA compiles: CLUSTERS (parts of every graph), and the names of functions that request XLA.

    Python functions request XLA with jit_compile.

    The functions are known from 2.5 on. In earlier releases, TensorFlow and Keras never request it themselves.
    """
    return ([CLUSTERS] if auto_jit(tf) else []) + sorted(
        {TRACED.sub("", function.signature.name) for function in functions(tf) if function.attr["_XlaMustCompile"].b}
    )


def auto_jit(tf):
    """Return whether XLA compiles parts of every graph, by the process's variables or TensorFlow's setting."""
    flags = AUTO_JIT.findall(os.environ.get("TF_XLA_FLAGS", ""))
    if flags and flags[-1] != "0":
        return flags[-1] != "-1"
    return bool(tf.executing_eagerly() and tf.config.optimizer.get_jit())


def functions(tf):
    """Return the definitions (FunctionDef) of traced functions that still exist."""
    if not tf.executing_eagerly():
        return tf.compat.v1.get_default_graph().as_graph_def().library.function
    from tensorflow.python.eager import context

    eager_context = context.context()
    if not hasattr(eager_context, "list_function_names"):
        return []
    return [eager_context.get_function_def(name) for name in eager_context.list_function_names()]


def has_clusters(folder):
    """Return whether XLA compiles a part of one of the graphs that TensorFlow wrote to a folder."""
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            if CLUSTER in file.read():
                return True
    return False


def have_keras_compile_nothing():
    """Make the imported Keras use XLA only if the scenario requests it explicitly."""
    disabled = property(lambda _: False, lambda _, value: None)
    for name in OPTIMIZERS:
        for member in list(vars(sys.modules.get(name)).values()) if name in sys.modules else ():
            if isinstance(member, type) and "_update_step_xla" in vars(member):
                member.jit_compile = disabled
    if TRAINER in sys.modules:
        sys.modules[TRAINER].Trainer._resolve_auto_jit_compile = lambda _: False


def set_policy(tf, name):
    """Set Keras's dtype policy to the one of this name, also after `clear_session`. Raises NotAvailable."""
    package = sys.modules.get("keras")
    if package is not None and version(getattr(package, "__version__", "3.0")) < (2, 4):
        raise NotAvailable("the package keras {} doesn't support precision policies".format(package.__version__))
    if version(tf.__version__) < (2, 1):
        return  # harness requests only float32 here
    mixed = tf.keras.mixed_precision
    setter = mixed.set_global_policy if hasattr(mixed, "set_global_policy") else mixed.experimental.set_policy
    setter(name)
    reset_state = getattr(sys.modules.get("keras.src.backend.common.global_state"), "clear_session", None)
    if reset_state is None:
        return

    # In Keras 3, `clear_session` also resets the policy.
    def clear_session(*arguments, **named):
        reset_state(*arguments, **named)
        setter(name)

    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get("clear_session") is reset_state:
            module.clear_session = clear_session


def policy(tf):
    """Return the name of Keras's dtype policy, or None if no Keras was imported."""
    if version(tf.__version__) < (2, 1):
        return "float32"
    # up to 2.5, TensorFlow contains its own Keras
    if version(tf.__version__) >= (2, 6) and "keras" not in sys.modules:
        return None
    module = tf.keras.mixed_precision
    getter = module.global_policy if hasattr(module, "global_policy") else module.experimental.global_policy
    return getter().name


def deterministic(tf):
    """Return whether operations are deterministic: on, off, or "of cuDNN" if only cuDNN's algorithms are."""
    from tensorflow.python.framework import config

    if hasattr(config, "is_op_determinism_enabled"):
        return "on" if config.is_op_determinism_enabled() else "off"
    variables = {
        name for name in (DETERMINISTIC, CUDNN_DETERMINISTIC) if os.environ.get(name, "").lower() in ("1", "true")
    }
    # up to 2.0, only NVIDIA's builds know the first of these variables
    if DETERMINISTIC in variables and (version(tf.__version__) >= (2, 1) or NVIDIAS in os.environ):
        return "on"
    return "of cuDNN" if variables else "off"


def tf32(tf):
    """Return whether the first GPU multiplies float32 numbers in TF32."""
    if os.environ.get(TF32_OVERRIDE) == "0":
        return "off"
    config = tf.config.experimental
    # before 2.4, only NVIDIA's builds have TF32, and not all of these can switch it off
    enabled = getattr(config, "tensor_float_32_execution_enabled", lambda: NVIDIAS in os.environ)
    # the driver's numbers, because TensorFlow 1.15 has no function for them
    capability = next((version(gpu["capability"]) for gpu in driver.gpus()), AMPERE)
    return "on" if enabled() and capability >= AMPERE else "off"
