"""Measures the same step in the same two environments for the same time, with `harness matrix` and airspeed velocity.

asv isn't a dependency of the project. It gets a separate environment in the folder of the comparison.
"""
