"""Files: checked when they are read, and written atomically; matrices and rows that are read when they are needed."""
