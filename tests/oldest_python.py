"""`make lint`: compiles scenarios/ with the oldest Python on this machine that they claim (3.6, else 3.7).

With HARNESS_REQUIRE_ALL=1, as in CI, a machine that has neither fails; elsewhere it says so and goes on.
"""

import os
import subprocess
import sys
from pathlib import Path

from harness.machine.interpreters import find_installed, find_python
from harness.model.errors import UnavailableError

SCENARIOS = Path(__file__).parents[1] / "scenarios"

# compiles in memory: nothing is written beside the sources
COMPILE = "import sys; [compile(open(path, encoding='utf-8').read(), path, 'exec') for path in sys.argv[1:]]"


def main() -> int:
    """The exit code of the compilation."""
    for version in ("3.6", "3.7"):
        try:
            python = find_python(version, [find_installed])
        except UnavailableError:
            continue
        paths = [str(path) for path in sorted(SCENARIOS.rglob("*.py"))]
        print(f"compiling {len(paths)} files of scenarios/ with Python {version}")
        return subprocess.run([str(python), "-c", COMPILE, *paths], check=False).returncode
    print("no Python 3.6 or 3.7 on this machine to compile scenarios/ with", file=sys.stderr)
    return int(os.environ.get("HARNESS_REQUIRE_ALL") == "1")


if __name__ == "__main__":
    sys.exit(main())
