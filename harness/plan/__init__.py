"""Planning: which cells a selection contains, their groups, and the order of launches in rounds. Pure functions."""
