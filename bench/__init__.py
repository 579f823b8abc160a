"""`make bench`: the figures of docs/performance.md, measured on the machine at hand and printed as Markdown.

Ratios come from interleaved pairs, so that they hold where the machine's speed drifts. Nothing here is a test.
"""
