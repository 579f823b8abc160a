"""`make simulate`: how often the statistics are right, on simulated launches whose truth is known.

What is simulated is the machine and the launches; everything from the paired log-ratios on is the harness's own code
(`harness.analysis`). `tests/analysis/test_simulation.py` runs a short version of the same.
"""
