"""Drawing of charts in a separate process, because the renderer ends its process if it can't reserve memory.

This file is also the program of that process. It reads one JSON document per line from its standard input, and answers
each with a JSON document. For a Vega-Lite specification, the answer is the SVG. For null, it is the scripts for a page.
The program uses no network.
"""

import atexit
import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import Any

#: The package that draws.
PACKAGE = "vl-convert-python"


class DrawingError(Exception):
    """Error for a drawing process that has ended, or couldn't start."""


class Drawer:
    """The process that draws charts. It starts immediately, and ends when this process ends."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # the renderer's messages are only for its developers
            text=True,
            # Ctrl-C must not end this process, because the report of an interrupted run has charts too
            start_new_session=True,
        )
        self._lock = Lock()
        atexit.register(self.close)

    def svg(self, specification: Mapping[str, Any]) -> str:
        """Return the chart of a Vega-Lite specification as an SVG document. Raises DrawingError."""
        return self._answer(dict(specification))

    def scripts(self) -> str:
        """Return Vega, Vega-Lite and vega-embed as one script, which sets `vegaEmbed`. Raises DrawingError."""
        return self._answer(None)

    def close(self) -> None:
        """End the process."""
        with suppress(OSError):
            self._process.communicate()

    def _answer(self, document: object) -> str:
        with self._lock:
            assert self._process.stdin
            assert self._process.stdout
            try:
                self._process.stdin.write(json.dumps(document) + "\n")
                self._process.stdin.flush()
                answer: str = json.loads(self._process.stdout.readline())
            except (OSError, ValueError):  # the process has closed the pipe, or its answer is incomplete
                raise DrawingError from None
            return answer


@cache
def drawer() -> Drawer:
    """Return the drawing process, which is started only once, because the start takes half a second.

    Raises DrawingError.
    """
    try:
        return Drawer()
    except OSError as error:
        raise DrawingError(str(error)) from None


def _main() -> None:
    import vl_convert

    for line in sys.stdin:
        document = json.loads(line)
        if document is None:
            answer = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        else:
            answer = vl_convert.vegalite_to_svg(document, allowed_base_urls=[])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        _main()
