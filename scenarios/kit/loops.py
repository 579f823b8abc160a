"""Records which of Keras's training loops runs a step, in an untimed pass, from TensorFlow 1.14 to Keras 3.

Each release has several loops, and selects one by mode, inputs and method. The selected loop explains the time of a
step better than anything else (bench/training-loops.md). The recorder replaces functions in their modules: the
release looks them up there at each call. Afterwards, the recorder restores the functions.
"""

import functools
import sys

# Suffixes of module names. From 2.2 on, the loops of 1.x are in separate modules, for models built in graph mode.
VERSIONS = ("", "_v1")
# Modules of Keras's engine, and the recorded functions in them. Functions that only build and store a function are left
# out: every release calls them at each step.
FUNCTIONS = {
    "training_arrays": ("fit_loop",),
    "training_generator": ("fit_generator",),
    "training_distributed": ("fit_distributed",),
    "training_eager": ("train_on_batch",),
    "training_v2_utils": ("train_on_batch",),
}
# Methods of a model: the first returns the loop. From 2.2 on, the second method makes the whole loop.
SELECT, MAKE = "_select_training_loop", "make_train_function"


def training_loops(make):
    """Run two steps with a new model, and return two lines: the functions that the first and the second step called.

    make: returns an untrained model, and a function that runs one step with it. A trained model would show nothing,
    because models store the functions that they have built. Errors of both are raised.

    A line names functions and classes by module and name, each once, in the order of the calls. The last entry is the
    kind of the stored training function.
    """
    model, step = make()
    with Recorder(type(model)) as recorder:
        lines = []
        for _ in range(2):
            step()
            names = recorder.take()
            train_function = getattr(model, "train_function", None)
            if train_function is not None:
                names.append(kind(train_function))
            lines.append(", ".join(names) or "nothing that is known")
    return tuple(lines)


class Recorder:
    """Records which functions of Keras's engine its `with` block calls, in the copy of Keras of the model's class."""

    def __init__(self, model_class):
        self._class = model_class
        self._reached = []
        self._undo = []

    def take(self):
        """Return the functions that were called since the last `take`, in the order of the calls, each once."""
        names, self._reached = self._reached, []
        return names

    def __enter__(self):
        for package in engines(self._class):
            for name, functions in FUNCTIONS.items():
                for version in VERSIONS:
                    module = sys.modules.get("{}.{}{}".format(package, name, version))
                    for function in functions:
                        self._wrap(module, function, self._record_calls)
        for base in self._class.__mro__:
            self._wrap(base, SELECT, self._record_selection)
            self._wrap(base, MAKE, self._record_calls)
        return self

    def __exit__(self, *_):
        for place, name, original in reversed(self._undo):
            setattr(place, name, original)

    def _wrap(self, place, name, wrapper):
        """Wrap the function `name` of a module or class (`place`), if that module or class defines it itself."""
        original = vars(place).get(name) if place is not None else None
        if callable(original):
            self._undo.append((place, name, original))
            setattr(place, name, wrapper(original, label(place, name)))

    def _record_call(self, name):
        if name not in self._reached:
            self._reached.append(name)

    def _record_calls(self, function, name):
        # `wraps` also makes AutoGraph treat the wrapper as a function of TensorFlow, which it doesn't convert
        @functools.wraps(function)
        def noted(*args, **kwargs):
            self._record_call(name)  # before the call, so that outer functions come before inner ones
            return function(*args, **kwargs)

        return noted

    def _record_selection(self, function, name):
        @functools.wraps(function)
        def selected(*args, **kwargs):
            loop = function(*args, **kwargs)
            self._record_call(label(type(loop)))
            return loop

        return selected


def engines(model_class):
    """Return the packages that define a model's classes, because a process can have several copies of Keras.

    From 2.6 on, for example, `tensorflow.python.keras` is also loaded, but isn't used.
    """
    packages = []
    for base in model_class.__mro__:
        package = base.__module__.rpartition(".")[0]
        if "train_on_batch" in vars(base) and package not in packages:
            packages.append(package)
    return packages


def kind(function):
    """Return the kind of a training function: its class or, for a plain function, the class of the wrapped object."""
    if not hasattr(function, "__code__"):
        return label(type(function))
    for cell in function.__closure__ or ():
        try:
            wrapped = cell.cell_contents
        except ValueError:  # the cell is still empty
            continue
        if hasattr(wrapped, "get_concrete_function"):
            return "a function around " + label(type(wrapped))
    return "a plain function"


def label(place, name=None):
    """Return module and name without packages: `training_arrays.fit_loop`, `training_v2.Loop`, `backend.Function`."""
    if isinstance(place, type):
        parts = [place.__module__.rpartition(".")[2], place.__name__]
    else:
        parts = [place.__name__.rpartition(".")[2]]
    return ".".join(parts if name is None else parts + [name])
