"""Realistic tasks that need no network: digits, diabetes patients, drifting sensors; and held-out rows of any tasks.

>>> from forgetting import datasets
>>> datasets.diabetes(bins=5)
RegressionTasks(T=5, d=10, rows=442)
"""

from forgetting._names import only
from forgetting.datasets.images import digits, image_tasks, mnist
from forgetting.datasets.patients import diabetes
from forgetting.datasets.sensors import sensor_drift
from forgetting.datasets.splitting import hold_out

__all__ = ["diabetes", "digits", "hold_out", "image_tasks", "mnist", "sensor_drift"]
__dir__ = only(__all__)
