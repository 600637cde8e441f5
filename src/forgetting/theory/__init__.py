"""Every statement of the theory: its right-hand side, its check, its source and its status, declared once.

`forgetting.bounds` and `forgetting.claims` are the public views.
"""

from forgetting.theory import paper, later  # noqa: F401, I001  (they register their statements, in this order)
