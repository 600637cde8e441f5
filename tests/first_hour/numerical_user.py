"""A numerical user: from a sparse system in files to its solution, whose residual is checked, with a guarantee."""

import numpy as np
from scipy import sparse

import forgetting as fg

A, b = sparse.load_npz("A.npz"), np.load("b.npy")
solution = fg.solve(A, b, tol=1e-8)
print(solution)

residual = np.linalg.norm(A @ solution.x - b) / np.linalg.norm(b)
print(f"relative residual {residual:.1e}, computed by NumPy")
assert solution.converged
assert residual <= 1e-8
print(solution.guarantee)
np.save("x.npy", solution.x)
