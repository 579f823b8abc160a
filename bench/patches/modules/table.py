"""Reads tables of text."""


def compute(text):
    """Return the sum of the second column for each name in the first column."""
    totals = {}
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < 2:
            continue
        name, value = cells[0], float(cells[1])
        totals[name] = totals.get(name, 0.0) + value
    return totals
