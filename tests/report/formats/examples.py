"""A run with something of everything, and one whose strings are hostile."""

from collections.abc import Sequence
from dataclasses import replace

from harness.model.environment import Device
from harness.model.issues import Issue
from harness.model.launch import Launch, Role, Status
from harness.model.run import Run, Unavailable
from harness.model.scenario import Cell, Claim, ClaimSide
from tests.factories import PHASES, RESOURCES, broken, cell, cells, launch, rounds, run, scenario

HOSTILE = "<script>alert(1)</script>"


def example() -> tuple[Run, list[Launch]]:
    """Two calls in two environments and two modes.

    `fit` in tf2.0 is slower in both modes; `train_on_batch` in tf2.0 ran out of memory in graph mode, and in eager mode
    it is as fast as in tf1.14; tf2.1 cannot be had; round 3 of the group of `fit` was disturbed and repeated.
    """
    times = dict(zip(cells(calls=("fit", "train_on_batch")), [10, 20, 11, 27, 8, 15, 8, 15], strict=True))
    seconds = {member: milliseconds / 1000 for member, milliseconds in times.items()}
    lost = cell("tf2.0", call="train_on_batch", mode="graph")
    del seconds[lost]
    controls = {member: seconds[member] for member in (cell(), cell(call="train_on_batch"))}
    launches = rounds(
        seconds,
        spread=0.002,
        controls=controls,
        took=4.0,
        phases=PHASES,
        resources=RESOURCES,
        fingerprint={"size": 162},
    )
    group = launches[0].group
    noise = {**RESOURCES, "steady_own_cpus_busy_seconds": 1.4}
    disturbed = [replace(entry, resources=noise) for entry in launches if (entry.group, entry.round) == (group, 3)]
    launches = [replace(item, attempt=1) if (item.group, item.round) == (group, 3) else item for item in launches]
    gone = [Unavailable(c, "needs keras<2.4", "Choose an environment with keras<2.4.") for c in cells(["tf2.1"])]
    killed = broken(lost, Status.OOM, error="killed at 2 GiB", advice="Allow more memory.", stderr="allocating\nKilled")
    return run(times, unavailable=gone, controlled=True), [*disturbed, *launches, killed]


def hostile() -> tuple[Run, list[Launch]]:
    """Every string of an untrusted script is chosen badly: markup, bars, formulas, terminal sequences, 10 MB."""
    axes = {"=size": ["a|b", "`c`\n# d", "=1+1|' /C calc'!A0"], "mode": ["graph", "eager"]}
    evil = scenario(
        HOSTILE,
        title=f"{HOSTILE} | \x1b[31m",
        axes=axes,
        default={},
        source="javascript:alert(1)",
        compare=_COMPARE,
        claims=[
            Claim(
                issue=Issue(f"{HOSTILE})](x", 1),
                reported=f"{HOSTILE}|\n# d",
                worse=ClaimSide("tf1.14", {"mode": "graph"}),
                better=ClaimSide("tf1.14", {"mode": "eager"}),
                ratio=(2.0, 3.0),
                when={"=size": "a|b"},
                hardware=f"{HOSTILE}\x1b[31m",
                fixed="=1+1|`",
            )
        ],
    )
    members = [
        Cell(HOSTILE, "tf1.14", Device.CPU, {"=size": size, "mode": mode})
        for size in axes["=size"]
        for mode in axes["mode"]
    ]
    stderr = "```\n</details>]]><script>alert(2)</script>\n\x1b]0;x\x07\x00\ufffe" + "x" * 10_000_000 + "\n````\nend"
    noisy = {**RESOURCES, "steady_own_cpus_busy_seconds": 1.6}
    launches = [
        launch(
            member,
            0.01 * place,
            number,
            phases={f"{HOSTILE}|\x1b[2J": 1.0},
            resources=noisy,
            fingerprint={HOSTILE: f"\n# d`{member.axes['mode']}|"} if member.axes["=size"] == "a|b" else {"size": 1},
            started="@SUM(1)" if number == 2 else "2026-11-21T04:10:00Z",
        )
        for number in range(1, 6)
        for place, member in enumerate(members[:-1], 1)
    ]
    error = "=HYPERLINK(1)\x1b[31mred|\n# big `q` \ud800" + "y" * 10_000_000
    launches.append(broken(members[-1], Status.FAILED, error=error, stderr=stderr, advice=HOSTILE))
    hosts = {"cpu": f"{HOSTILE}\x1b[31m", "<b>": "|", "cores": 2}
    return (
        run(
            members, scenarios=[evil], host=hosts, command=["harness", "-s", HOSTILE + "\n```\n\x1b[2J"], commit="@a|`"
        ),
        launches,
    )


_COMPARE = [replace(scenario().compare[1], name=f"{HOSTILE}|")]


def nothing() -> tuple[Run, list[Launch]]:
    return run(), [broken(member, Status.FAILED, error="it raised", stderr="Traceback") for member in cells()]


def one_launch() -> tuple[Run, Sequence[Launch]]:
    return run([cell()]), [launch(cell(), 0.01, 1, role=Role.MEASURE)]
