"""Finds the nearest points."""

import numpy as np


def compute(points):
    """Return the index of the nearest other point of each point."""
    nearest = []
    for index in range(len(points)):
        difference = points - points[index]
        distances = np.sqrt((difference**2).sum(axis=1))
        distances[index] = np.inf
        nearest.append(int(np.argmin(distances)))
    return nearest
