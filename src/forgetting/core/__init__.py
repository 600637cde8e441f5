"""Input and text, for every module: arrays and numbers, names and plugins, memory, progress."""
