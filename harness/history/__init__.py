"""The history: an index of stored runs, with time series of the results of the same cells."""
