"""The default values that users can see, each defined once.

Help texts, errors, rules and the table in docs/reference/cli.md (`make schema`) use these values. Shares
are fractions of 1 (0.03 is 3 %), and times are in seconds.
"""

#: --margin: two cells count as the same if their times differ by less than this share.
MARGIN = 0.03

#: The probability that all intervals of a table contain the true ratios.
LEVEL = 0.95
#: The largest probability of any wrong verdict in a table. It is rounded, because 1 - 0.95 isn't exactly 0.05.
ALPHA = round(1.0 - LEVEL, 9)

#: --rounds. ROUNDS: the rounds of a run that nothing ends earlier. MOST_ROUNDS: the limit with --precision or --budget.
#: MOST_CLAIM_ROUNDS: the limit in a run of claims.
ROUNDS, MOST_ROUNDS, MOST_CLAIM_ROUNDS = 5, 100, 30
#: The fewest rounds for a verdict. For a difference that is certainly larger than ×1.5, two rounds are enough.
FEWEST_ROUNDS = 3
#: --rounds of `harness history confirm`, and the largest number if its result stays unclear.
CONFIRM_ROUNDS, MOST_CONFIRM_ROUNDS = 10, 30
#: --confirmations: how many series that didn't change are measured again per month, on a machine.
CONFIRMATIONS = 4
#: --calls of `harness profile`.
PROFILED_CALLS = 50

#: --budget of `harness bisect`.
BISECT_BUDGET = 900.0
#: --budget of `harness run`. With this budget, a small script is compared in two releases within 2 minutes, including
#: preparation and report. A slow script gets three rounds, even if they take longer.
SCRIPT_BUDGET = 90.0
#: --budget of `harness repro`: per issue, and the limit for all issues together.
ISSUE_BUDGET, MOST_ISSUES_BUDGET = 300.0, 7200.0

#: --warmup and --measure: the shortest and the longest time that a pilot can choose.
WARMUP, MEASURE = (0.1, 5.0), (0.25, 5.0)
#: --warmup and --measure of `harness repro`. Most claimed effects are large, so short launches are enough.
CLAIM_WARMUP, CLAIM_MEASURE = 0.2, 0.5
#: Seconds that a launch of `harness bisect` warms up and measures. For a clear difference, this is enough.
SEARCH_WARMUP, SEARCH_MEASURE = 1.0, 1.0

#: TIMEOUT: --timeout. FIRST_START_TIMEOUT: the timeout of a launch whose GPU code must be compiled first. TensorFlow
#: itself warns that this takes "30 minutes or longer".
TIMEOUT, FIRST_START_TIMEOUT = 600.0, 7200.0
#: HARNESS_ENGINE_SECONDS: the timeout for a response of Docker Engine, or for the next part of a response.
ENGINE_TIMEOUT = 60

#: The highest and the lowest precision that a claim requires if --precision isn't passed.
CLAIM_PRECISION = (0.03, 0.25)
