"""Scripts of users are run by tests, in folders with their files; they have no doctests."""

collect_ignore = ["theorist.py", "class_orders.py", "designer.py", "designer_with_a_frame.py", "numerical_user.py"]
