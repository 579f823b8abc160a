"""The distance between words."""


def compute(pairs):
    """Return the edit distance of each pair of words."""
    return [distance(one, other) for one, other in pairs]


def distance(one, other):
    """Return the number of characters to insert, delete or replace."""
    previous = list(range(len(other) + 1))
    for row, letter in enumerate(one):
        current = [row + 1]
        for column, facing in enumerate(other):
            replaced = previous[column] + (letter != facing)
            current.append(min(current[column] + 1, previous[column + 1] + 1, replaced))
        previous = current
    return previous[-1]
