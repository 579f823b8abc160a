"""Which of Keras's training loops a step goes through: a recorder for an untimed pass, from TensorFlow 1.14 to Keras 3.

Each release has several loops, and picks one by mode, inputs and method. The picked loop explains the time of a step
better than anything else (docs/dev/validation/loops.md). The recorder wraps the functions that a release calls as
attributes of their modules, and is removed afterwards.
"""

import functools
import sys

# From 2.2 on, the loops of 1.x are in their own modules, for models that are made in graph mode.
VERSIONS = ("", "_v1")
# Modules of a Keras's engine, and what is reached in them. What only builds and keeps a function is left out: each
# release asks for it at every step.
FUNCTIONS = {
    "training_arrays": ("fit_loop",),
    "training_generator": ("fit_generator",),
    "training_distributed": ("fit_distributed",),
    "training_eager": ("train_on_batch",),
    "training_v2_utils": ("train_on_batch",),
}
# Methods of a model. Of the first, what it returns is the loop; the second is the whole of the loop from 2.2 on.
SELECT, MAKE = "_select_training_loop", "make_train_function"


def training_loops(make):
    """Take two steps with a new model, and return what the first went through, and what the second, as one line each.

    make: returns a new model, which has taken no step yet, and a function that takes one with it. A model keeps the
    functions that it once made, so one that has trained would show nothing. Raises what they raise.

    A line names functions and classes in the order in which they were reached, each once, by module and name; last
    comes what the model keeps as its training function.
    """
    model, step = make()
    with Recorder(type(model)) as recorder:
        lines = []
        for _ in range(2):
            step()
            kept = getattr(model, "train_function", None)
            lines.append(
                ", ".join(recorder.taken() + ([] if kept is None else [kind(kept)])) or "nothing that is known"
            )
    return tuple(lines)


class Recorder:
    """Notes what is reached of the Keras that a class of models belongs to, while its `with` block runs."""

    def __init__(self, model_class):
        self._class = model_class
        self._reached = []
        self._undo = []

    def taken(self):
        """Return what was reached since the last time, in order of entry, each once."""
        reached, self._reached = self._reached, []
        return reached

    def __enter__(self):
        for package in engines(self._class):
            for name, functions in FUNCTIONS.items():
                for version in VERSIONS:
                    module = sys.modules.get("{}.{}{}".format(package, name, version))
                    for function in functions:
                        self._wrap(module, function, self._noted)
        for base in self._class.__mro__:
            self._wrap(base, SELECT, self._selected)
            self._wrap(base, MAKE, self._noted)
        return self

    def __exit__(self, *_):
        for place, name, original in reversed(self._undo):
            setattr(place, name, original)

    def _wrap(self, place, name, wrapper):
        """Put a wrapper around what `place`, a module or a class, has itself under that name, if it has it."""
        original = vars(place).get(name) if place is not None else None
        if callable(original):
            self._undo.append((place, name, original))
            setattr(place, name, wrapper(original, label(place, name)))

    def _note(self, name):
        if name not in self._reached:
            self._reached.append(name)

    def _noted(self, function, name):
        # `wraps` also has AutoGraph take the wrapper for a function of its own library, which it leaves as it is
        @functools.wraps(function)
        def noted(*args, **kwargs):
            self._note(name)  # on entry: the other way round, what is inside would come first
            return function(*args, **kwargs)

        return noted

    def _selected(self, function, name):
        @functools.wraps(function)
        def selected(*args, **kwargs):
            loop = function(*args, **kwargs)
            self._note(label(type(loop)))
            return loop

        return selected


def engines(model_class):
    """Return the packages of a model's classes: of several Kerases in a process, the one in use.

    From 2.6 on, for example, `tensorflow.python.keras` is also loaded, and unused.
    """
    packages = []
    for base in model_class.__mro__:
        package = base.__module__.rpartition(".")[0]
        if "train_on_batch" in vars(base) and package not in packages:
            packages.append(package)
    return packages


def kind(function):
    """Return the kind of a model's training function: its class; for a plain function the object that it wraps."""
    if not hasattr(function, "__code__"):
        return label(type(function))
    for cell in function.__closure__ or ():
        try:
            inner = cell.cell_contents
        except ValueError:  # it is empty still
            continue
        if hasattr(inner, "get_concrete_function"):
            return "a function around " + label(type(inner))
    return "a plain function"


def label(place, name=None):
    """Module and name, without the packages: `training_arrays.fit_loop`, `training_v2.Loop`, `backend.Function`."""
    if isinstance(place, type):
        parts = [place.__module__.rpartition(".")[2], place.__name__]
    else:
        parts = [place.__name__.rpartition(".")[2]]
    return ".".join(parts if name is None else parts + [name])
