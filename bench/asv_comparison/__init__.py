"""The same step, in the same two environments and for the same time, by `harness matrix` and by airspeed velocity.

asv is no dependency of the project: it gets an environment of its own, in the folder where the comparison works.
"""
