"""`make simulate`: how often the statistics are right, on simulated launches whose true ratio is known.

Only the machine and the launches are simulated. Everything from the paired log ratios on is the code of harness
(`harness.analysis`). `tests/analysis/test_simulation.py` runs a short version of these simulations.
"""
