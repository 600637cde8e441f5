"""Realistic tasks that need no network: digits, diabetes patients, drifting sensors; and held-out rows of any tasks.

`tomography` is no task but a linear system, for `fg.solve`.

>>> from forgetting import datasets
>>> datasets.diabetes(bins=5)
RegressionTasks(T=5, d=10, rows=442)
"""

from forgetting.core.names import only
from forgetting.datasets.images import digits, image_tasks, mnist
from forgetting.datasets.measurements import diabetes, sensor_drift
from forgetting.datasets.scans import Tomography, tomography
from forgetting.datasets.splitting import hold_out

__all__ = ["Tomography", "diabetes", "digits", "hold_out", "image_tasks", "mnist", "sensor_drift", "tomography"]
__dir__ = only(__all__)
