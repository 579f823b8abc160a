"""Runs a scenario without harness: options for its axes, and results as text."""

import inspect
import re
import sys

from .bench import Bench
from .outcome import CpuFallback, NotAvailable
from .sampling import Document, TimeBounded
from .settings import AS_IT_COMES, VALUES, Settings
from .telemetry import Telemetry

WARMUP_SECONDS = 0.5
SAMPLE_SECONDS = 0.05
MILLISECONDS = 1000
MEBIBYTE = 1 << 20
LONG_LIST = 3


def main(scenario, arguments=None):
    """Run `scenario` with the options of the command line, print the results, and end the process.

    The exit status is 0 if the scenario ran or isn't available here, 1 if it measured nothing, and 130 after Ctrl-C.
    An error in the scenario shows its traceback.
    """
    options = vars(parser(scenario).parse_args(arguments))
    seconds = options.pop("seconds")
    sampling = Document()
    if options.pop("sampling") == TimeBounded.mode:
        sampling = TimeBounded(WARMUP_SECONDS, seconds, SAMPLE_SECONDS)
    device = options.pop("device")
    settings = Settings({name: options.pop(name) for name in free_settings(scenario)})
    settings.prepare(thorough=True)
    bench = Bench(show, sampling, Telemetry(), axes=options, device_name=device, settings=settings)
    try:
        scenario(bench, **options)
        bench.observe_settings()
        bench.prove_gpu()
    except CpuFallback as reason:
        sys.exit("cpu fallback: {}".format(reason))
    except NotAvailable as reason:
        print("not available: {}".format(reason))
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
    if not (bench.measured or bench.observed):
        sys.exit("the scenario measured nothing")
    sys.exit(0)


def parser(scenario):
    """Return an argparse parser with an option for each axis of the scenario, and for the sampling."""
    import argparse  # here, because the worker imports this module too and doesn't need argparse

    header = read_header(inspect.getsourcefile(scenario))
    result = argparse.ArgumentParser(
        description=header.get("title"), formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    values = header.get("axes", {})
    for axis, parameter in list(inspect.signature(scenario).parameters.items())[1:]:
        default = parameter.default
        required = default is inspect.Parameter.empty
        result.add_argument(
            "--" + axis,
            choices=choices(values.get(axis)),
            required=required,
            default=None if required else default,
            help="the axis '{}'".format(axis),
        )
    for name in free_settings(scenario):
        result.add_argument("--" + name, choices=VALUES[name], default=AS_IT_COMES, help="a setting of the kit")
    result.add_argument("--device", choices=["cpu", "gpu"], default="cpu", help="the device to run on")
    result.add_argument(
        "--sampling",
        choices=[TimeBounded.mode, Document.mode],
        default=TimeBounded.mode,
        help="for these seconds, or with the source's protocol",
    )
    result.add_argument("--seconds", type=positive, default=2.0, help="how long to measure")
    return result


def free_settings(scenario):
    """Return the settings for which the scenario has no axis."""
    return [name for name in VALUES if name not in inspect.signature(scenario).parameters]


def choices(values):
    """Return the values of an axis in the header, with the values of a sweep as texts; None if the axis is unknown."""
    if isinstance(values, dict):
        return [str(int(number)) if number == int(number) else repr(number) for number in values["sweep"]]
    return values


def positive(text):
    """Parse a number of seconds above zero, for argparse."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError(text)
    return value


def read_header(path):
    """Return the table [tool.harness] of a script's PEP 723 header.

    It is empty without such a table, and before Python 3.11, which has no tomllib.
    """
    try:
        import tomllib
    except ImportError:
        return {}
    with open(path, encoding="utf-8") as file:
        block = re.search(r"(?m)^# /// script\s*$\n((?:#(?: .*)?\n)+?)# ///\s*$", file.read())
    if block is None:
        return {}
    lines = (line[2:] for line in block.group(1).splitlines())
    return tomllib.loads("\n".join(lines)).get("tool", {}).get("harness", {})


def show(event, **fields):
    """Print an event immediately, without the parts that only a report uses."""
    if event == "resources":
        return
    if event == "phase":
        line = "{:.1f} ms".format(fields["seconds"] * MILLISECONDS)
        label = fields["name"]
    elif event == "samples":
        label, line = fields["name"], summary(fields["samples"])
    elif event == "memory":
        label, line = event, growth(fields["points"])
    elif event == "fingerprint":
        label, line = event, ", ".join("{} {}".format(name, brief(value)) for name, value in fields["values"].items())
    elif event == "gpus":
        label, line = event, ", ".join("{name} ({capability})".format(**gpu) for gpu in fields["gpus"])
    elif event == "artifact":
        label, line = event, "{} ({:,} bytes)".format(fields["name"], fields["bytes"])
    elif event == "end":  # of a launch that waits forever
        label, line = fields["status"], fields["reason"]
    elif fields["name"] == "work" and isinstance(fields["value"], dict):
        label, line = "work", "{python:,} Python calls and {c:,} C calls, {ops:,} operations".format(**fields["value"])
    elif fields["name"] == "settings":
        settings = format_settings(fields["value"])
        label, line = "settings", ", ".join("{} {}".format(*pair) for pair in sorted(settings.items()))
    else:
        label, line = fields["name"], fields["value"]
    print("{:<16} {}".format(label, line), flush=True)


def format_settings(settings):
    """Format observed settings as text."""
    return {name: (" and ".join(value) or "nothing") if name == "xla" else value for name, value in settings.items()}


def brief(value):
    """Return a value of a fingerprint. A long list is shortened to its first items and its length."""
    if isinstance(value, list) and len(value) > LONG_LIST:
        return "[{}, ... {} in total]".format(", ".join(map(str, value[:LONG_LIST])), len(value))
    return value


def summary(samples):
    """Format the mean (total time / total steps) and quantiles of milliseconds per step, or a single step's time."""
    if [sample["steps"] for sample in samples] == [1]:
        return "{:.3f} ms, once".format(samples[0]["seconds"] * MILLISECONDS)
    times = sorted(sample["seconds"] / sample["steps"] * MILLISECONDS for sample in samples)
    mean = sum(sample["seconds"] for sample in samples) / sum(sample["steps"] for sample in samples) * MILLISECONDS
    return "mean {:.3f} ms, median {:.3f}, p10 {:.3f}, p90 {:.3f} ({} samples of {} steps)".format(
        mean, quantile(times, 0.5), quantile(times, 0.1), quantile(times, 0.9), len(samples), samples[0]["steps"]
    )


def growth(points):
    """Format the memory of a process at the first and the last point on one line."""
    (_, first_bytes), (calls, last_bytes) = points[0], points[-1]
    return "{:,.1f} MiB before and {:,.1f} MiB after {:,} calls: {:+,.0f} bytes per call".format(
        first_bytes / MEBIBYTE, last_bytes / MEBIBYTE, calls, (last_bytes - first_bytes) / calls
    )


def quantile(ordered, share):
    """Return the `share` quantile (0 to 1) of sorted values, with linear interpolation."""
    position = share * (len(ordered) - 1)
    lower = int(position)
    upper = min(lower + 1, len(ordered) - 1)
    return ordered[lower] + (ordered[upper] - ordered[lower]) * (position - lower)
