"""What happens when tasks are learned one after another: the loop, its trajectory, ensembles of runs, the metrics."""
