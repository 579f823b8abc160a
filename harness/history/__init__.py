"""The history: recorded runs, the changes in their results over time, and alerts about these changes.

The steps of a nightly run, each in its module:

1. `summary` reduces a run to the results that a history stores, and `folder` stores them.
2. `series` makes a time series of each cell, and `segments` splits it where its results can't be compared.
3. `levels` fits the levels of a segment, and `detection` tests the steps between them.
4. `states` decides on each change: tentative, suspected, or confirmed or refuted by an earlier confirmation.
5. `confirm` measures both sides of a suspected change again, in one run.
6. `alerts` describes confirmed slowdowns. `nightly_file` has the exceptions.
7. `issues` compares these alerts with the issues on GitHub, and plans what to open, edit or close.

For readers, `page` (with `chart`) shows all series, and `changes` what changed since a run. `phrases` has the names and
sentences that they share.
"""
