"""Makes a plan from a request: the cells to run, and the reasons why other cells can't run. It launches nothing."""
