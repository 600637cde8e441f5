"""Readers of tasks: files, DataFrames, arrays and tensors, all by way of one sheet of rows."""

from forgetting.tasks.readers.loading import ENDINGS, load, read, warn_of
from forgetting.tasks.readers.rows import Reading, task_notes
from forgetting.tasks.readers.sheet import PREPARING, Columns

__all__ = ["ENDINGS", "PREPARING", "Columns", "Reading", "load", "read", "task_notes", "warn_of"]
