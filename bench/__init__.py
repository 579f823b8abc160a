"""`make bench`: print the figures of docs/dev/validation/performance.md as Markdown, measured on this machine.

Ratios come from interleaved pairs, so that they hold where the machine's speed drifts. Nothing here is a test.
"""
