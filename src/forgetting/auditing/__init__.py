"""The audit of a user's tasks: compares orderings and tasks, and recommends what to do.

>>> import forgetting as fg
>>> audit = fg.audit(fg.families.catastrophic(3.0))
>>> print(audit.recommendation[0])
The order matters: the worst order there is forgets 0.193 in one pass, ...
"""

from forgetting.auditing import class_orders as _class_orders  # noqa: F401  (the audit of this kind registers itself)
from forgetting.auditing.accuracy_matrices import ForgottenTask, MatrixAudit, MatrixMetric, OrderEffect
from forgetting.auditing.api import audit
from forgetting.auditing.class_order_result import (
    ClassOrderAudit,
    ClassOrderMeasure,
    FewSeeds,
    FoundClassOrder,
    PairEffect,
    PlaceEffect,
)
from forgetting.auditing.duplicates import Duplicate, find_duplicates
from forgetting.auditing.findings import Case, Fit, Offer
from forgetting.auditing.influence import Influence, forgetting_matrix, random_influence
from forgetting.auditing.landscapes import Landscape, landscape
from forgetting.auditing.measures import Measure
from forgetting.auditing.order_search import OrderSearch, search_orders
from forgetting.auditing.order_statistics import (
    OrderDisparity,
    OrderShare,
    OrderSpread,
    OrderVariance,
    SeedAgreement,
    order_disparity,
    share_of_order,
)
from forgetting.auditing.ordering_values import Guarantee, OrderingRow, Pass, Split
from forgetting.auditing.orders import FoundOrder
from forgetting.auditing.preparation import apply_features, read_tasks, subsample_rows
from forgetting.auditing.result import Audit
from forgetting.auditing.task_rows import Outlier, TaskRow
from forgetting.auditing.verdict import Verdict
from forgetting.core.names import only
from forgetting.datasets import digits, image_tasks, mnist
from forgetting.geometry import Similarity, principal_angles
from forgetting.tasks import RandomFeatures
from forgetting.tasks.readers import Reading

__all__ = [
    "Audit",
    "Case",
    "ClassOrderAudit",
    "ClassOrderMeasure",
    "Duplicate",
    "FewSeeds",
    "Fit",
    "ForgottenTask",
    "FoundClassOrder",
    "FoundOrder",
    "Guarantee",
    "Influence",
    "Landscape",
    "MatrixAudit",
    "MatrixMetric",
    "Measure",
    "Offer",
    "OrderDisparity",
    "OrderEffect",
    "OrderSearch",
    "OrderShare",
    "OrderSpread",
    "OrderVariance",
    "OrderingRow",
    "Outlier",
    "PairEffect",
    "Pass",
    "PlaceEffect",
    "RandomFeatures",
    "Reading",
    "SeedAgreement",
    "Similarity",
    "Split",
    "TaskRow",
    "Verdict",
    "apply_features",
    "audit",
    "digits",
    "find_duplicates",
    "forgetting_matrix",
    "image_tasks",
    "landscape",
    "mnist",
    "order_disparity",
    "principal_angles",
    "random_influence",
    "read_tasks",
    "search_orders",
    "share_of_order",
    "subsample_rows",
]
__dir__ = only(__all__)
