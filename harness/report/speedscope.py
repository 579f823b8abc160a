"""Profiles as a file of speedscope, which draws the sampled stacks interactively."""

from harness.analysis.profiles import name
from harness.report import escape
from harness.report.profiles import ProfileReport


def make_speedscope(report: ProfileReport) -> str:
    """Return the sampled stacks of all cells in speedscope's format. Weights are in seconds.

    Source: https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources
    """
    frames: dict[tuple[str, str, int], int] = {}
    profiles = []
    for cell in report.cells:
        for profile in report.found[cell].values():
            frame_numbers = [
                frames.setdefault((name(function), function.file, function.line), len(frames))
                for function in profile.functions
            ]
            weights = [seconds for seconds, _ in profile.stacks]
            if weights:
                profiles.append(
                    {
                        "type": "sampled",
                        "name": f"{report.name(cell)}, {profile.part.value}",
                        "unit": "seconds",
                        "startValue": 0,
                        "endValue": sum(weights),
                        "samples": [[frame_numbers[place] for place in stack] for _, stack in profile.stacks],
                        "weights": weights,
                    }
                )
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": f"harness {report.run.harness}",
        "name": report.title,
        "shared": {"frames": [{"name": label, "file": file, "line": line} for label, file, line in frames]},
        "profiles": profiles,
    }
    return escape.dump_json(document)
