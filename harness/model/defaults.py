"""Every default value that a user can see, each defined once.

Help, errors, rules and the table of docs/explanation/how-it-measures.md (`make schema`) read the values from here.
Shares are fractions of 1 (0.03 is 3 %), and times are in seconds.
"""

#: --margin: two cells whose times differ by less count as the same.
MARGIN = 0.03

#: How often all intervals of a table together contain the true ratios.
LEVEL = 0.95
#: The chance that a table has a wrong verdict. Rounded: 1 - 0.95 is not 0.05 in floating point.
ALPHA = round(1.0 - LEVEL, 9)

#: --rounds: if nothing ends a run earlier; at most with --precision or --budget; at most for claims.
ROUNDS, MOST_ROUNDS, MOST_CLAIM_ROUNDS = 5, 100, 30
#: The fewest rounds that give a verdict, unless two show more than ×1.5.
FEWEST_ROUNDS = 3
#: --rounds of `harness history confirm`.
CONFIRM_ROUNDS = 10
#: --calls of `harness profile`.
PROFILED_CALLS = 50

#: --budget of `harness bisect`.
BISECT_BUDGET = 900.0
#: --budget of `harness run`. With preparation and report, a small script is compared in two releases within 2 minutes.
#: A slower script takes the time of three rounds.
SCRIPT_BUDGET = 90.0
#: --budget of `harness repro`: per issue, and at most.
ISSUE_BUDGET, MOST_ISSUES_BUDGET = 300.0, 7200.0

#: --warmup and --measure: the shortest and the longest that a pilot sets.
WARMUP, MEASURE = (0.1, 5.0), (0.25, 5.0)
#: --warmup and --measure of `harness repro`. Most claims are large, so short launches are enough.
CLAIM_WARMUP, CLAIM_MEASURE = 0.2, 0.5
#: Seconds that a launch of `harness bisect` warms up and measures. For a clear difference, this is enough.
SEARCH_WARMUP, SEARCH_MEASURE = 1.0, 1.0

#: --timeout, and the timeout of a launch whose GPU code is compiled first. TensorFlow's own warning says "30 minutes
#: or longer".
TIMEOUT, FIRST_START_TIMEOUT = 600.0, 7200.0
#: HARNESS_ENGINE_SECONDS: timeout for an answer of Docker Engine, or for the next part of an answer.
ENGINE_TIMEOUT = 60

#: The highest and the lowest precision that a claim requires, unless --precision is passed.
CLAIM_PRECISION = (0.03, 0.25)
