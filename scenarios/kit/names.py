"""Reads a script without running it: its names, imported modules, named files, and names of TensorFlow 1.

It imports no other module of the kit, because harness uses it too.
"""

import ast
import builtins
import re
import warnings

# The usual imports of short names. A name in PACKAGES or STANDARD is imported by itself.
ALIASES = {
    "np": "import numpy as np",
    "tf": "import tensorflow as tf",
    "tfp": "import tensorflow_probability as tfp",
    "tfa": "import tensorflow_addons as tfa",
    "tfds": "import tensorflow_datasets as tfds",
    "hub": "import tensorflow_hub as hub",
    "pd": "import pandas as pd",
    "plt": "import matplotlib.pyplot as plt",
    "keras": "from tensorflow import keras",
    "K": "from tensorflow.keras import backend as K",
    "layers": "from tensorflow.keras import layers",
    "Sequential": "from tensorflow.keras import Sequential",
    "Model": "from tensorflow.keras import Model",
    "Dense": "from tensorflow.keras.layers import Dense",
    "perf_counter": "from time import perf_counter",
    "partial": "from functools import partial",
}

# Modules whose names are nothing else in most scripts, so their imports can be added to pasted code.
STANDARD = {"gc", "math", "os", "random", "sys", "time", "timeit"}

# Well-known modules. If the name of the package differs, it follows.
MODULES = """
absl=absl-py astropy cv2=opencv-python-headless click cython datasets flax gensim google=protobuf gpflow gym h5py
horovod IPython=ipython jax joblib keras keras_cv keras_hub keras_nlp keras_tuner kerastuner=keras-tuner librosa
lightgbm line_profiler matplotlib memory_profiler mpi4py mpl_toolkits=matplotlib networkx nltk numba numpy nvtx objgraph
onnx onnxruntime openai pandas PIL=pillow plotly progressbar psutil pyarrow pydot pylab=matplotlib pympler
pynvml=nvidia-ml-py pytest requests scipy seaborn setuptools simplejson six skimage=scikit-image sklearn=scikit-learn
statsmodels sympy tables tabulate tensorboard tensorflow_addons tensorflow_datasets tensorflow_hub
tensorflow_probability tensorflow_text termcolor tf_agents tf_keras tf2onnx tfx theano threadpoolctl torch torchvision
tqdm transformers xarray xgboost yaml=pyyaml
"""
PACKAGES = {entry.partition("=")[0]: entry.rpartition("=")[2].replace("_", "-") for entry in MODULES.split()}

# Names and modules of Python 2, and their replacements.
RENAMED = {
    "xrange": "range", "raw_input": "input", "unicode": "str", "basestring": "str", "long": "int", "unichr": "chr",
    "reduce": "functools.reduce", "execfile": "exec(open(...).read())", "reload": "importlib.reload", "file": "open",
}  # fmt: skip
MOVED = {
    "cPickle": "pickle", "cStringIO": "io", "StringIO": "io", "urllib2": "urllib.request", "Queue": "queue",
    "ConfigParser": "configparser", "Tkinter": "tkinter", "__builtin__": "builtins",
}  # fmt: skip

# Names that a script doesn't define.
BUILTINS = set(dir(builtins)) | {"__file__", "__path__", "__annotations__", "display", "get_ipython", "profile"}

# Names below `tf.` that TensorFlow 2 doesn't have. `tensorflow.compat.v1` has them, except `contrib`.
V1 = re.compile(
    r"(?:Session|InteractiveSession|placeholder(?:_with_default)?|get_variable|get_variable_scope|variable_scope|"
    r"(?:global|local|tables)(?:_variables)?_initializer|initialize_all_variables|(?:global|local|trainable)_variables|"
    r"get_default_(?:graph|session)|reset_default_graph|ConfigProto|GPUOptions|GraphOptions|OptimizerOptions|"
    r"RunOptions|RunMetadata|(?:en|dis)able_(?:eager_execution|resource_variables)|set_random_seed|get_collection|"
    r"random_(?:normal|uniform|shuffle|crop)|truncated_normal|multinomial|log|log1p|rsqrt|erf|is_nan|mod|ceil|div|"
    r"trace|matrix_(?:transpose|solve|diag|band_part|determinant)|svd|cholesky|i?fft[23]?d?|real|imag|conj|count_nonzero|"
    r"sparse_to_dense|sparse_tensor_dense_matmul|string_split|decode_raw|read_file|variables_initializer|diag|"
    r"to_(?:float|int32|int64)|assign(?:_add|_sub)?|py_func|Print|"
    r"sparse_placeholder|scatter_update|matrix_inverse|parse_single_example|FixedLenFeature|AUTO_REUSE|"
    r"(?:app|contrib|flags|gfile|layers|logging|python_io|user_ops)\..*|"
    r"train\.(?:\w+Optimizer|Saver|MonitoredTrainingSession|SessionRunHook|start_queue_runners|get_global_step|"
    r"get_or_create_global_step|batch|shuffle_batch)|nn\.(?:rnn_cell\..*|dynamic_rnn|static_rnn|xw_plus_b|"
    r"bidirectional_dynamic_rnn|softmax_cross_entropy_with_logits_v2)|summary\.(?:FileWriter|merge_all|merge)|"
    r"losses\.[a-z]\w*_(?:error|loss|entropy|difference)|metrics\.(?:accuracy|mean)|image\.resize_images|"
    r"data\.make_\w+_iterator)"
)
V1_METHODS = {"make_one_shot_iterator", "make_initializable_iterator"}
# Modules that only TensorFlow 1 has.
V1_MODULES = re.compile(r"tensorflow\.(?:contrib|examples)\b")

