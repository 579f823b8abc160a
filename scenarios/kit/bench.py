"""Bench: the interface between a scenario and the kit."""

import gc
import os
import shutil
from contextlib import contextmanager
from time import perf_counter, process_time

from . import device as tensorflow_device
from . import placement, sampling
from .fetching import fetch, fetch_one
from .outcome import FAILED, CpuFallback, NotAvailable, ScriptFailed
from .process import resident_bytes, usage
from .ptx import CompiledCode
from .settings import Settings
from .words import MEASURE

GPU = "gpu"

# A sample is about 45 bytes of JSON, so a line of this many samples is far below the reader's limit of 1 MiB.
SAMPLES_PER_EVENT = 10000


class Bench:
    """The interface of a scenario: it declares phases, steps and observations.

    - telemetry: monitors the machine while steps are timed
    - axes: the cell's values by axis; settings: the settings for which the scenario has no axis
    - environment: the name of the environment, or None without harness
    - device_name: "cpu" or "gpu"; compiled: the folder of code that the GPU's driver compiled, if there is one
    - thorough: whether to make, after measuring, also the observations that take an extra untimed pass. It is true in
      the first launch of a cell, and without harness
    - profiler: profiles the step instead of timing it, if requested
    - words: the commands that an interleaved launch receives while it runs
    - waits: whether the launch waits for the command MEASURE before it measures
    - limit: the seconds after which the process is killed, or None
    """

    def __init__(
        self,
        emit,
        sampling,
        telemetry,
        *,
        axes,
        environment=None,
        device_name="cpu",
        artifacts="artifacts",
        compiled=None,
        thorough=True,
        profiler=None,
        words=None,
        settings=None,
        waits=False,
        limit=None,
    ):
        self.axes = axes
        self.environment = environment
        self.device_name = device_name
        self.limit = limit
        self.thorough = thorough
        self.measured = False
        self.observed = False
        self.is_watched = False  # true for a plain script, which is watched by kit.script
        self._emit = emit
        self._sampling = sampling
        self._telemetry = telemetry
        self._artifacts = artifacts
        self._artifact_names = set()
        self._compiled = compiled or CompiledCode()
        self._profiler = profiler
        self._words = words
        self._waits = waits
        self._settings = settings or Settings()
        self._settings_observed = False
        self._placed = set()
        self._fetch = fetch_one if device_name == GPU else fetch
        self._zero = perf_counter()

    @property
    def document(self):
        """Whether the launch follows the source document's protocol, and not the time-bounded protocol."""
        return self._sampling.mode == "document"

    @contextmanager
    def phase(self, name):
        """Time a block of the launch, in wall-clock and CPU time. If the block raises, nothing is recorded."""
        started, cpu_start = perf_counter(), process_time()
        if self._profiler is None:
            yield
        else:
            with self._profiler.phase(name):
                yield
        end, cpu_seconds = perf_counter(), process_time() - cpu_start
        self._emit("phase", name=name, start=started - self._zero, seconds=end - started, cpu_seconds=cpu_seconds)

    def device(self):
        """Initialize TensorFlow's device in the phase "device". Call it after setting the mode, before building.

        The requested settings are applied first, outside of the phase. If this image is new to the GPU, the driver's
        compilation of code is the phase "first fill". Raises NotAvailable if a setting can't be applied, and
        CpuFallback if a GPU is requested and TensorFlow has none.
        """
        self._settings.apply(tensorflow_device.find_tensorflow())
        with self.phase("device"):
            tensorflow_device.initialize()
        if self.device_name != GPU:
            return
        tf = tensorflow_device.find_tensorflow()
        placement.require_gpu(tf)
        if self._compiled.is_new:
            with self.phase("first fill"):
                placement.exercise(tf)
            self._compiled.mark()

    def fetch(self, values):
        """Wait until the tensors in `values` (in any nesting) are computed, and return `values`.

        A call returns before the GPU has finished its work. So end the phase of a first call with this method. On a
        GPU, it copies one element of each large result to the host; on a CPU, the results are already there.
        """
        self._fetch(values)
        return values

    def placed(self, values):
        """Record the devices of these tensors or variables (in any nesting), as proof of GPU use.

        Call this after measuring. The result of a step is always recorded. On a CPU, this method does nothing.
        """
        if self.device_name == GPU:
            self._placed |= placement.devices(tensorflow_device.find_tensorflow(), values)

    def prove_gpu(self):
        """Report the GPUs of the work and their peak memory. Raises CpuFallback if the work didn't run on a GPU."""
        if self.device_name != GPU:
            return
        tf = tensorflow_device.find_tensorflow()
        if tf is None:
            raise CpuFallback("the scenario never imported TensorFlow")
        placement.require_gpu(tf)
        # The devices of the work's own tensors count first. Without them, test where TensorFlow places an operation.
        devices = self._placed or {placement.probe(tf)}
        if not any(map(placement.is_gpu, devices)):
            raise CpuFallback("TensorFlow has a GPU, and the work was on {}".format(", ".join(sorted(devices))))
        if self._placed:
            self._emit("observation", name="placed on", value=sorted(devices))
        used_gpus = sorted(filter(placement.is_gpu, devices))
        self._emit("gpus", gpus=placement.gpus(tf, used_gpus))
        peak = tensorflow_device.peak_memory(tf, used_gpus)
        if peak is not None:
            self._emit("resources", gpu_peak_bytes=peak)

    def observe_settings(self):
        """Observe TensorFlow's settings once. Raises NotAvailable if they aren't the requested ones."""
        tf = tensorflow_device.find_tensorflow()
        if tf is not None and not self._settings_observed:
            self._settings_observed = True
            settings = self._settings.observe(tf, self.device_name)
            if settings:
                self._emit("observation", name="settings", value=settings)

    def measure(self, step, steps=1, document=1):
        """Time `step()` as the result of this launch. Return the total number of steps, including untimed ones.

        steps: the number of steps per call of `step`; document: the number of steps in the source document. A sample
        ends when the results of `step` have arrived, as in `fetch`. Within a sample, nothing else is read or written.
        """
        self._wait_to_measure()
        if self._profiler is not None:
            return self._profile(step, steps)
        calls = -(-document // steps)
        counted = self._count_first(step)

        def wait(samples, calls):
            self._emit_samples("turn", samples, calls, steps)
            with self._telemetry.between():
                return self._words.next()

        measurement = self._sampling.run(step, calls, self.phase, self._watching, wait, fetch=self._fetch)
        self.measured = True
        for first in range(0, len(measurement.samples), SAMPLES_PER_EVENT):
            samples = measurement.samples[first : first + SAMPLES_PER_EVENT]
            self._emit_samples("samples", samples, measurement.calls, steps, name="step")
        self._emit("resources", warmup_steps=measurement.warm * steps, between_steps=measurement.untimed * steps)
        self.placed(measurement.result)
        self.observe_settings()  # now, because traced functions still exist
        return (measurement.made + (counted is not None) + self._look(step, steps, counted)) * steps

    def once(self, step):
        """Time a single call of `step()`, without warm-up, as the result of this launch. Return the result of the call.

        The time ends when the results have arrived, as in `fetch`. Under the profiler, the call is the "first call".
        """
        self._wait_to_measure()
        self.measured = True
        if self._profiler is not None:
            result = self._profiler.once(step, self.phase, self._fetch)
            self._keep_profiles()
            return result
        gc.collect()  # as before a measurement (sampling.py)
        with self.phase("steady state"), self._watching():
            sample, result = sampling.time_calls(step, 1, self._fetch, perf_counter)
        self._emit("samples", name="step", samples=[dict(sample._asdict(), steps=1)])
        self.placed(result)
        self.observe_settings()
        return result

    def stepwise(self, work, samples):
        """Call `work()` once. It times its steps itself, and appends a Sample per step to the list `samples`.

        The first sample is reported as the phase "first call". It isn't part of the result, unless it is the only one.
        If there are more than SAMPLES_PER_EVENT samples, consecutive ones are merged. Raises ScriptFailed if there are
        none.
        """
        self._wait_to_measure()
        self.measured = True
        if self._profiler is not None:
            self._profiler.once(work, self.phase, self._fetch)
            self._keep_profiles()
            return
        gc.collect()
        with self.phase("whole script"), self._watching():
            work()
        if not samples:
            raise ScriptFailed("the code that should be timed as a step never ran")
        self.took("first call", *samples[0])
        later_samples = samples[1:] or samples
        size = -(-len(later_samples) // SAMPLES_PER_EVENT)
        parts = (later_samples[first : first + size] for first in range(0, len(later_samples), size))
        entries = [
            {
                "seconds": sum(sample.seconds for sample in part),
                "cpu_seconds": sum(sample.cpu_seconds for sample in part),
                "steps": len(part),
            }
            for part in parts
        ]
        self._emit("samples", name="step", samples=entries)
        self.observe_settings()

    def took(self, name, seconds, cpu_seconds):
        """Record a part of the launch that was timed elsewhere."""
        self._emit("phase", name=name, start=0.0, seconds=seconds, cpu_seconds=cpu_seconds)

    def memory(self, step, calls, steps=1):
        """Call `step()` `calls` times, and read the process's memory at up to 21 points. Return the total of steps.

        steps: the number of steps per call of `step`. Before these calls, a warm-up makes 10 % as many. The calls
        between two points are timed together. The garbage collection before each reading isn't timed. Raises ValueError
        for fewer than two calls, and NotAvailable if the system doesn't report the memory of a process.
        """
        self._wait_to_measure()
        if calls < 2:
            raise ValueError("bench.memory(calls={}): expected at least two calls".format(calls))
        if self._profiler is not None:
            return self._profile(step, steps)
        if resident_bytes() is None:
            raise NotAvailable("this system doesn't report the memory of a process (/proc/self/statm)")
        measurement, points = sampling.sample_memory(
            step, calls, self.phase, self._watching, resident_bytes, fetch=self._fetch
        )
        self.measured = True
        entries = [
            dict(sample._asdict(), steps=(points[number + 1][0] - points[number][0]) * steps)
            for number, sample in enumerate(measurement.samples)
        ]
        self._emit("samples", name="step", samples=entries)
        self._emit("memory", points=points)
        self._emit("resources", warmup_steps=measurement.warm * steps)
        self.placed(measurement.result)
        self.observe_settings()
        return (measurement.made + self._look(step, steps)) * steps

    def _wait_to_measure(self):
        """Wait for the command to measure, if the launch started at the same time as others."""
        if self.measured:
            raise RuntimeError("bench measured twice, but a launch has one result: use an axis to measure variants")
        if self._waits:
            self._emit("ready")
            self._words.expect(MEASURE)

    def _watching(self):
        return self._compiled.watching(self._telemetry)

    def _count_first(self, step):
        """If this launch is thorough, call `step` once, and return its counts; otherwise None."""
        if not self.thorough or self.document:
            return None
        from . import counting  # here, because the imports that every launch needs are timed

        return counting.Counter().count(step, self._fetch)

    def _look(self, step, steps, first=None):
        """If this launch is thorough, count the step's calls, and profile a GPU. Return how often `step` was called."""
        if not self.thorough:
            return 0
        from . import counting  # here, because the imports that every launch needs are timed

        calls = counting.look(step, steps, self._fetch, self._emit, first)
        tf = tensorflow_device.find_tensorflow()
        if self.device_name == GPU and tf is not None:
            from . import on_device

            calls += on_device.look(tf, step, steps, self._emit)
        return calls

    def _emit_samples(self, event, samples, calls, steps, **fields):
        entries = [dict(sample._asdict(), steps=calls * steps) for sample in samples]
        self._emit(event, samples=entries, calls_per_sample=calls, **fields)

    def _profile(self, step, steps):
        calls = self._profiler.run(step, steps, self.phase, self._fetch)
        self.measured = True
        self._keep_profiles()
        return calls * steps

    def _keep_profiles(self):
        for path in self._profiler.write(self._artifacts):
            self.artifact(path)
        self.observe_settings()

    def report_memory(self, points):
        """Record the memory use so far: pairs of seconds and bytes. Another thread calls it before the time limit."""
        self._emit("resources", **usage())
        self._emit("observation", name="resident memory", value=points)

    def abandon(self, reason, traceback):
        """Report the launch as failed, and end the process. Another thread calls this if the scenario is stuck."""
        self._emit("resources", **usage())
        self._emit("end", status=FAILED, reason=reason, traceback=traceback)
        os._exit(1)

    def observe(self, name, value):
        """Record an observation that isn't a time, such as a count, a class or a version."""
        self.observed = True
        self._emit("observation", name=name, value=value)

    def fingerprint(self, **values):
        """Record values that prove which work was done. Compared cells must have equal values. None means unknown.

        `steps_called` and `steps_counted` are different: within a launch, both must be equal
        (docs/dev/worker-protocol.md).
        """
        self._emit("fingerprint", values=values)

    def artifact(self, path):
        """Save a file that the scenario wrote, such as a profile or a trace. Each name can be used once per launch."""
        name = os.path.basename(path)
        if not os.path.isfile(path):
            raise ValueError("the artifact '{}' isn't a file".format(path))
        if name in self._artifact_names:
            raise ValueError("two artifacts have the name '{}'".format(name))
        self._artifact_names.add(name)
        os.makedirs(self._artifacts, exist_ok=True)
        target = os.path.join(self._artifacts, name)
        if not (os.path.exists(target) and os.path.samefile(path, target)):
            shutil.copyfile(path, target)
        self._emit("artifact", name=name, bytes=os.path.getsize(target))
