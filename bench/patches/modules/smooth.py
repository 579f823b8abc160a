"""Smooths a series."""

import numpy as np


def compute(values, width=9):
    """Return the mean of each window of the series."""
    means = []
    for start in range(len(values) - width + 1):
        window = np.array(values[start : start + width])
        means.append(window.sum() / width)
    return np.array(means)
