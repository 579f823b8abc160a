"""`python -m kit JOB.json`: do one job, write its events to standard output."""

import sys

from .worker import work

if len(sys.argv) != 2:
    sys.exit("usage: python -m kit JOB.json")
sys.exit(work(sys.argv[1]))
