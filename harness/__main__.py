"""The command `harness`, and `python -m harness`."""

import sys


def main() -> None:
    """Run the command line. On Windows, some imported modules don't exist, so only explain what to do."""
    try:
        import signal  # noqa: PLC0415 - takes long enough to be interrupted

        # until `handle_signals` handles signals, Ctrl-C ends the process as `kill` does: without a traceback
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        sys.exit(130)  # Exit.INTERRUPTED
    if sys.platform == "win32":
        print(
            "harness: harness needs Linux, but this computer runs Windows.\n"
            "Use WSL 2: every command works there, and Docker Desktop can run the containers.",
            file=sys.stderr,
        )
        sys.exit(4)  # Exit.CANNOT_RUN_HERE
    from harness.cli import main as run  # noqa: PLC0415 - this import fails on Windows

    run()


if __name__ == "__main__":
    main()
