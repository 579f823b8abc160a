"""Selections and axes to cells, cells to groups, groups to seeded rounds. Pure functions."""
