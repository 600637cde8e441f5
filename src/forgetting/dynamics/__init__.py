"""Runs, in which tasks are learned one after another: the loop, the trajectory of a run, ensembles of runs, metrics."""
