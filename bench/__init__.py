"""`make bench`: measure the performance of harness on this machine, and print it as Markdown.

The results are in bench/performance.md. Ratios come from interleaved pairs, so a drift of the machine's
speed doesn't affect them. Nothing here is a test.
"""
