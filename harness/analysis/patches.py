"""Signs that a faster version didn't do the work: a cache between calls, and calls that are gone."""

from harness.analysis.comparisons import Compared
from harness.analysis.results import Results

#: A version is tested for a cache if it takes at most this share of the time, and saves at least this number of calls.
#: It has a cache if its first call, compared with the other version's, makes at least the share FILLING of the saved
#: calls.
CACHED_TIME, SAVED_CALLS, FILLING = 0.8, 2.0, 0.5
#: The work is gone if at most this share of the calls is left, of at least this many, and of the time.
LEFT_CALLS, FEWEST_CALLS, LEFT_TIME = 0.05, 20.0, 0.1


def find_cheat(results: Results, compared: Compared) -> str:
    """Return why a faster cell seems to leave out work, as a clause; empty if it doesn't, or if no calls were counted.

    Either later steps are served from what the first one stored, or almost no calls are left.
    """
    work, other = results.work.get(compared.cell), results.work.get(compared.other)
    if not work or not other or compared.ratio.value > CACHED_TIME:
        return ""
    saved = other.calls - work.calls
    if work.first is not None and other.first is not None and saved >= SAVED_CALLS:
        # the difference excludes one-time work of both versions, such as tracing
        filling = (work.first - work.calls) - (other.first - other.calls)
        if filling >= FILLING * saved:
            return (
                f"the first step makes {work.first:,.0f} calls, and later {work.calls:,.0f} of {other.calls:,.0f}: "
                "they get what the first one stored"
            )
    # without the call of the step itself
    left, before = work.calls - 1.0, other.calls - 1.0
    if compared.ratio.value > LEFT_TIME or before < FEWEST_CALLS or left > LEFT_CALLS * before:
        return ""
    return f"a step makes {work.calls:,.0f} calls instead of {other.calls:,.0f}, so it may leave out the work"
