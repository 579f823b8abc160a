"""Examples at the end of each command's help. tests/test_readme.py runs all that don't measure, build or download."""

from collections.abc import Mapping

#: Two or three lines for each command without subcommands, by its name below `harness`.
EXAMPLES: Mapping[str, str] = {
    "": """
harness matrix --dry-run                # show the plan and its duration
harness run train.py -e tf2.12,tf2.13   # your own script
harness ask predict slower 2.16         # what is known already
""",
    "matrix": """
harness matrix --dry-run                # show the plan and its duration
harness matrix -s keras_step -e tf1.14,tf2.0 -a model=small -a call=fit
harness matrix --suite quick --precision 2% --budget 20m
""",
    "run": """
harness run train.py -e tf2.12,tf2.13
harness run train.py -e tf2.12,tf2.13 --function train_step --rounds 8
harness run train.py -e tf1.15,tf2.15 -- --epochs 3    # options of the script
""",
    "repro": """
harness repro list memory               # known claims about memory
harness repro T#40261 --dry-run         # show the plan and its duration
harness repro --family memory --no-nightly
""",
    "bisect": """
harness bisect T#67033
harness bisect T#67033 --find-fix       # find the release with the fix
harness bisect -s mine.py --good tf2.14 --bad tf2.17 --budget 30m
""",
    "profile": """
harness profile --suite quick --dry-run
harness profile -s keras_step -e tf1.14,tf2.0 -a model=small -a call=fit
""",
    "ask": """
harness ask predict slower 2.16
harness ask memory leak fit --json
""",
    "report": """
harness report                          # the newest run
harness report results/RUN --full       # everything in one file
harness report results/RUN --format json --output report.json
""",
    "compare": """
harness compare                         # the newest two runs
harness compare results/MONDAY results/TUESDAY --fail-on slower
""",
    "merge": """
harness merge results/SHARD-1 results/SHARD-2
harness merge one/RUN two/RUN --results merged
""",
    "bundle": """
harness bundle results/RUN
harness bundle results/RUN -e tf2.0 -a mode=eager -a api=keras
""",
    "doctor": """
harness doctor --seconds 5s             # measure the noise of this machine
harness doctor --no-listen --gpu -e 'tf2.1*'
""",
    "clean": """
harness clean
harness clean results/RUN --caches
""",
    "completion": """
source <(harness completion bash)
harness completion fish > ~/.config/fish/completions/harness.fish
""",
    "history add": """
harness history add --all
harness history add results/RUN
""",
    "history list": """
harness history list
harness history list --json
""",
    "history show": """
harness history show -e tf2.0
harness history show -s keras_step -a mode=eager --points
""",
    "history note": """
harness history note 2026-11-22 "driver 575"
harness history note 2026-11-22T06:00:00Z "moved to another room"
""",
    "history report": """
harness history report                  # history.html
harness history report --format md --since 2026-11-20
""",
    "history alarm": """
harness history alarm                        # preview the issues
harness history alarm --issues issues.json --json
harness history alarm --nightly .github/nightly.toml
""",
    "history confirm": """
harness history confirm                 # list suspected changes
harness history confirm --all-suspected
harness history confirm -s mine.py -e tf2.1 --rounds 20
""",
    "images list": """
harness images list
harness images list 'tf2.1*' --json
""",
    "images lock": """
harness images lock tf2.21
harness images lock 'tf2.0+numpy<1.17' --device cpu
""",
    "images build": """
harness images build tf1.14 tf2.0
harness images build 'tf2.1*' --device gpu --jobs 2
""",
    "images verify": """
harness images verify tf2.0
harness images verify tf2.15 --device gpu
""",
    "images pack": """
harness images pack PACK tf1.14 tf2.0
harness images pack PACK --no-images    # for --backend local
""",
    "images unpack": """
harness images unpack PACK
harness images unpack /media/usb/PACK
""",
    "scenarios list": """
harness scenarios list
harness scenarios list dataset --json
""",
    "scenarios show": """
harness scenarios show keras_step
harness scenarios show 'function_*' --json
""",
    "scenarios check": """
harness scenarios check
harness scenarios check mine.py
""",
    "scenarios new": """
harness scenarios new squares
harness scenarios new squares --title "Squares of numbers"
""",
    "fleet check": """
harness fleet check
harness fleet check --slots 4 -s keras_step
""",
    "fleet name": """
harness fleet name lab-7
harness fleet name ''                   # remove the name
""",
}
