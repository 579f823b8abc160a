"""Times the steps and the imports of a plain script, in seconds, while the script runs."""

import functools
import sys
import threading
from time import perf_counter, process_time

from .sampling import Sample


class Steps:
    """Times steps one by one: its `with` block, calls of `timed` functions, and iterations of a loop (`passes`).

    A step that raises an exception isn't counted. A loop calls `drop` then, because `passes` can't see the exception.
    A step within a step of the same thread is part of the outer one. `fetch` waits until the result of a function has
    arrived. `samples` has a Sample per step, in the order in which the steps ended.
    """

    def __init__(self, fetch):
        self.samples = []
        self._fetch = fetch
        self._begun = threading.local()

    def __enter__(self):
        stack = self._stack()
        stack.append((process_time(), perf_counter()))
        return self

    def __exit__(self, kind, error, trace):
        ended, used = perf_counter(), process_time()
        stack = self._stack()
        before, begun = stack.pop()
        if not stack and kind is None and begun is not None:
            # at least one tick of the clock, because 0 has no logarithm
            self.samples.append(Sample(max(ended - begun, 1e-9), max(used - before, 0.0)))

    def timed(self, function):
        """Return a function whose calls are timed as steps."""
        return Timed(self, function)

    def call(self, function, arguments, named):
        """Call a function as a step."""
        with self:
            result = function(*arguments, **named)
            if len(self._stack()) == 1:
                self._fetch(result)
        return result

    def passes(self, items):
        """Yield the items of a loop. Each iteration is a step, from the request for its item to the next request."""
        iterator = iter(items)
        stack = self._stack()
        while True:
            stack.append((process_time(), perf_counter()))
            try:
                item = next(iterator)
            except BaseException as error:
                stack.pop()
                if isinstance(error, StopIteration):
                    return
                raise
            try:
                yield item
            finally:  # also after `break`
                self.__exit__(None, None, None)

    def drop(self):
        """Leave out the current iteration of a loop, because its body raised an exception."""
        self._stack()[-1] = (None, None)

    def _stack(self):
        """Return the starts of this thread's unfinished steps, each as CPU time and wall-clock time."""
        if not hasattr(self._begun, "stack"):
            self._begun.stack = []
        return self._begun.stack


class Timed:
    """A function whose calls are steps. It has all attributes of the function, such as a tf.function's methods."""

    def __init__(self, steps, function):
        functools.update_wrapper(self, function, updated=())
        self._steps = steps
        self._function = function

    def __call__(self, *arguments, **named):
        return self._steps.call(self._function, arguments, named)

    def __get__(self, instance, owner=None):
        if isinstance(self._function, property):
            return self if instance is None else self._steps.call(self._function.__get__, (instance, owner), {})
        bind = getattr(type(self._function), "__get__", None)
        return self if bind is None else Timed(self._steps, bind(self._function, instance, owner))

    def __getattr__(self, name):
        return getattr(self._function, name)


class ImportClock:
    """Times imports of some packages, also later and lazy ones: only their outermost modules.

    It is a finder in sys.meta_path, which Python calls only for modules that aren't loaded yet. So code that is already
    imported doesn't become slower. `seconds` and `cpu_seconds` are the totals.
    """

    def __init__(self, packages):
        self.seconds = self.cpu_seconds = 0.0
        self._packages = packages
        self._depth = 0

    def __enter__(self):
        sys.meta_path.insert(0, self)
        return self

    def __exit__(self, kind, error, trace):
        sys.meta_path.remove(self)

    def find_spec(self, name, path=None, target=None):
        """Return the other finders' spec for a module, with a loader that times the module's execution."""
        if name.partition(".")[0] not in self._packages:
            return None
        for finder in list(sys.meta_path):
            finder_method = None if finder is self else getattr(finder, "find_spec", None)
            spec = finder_method(name, path, target) if finder_method else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = TimedLoader(self, spec.loader)
                return spec
        return None

    def run(self, work):
        """Call `work`, which executes a module. Only the outermost module of an import is timed."""
        is_outermost = not self._depth
        self._depth += 1
        cpu_start, start = process_time(), perf_counter()
        try:
            work()
        finally:
            self._depth -= 1
            if is_outermost:
                self.seconds += perf_counter() - start
                self.cpu_seconds += process_time() - cpu_start


class TimedLoader:
    """Replaces a module's loader until the module is executed. Then the module gets its own loader back."""

    def __init__(self, clock, loader):
        self._clock = clock
        self._loader = loader

    def create_module(self, spec):
        """Create the module with its own loader."""
        create = getattr(self._loader, "create_module", None)
        return create(spec) if create else None

    def exec_module(self, module):
        """Execute the module with its own loader, and time it."""
        module.__spec__.loader = module.__loader__ = self._loader
        self._clock.run(lambda: self._loader.exec_module(module))

    def __getattr__(self, name):
        return getattr(self._loader, name)
