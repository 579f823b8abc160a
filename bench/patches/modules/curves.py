"""Values of polynomials."""


def compute(curves):
    """Return the values of each polynomial at 40 places between 0 and 1."""
    return [[value(factors, place / 40) for place in range(40)] for factors in curves]


def value(factors, place):
    """Return the value of a polynomial."""
    total = 0.0
    for power, factor in enumerate(factors):
        total += factor * place**power
    return total