# Functions whose first argument is a file to read.
READERS = {"open", "load", "load_model", "load_weights", "read_csv", "read_pickle", "loadtxt", "imread", "read_file"}

# The places of code that doesn't always run.
FUNCTION, CONDITION = "function", "condition"


class Names:
    """The names in a script. Each mapping has the first line of a name.

    - bound: the names that the script defines anywhere; loaded: the names that it uses
    - modules: the imported modules; files: the files to read; v1: the names of TensorFlow 1
    - certain: the names, modules and files that are used whenever the script runs, not in a function or a condition
    """

    def __init__(self):
        self.bound, self.certain = set(), set()
        self.loaded, self.modules, self.files, self.v1 = {}, {}, {}, {}

    @property
    def undefined(self):
        """The names that are used and defined nowhere, with their lines."""
        known = self.bound | BUILTINS
        return {} if "*" in self.bound else {name: line for name, line in self.loaded.items() if name not in known}

    def use(self, mapping, name, line, place):
        """Add a name that is used in a line."""
        mapping.setdefault(name, line)
        if not place:
            self.certain.add(name)

    def add(self, node, place):
        """Add what a node defines, and what it uses."""
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                self.use(self.loaded, node.id, line, place)
            else:
                self.bound.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)):
            self.bound.add(node.name)
        elif isinstance(node, ast.arg):
            self.bound.add(node.arg)
        elif isinstance(node, ast.Global):
            self.bound.update(node.names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                self.bound.add(alias.asname or top(alias.name))
                self.use(self.modules, top(alias.name), line, place)
        elif isinstance(node, ast.ImportFrom):
            self.bound.update(alias.asname or alias.name for alias in node.names)
            if node.module and not node.level:
                self.use(self.modules, top(node.module), line, place)
        elif isinstance(node, ast.Call):
            path = read_path(node)
            if path:
                self.use(self.files, path, line, place)


def parse(source):
    """Return the syntax tree of a text, or None if it isn't valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def read(source):
    """Return what a script contains; nothing if it isn't valid Python."""
    names, tree = Names(), parse(source)
    nodes = list(walk(tree)) if tree else []
    imports = [alias for node, _ in nodes if isinstance(node, ast.Import) for alias in node.names]
    tensorflow = {alias.asname or alias.name for alias in imports if alias.name == "tensorflow"}
    for node, place in nodes:
        names.add(node, place)
        name = find_v1(node, tensorflow) if place != CONDITION else ""
        if name:
            names.v1.setdefault(name, getattr(node, "lineno", 0))
    return names


def complete(source):
    """Return the usual definitions of names that a script uses and doesn't define."""
    definitions = []
    for name in read(source).undefined:
        definition = ALIASES.get(name, "import " + name if name in STANDARD else "")
        if definition:
            definitions.append(definition)
        elif RENAMED.get(name, ".").isidentifier():
            definitions.append("{} = {}".format(name, RENAMED[name]))
    return definitions


def walk(tree):
    """Yield each node, and its place: empty if it always runs, otherwise FUNCTION or CONDITION.

    The nodes are in the order of the text. This isn't recursive, because the code can be nested deeply.
    """
    stack = [(tree, "")]
    while stack:
        node, place = stack.pop()
        yield node, place
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            place = place or FUNCTION
        elif isinstance(node, (ast.If, ast.Try, ast.IfExp, ast.BoolOp)) and not is_main(node):
            place = CONDITION
        children = list(ast.iter_child_nodes(node))
        # the statement that a converted %timeit times, or that `timeit.timeit` gets as a text
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "timeit":
            children += filter(None, (parse(text(argument)) for argument in node.args[:2]))
        stack += [(child, place) for child in reversed(children)]


def is_main(node):
    """Return whether a statement is `if __name__ == "__main__":`."""
    return isinstance(node, ast.If) and "__main__" in map(text, ast.walk(node.test))


def text(node):
    """Return the value of a node that is a text; otherwise an empty text."""
    value = getattr(node, "value", getattr(node, "s", None))  # Python 3.6 and 3.7 have other nodes for texts
    return value if isinstance(value, str) else ""


def top(module):
    """Return the module at the top of a dotted name."""
    return module.partition(".")[0]


def read_path(call):
    """Return the path of the file that a call reads, if its first argument is a path; otherwise an empty text."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    path = text(call.args[0]) if call.args and name in READERS else ""
    mode = text(call.args[1]) if name == "open" and len(call.args) > 1 else "r"
    is_path = re.match(r"(?!/dev/|/proc/|/sys/)[^\n:*?]*[./][^\n:*?]*\Z", path)
    return path if is_path and mode.startswith("r") else ""


def find_v1(node, tensorflow):
    """Return the name of TensorFlow 1 that a node uses, such as `tf.Session`. `tensorflow` are the module's names."""
    if isinstance(node, ast.ImportFrom) and V1_MODULES.match(node.module or ""):
        return node.module
    if not isinstance(node, ast.Attribute):
        return ""
    if node.attr in V1_METHODS:
        return "." + node.attr
    parts, root = [node.attr], node.value
    while isinstance(root, ast.Attribute):
        parts, root = [root.attr] + parts, root.value
    dotted = ".".join(parts)
    is_v1 = isinstance(root, ast.Name) and root.id in tensorflow and V1.fullmatch(dotted)
    return "{}.{}".format(root.id, dotted) if is_v1 else ""
