"""Reads asv's stored results of two environments, and applies the rule of `asv compare`. Runs in asv's environment.

    python verdict.py RESULTS FIRST_PYTHON SECOND_PYTHON

It prints a JSON object. For each environment, it has the median, the ends of its 99 % interval and the number of
samples. It also has the verdict of `asv compare` for the second environment.
"""

import json
import sys

from asv import _stats
from asv.commands.compare import _is_result_better
from asv.results import iter_results

#: The default of `asv compare --factor`.
FACTOR = 1.1


def main(folder, *pythons):
    """Print the two results and the verdict."""
    results = list(iter_results(folder))
    first, second = (_read(results, python) for python in pythons)
    print(json.dumps({"results": [_summary(*first), _summary(*second)], "verdict": _verdict(first, second)}))


def _read(results, python):
    """Return median, statistics and samples of the only benchmark in the environment with this interpreter."""
    (result,) = (entry for entry in results if entry.env_name.endswith(python.replace("/", "_")))
    (key,) = result.get_all_result_keys()
    (value,), (stats,), (samples,) = (
        get(key, []) for get in (result.get_result_value, result.get_result_stats, result.get_result_samples)
    )
    return value, stats, samples


def _summary(value, stats, samples):
    return {"median": value, "low": stats["ci_99_a"], "high": stats["ci_99_b"], "samples": len(samples)}


def _verdict(first, second):
    """Return the verdict of asv.commands.compare.Compare, with the words of its headings."""
    if _better(second, first):
        return "improved"
    if _better(first, second):
        return "got worse"
    different = _stats.is_different(first[2], second[2], first[1], second[1])
    return f"stayed the same ({'different, by less than the factor' if different else 'not significant'})"


def _better(one, other):
    return _is_result_better(one[0], other[0], one[1:], other[1:], FACTOR)


if __name__ == "__main__":
    main(*sys.argv[1:])
