"""Joins overlapping spans."""


def compute(spans):
    """Return the spans without overlaps, in order."""
    joined = []
    for first, last in sorted(spans, key=lambda span: span[0]):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined
