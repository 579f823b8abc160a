"""The worker: it reads a job, runs the scenario and writes events (docs/dev/worker-protocol.md).

The scenario runs in the main thread, because Keras needs that.
"""

import importlib.machinery
import importlib.util
import inspect
import os
import sys
import time

from . import process
from .bench import Bench
from .events import EventWriter, ReaderGone, take_standard_output
from .job import SCHEMA, JobError, read_job
from .launch_watch import SELDOM, LaunchWatch, dump_threads, idle_reason, stack_text
from .outcome import CPU_FALLBACK, FAILED, OK, Attempt, Outcome, failure
from .profiling import Profiler
from .ptx import FIRST_START, VARIABLE, CompiledCode
from .settings import Settings
from .telemetry import Telemetry
from .words import Words, take_standard_input

INTERRUPTED = 130  # a shell's exit status for Ctrl-C


def work(path):
    """Run the job in the file `path`, and return the exit status of the process.

    - 0: the scenario ran, or isn't available
    - 1: the scenario failed, or ran on the CPU instead of a GPU
    - 130: it was interrupted, or the sender of its commands has ended. Then the last event is missing
    """
    words = Words(take_standard_input())  # first: without standard input, the next descriptor would get number 0
    emit = EventWriter(take_standard_output()).emit
    try:
        return report(path, emit, words, Telemetry())
    except ReaderGone:
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def report(path, emit, words, telemetry):
    """Write every event of a job. "hello" is written before the scenario is read."""
    try:
        job, problem = read_job(path), None
    except JobError as error:
        job, problem = None, str(error)
    if job is not None and job.die_with_parent:
        process.die_with_parent()
    current, started = time.time(), process.start_time()
    emit(
        "hello",
        schema=SCHEMA,
        time=current,
        started=started,
        pid=os.getpid(),
        python=".".join(map(str, sys.version_info[:3])),
        implementation=sys.implementation.name,
        executable=sys.executable,
        affinity=process.affinity(),
    )
    compiled = CompiledCode(os.environ.get(VARIABLE), first=os.environ.get(FIRST_START))
    outcome = Outcome(FAILED, problem, None) if job is None else perform(job, emit, words, telemetry, compiled)
    build = git_version()
    if build:
        emit("observation", name="git version", value=build)
    # Last, so that reading the packages isn't part of any phase.
    emit("pins", packages=process.installed_packages())
    # The clock may have been set back in between. Don't report a negative time.
    wall = max(0.0, time.time() - (started or current))
    emit("resources", wall_seconds=wall, **process.usage(), **telemetry.resources(), **compiled.resources())
    emit("end", **outcome._asdict())
    return 1 if outcome.status in (FAILED, CPU_FALLBACK) else 0


def perform(job, emit, words, telemetry, compiled):
    """Run the job's scenario, and return its outcome."""
    settings = Settings(job.settings)
    settings.prepare(job.thorough)
    bench = Bench(
        emit,
        job.sampling,
        telemetry,
        axes=job.axes,
        environment=job.environment,
        device_name=job.device,
        artifacts=job.artifacts,
        compiled=compiled,
        thorough=job.thorough,
        profiler=None if job.profile_calls is None else Profiler(job.profile_calls),
        words=words,
        settings=settings,
        waits=job.waits,
        limit=job.limit,
    )
    with Attempt() as loading:
        scenario = load(job.script)
    if loading.outcome.status != OK:
        return loading.outcome._replace(reason="{} cannot be loaded: {}".format(job.script, loading.outcome.reason))
    try:
        inspect.signature(scenario).bind(bench, **job.axes)
    except TypeError as error:
        return failure("{} does not take these axes: {}".format(job.script, error))

    def end(seconds, frame):
        dump_threads()
        path = os.path.abspath(job.script)
        describe = "{}, line {{}}".format(os.path.basename(path)).format
        bench.abandon(idle_reason(seconds, frame, path, describe), stack_text(frame, path))

    # a step on a GPU may wait for the GPU
    watch = LaunchWatch(None if job.device == "gpu" else end, lambda: words.is_waiting or bench.is_watched, look=SELDOM)
    with Attempt() as attempt, watch:
        scenario(bench, **job.axes)
    if attempt.outcome.status == OK and not (bench.measured or bench.observed):
        return Outcome(FAILED, "the scenario measured nothing", None)
    if attempt.outcome.status == OK:
        # after all timed phases
        with Attempt() as attempt:
            bench.observe_settings()
            bench.prove_gpu()
    return attempt.outcome


def git_version():
    """Return the commit of TensorFlow's build, as `git describe` prints it; empty if it isn't imported."""
    description = getattr(getattr(sys.modules.get("tensorflow"), "version", None), "GIT_VERSION", "")
    return description.decode("utf-8", "replace") if isinstance(description, bytes) else str(description)


def load(script):
    """Return the function `scenario` of the file `script`.

    The module is loaded from the file, because AutoGraph reads its source again. Its name is different from the names
    of other modules.
    """
    name = "scenario_" + os.path.splitext(os.path.basename(script))[0]
    loader = FromSource(name, os.path.abspath(script))
    spec = importlib.util.spec_from_file_location(name, loader.path, loader=loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.scenario


class FromSource(importlib.machinery.SourceFileLoader):
    """Compiles its file at each import.

    Python finds cached bytecode by the source's size and modification time in seconds. If a file changes within a
    second, the old bytecode could run.
    """

    def path_stats(self, path):
        """Raise OSError, so that importlib neither reads nor writes bytecode."""
        raise OSError("no bytecode of {} is stored".format(path))
