"""Checks and conversions of the arrays and numbers that users pass. Code behind these functions trusts its arrays."""

from __future__ import annotations

import hashlib
import operator
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from forgetting.core.memory import require_memory
from forgetting.core.numerical import SQUARED, VANISHING
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
Seed = int | np.random.Generator | np.random.SeedSequence | None  # the seeds that `seed_from` takes
Kind = TypeVar("Kind")
Function = TypeVar("Function", bound=Callable[..., Any])
LARGEST = 2**63 - 1  # the largest 64-bit integer


def as_kind(value: Kind, kind: Any, what: str, where: str = "") -> Kind:
    """Return `value` if it is an instance of `kind` (a class, a protocol or a tuple of classes); else raise.

    >>> as_kind(3, dict, "a dict of numbers", "extras: ")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: extras: expected a dict of numbers, got 3
    """
    if isinstance(value, type) or not isinstance(value, kind):  # a class has the methods of a protocol, too
        telling = isinstance(value, str | int | float | type | None)
        raise InvalidInputError(f"{where}expected {what}, got {f'{value!r:.80}' if telling else type(value).__name__}")
    return value


def real_array(value: Any, what: str, *, shape: tuple[int, ...] | None = None, squares: bool = False) -> Array:
    """Convert `value` to a float64 array of finite numbers; an error names the first entry that is not finite.

    With `squares`, entries whose squares overflow are refused too. `shape` is checked before any copy is made: a
    broadcast view may stand for more numbers than memory can hold.

    >>> real_array([1, 2], "y")
    array([1., 2.])
    >>> real_array([[1.0, float("nan")]], "task 0, X")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: task 0, X: entry at row 0, column 1 is nan; remove or impute it first
    """
    array = numbers(value, what, shape=shape)
    check_finite(array, what, squares=squares)
    return array


def numbers(value: Any, what: str, *, shape: tuple[int, ...] | None = None) -> Array:
    """Convert `value` to a float64 array of real numbers; NaN and infinity are allowed.

    >>> numbers([1, float("inf")], "hi")
    array([ 1., inf])
    """
    if isinstance(value, np.ma.MaskedArray) and np.any(value.mask):
        raise InvalidInputError(f"{what}: {int(np.sum(value.mask))} masked entries; fill or leave them out first")
    raw = any_array(value, what)
    if raw.dtype.kind not in "biuf":
        names = {"c": "complex numbers", "U": f"text such as {str(raw.flat[0]) if raw.size else ''!r:.40}"}
        kind = names.get(raw.dtype.kind, f"dtype {raw.dtype}")
        raise InvalidInputError(f"{what}: expected real numbers, got {kind}; convert to float64 first")
    if shape is not None and raw.shape != shape:
        raise InvalidInputError(f"{what}: expected shape {shape}, got {raw.shape}")
    if not raw.flags.forc or raw.dtype != np.float64:  # copied to be read
        require_memory(8.0 * raw.size, f"{what}: {raw.size} numbers", "give fewer")
    with np.errstate(over="ignore"):  # longdouble numbers beyond the range of float64 become infinite
        return np.asarray(raw, dtype=np.float64)


def any_array(value: Any, what: str) -> NDArray[Any]:
    """Convert `value` to an array of any dtype; nested lists of different lengths are refused.

    A tensor of torch, and a list of tensors, gives the numbers without their gradient, from whatever device.

    >>> any_array([[1.0], [1.0, 2.0]], "k")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: k: rows of different lengths do not make an array
    """
    if _is_tensor(value):
        return _from_tensor(value, what)
    if isinstance(value, list | tuple) and value and _is_tensor(value[0]):
        value = [_from_tensor(item, what) if _is_tensor(item) else item for item in value]
    try:
        return np.asarray(value)
    except ValueError:
        raise InvalidInputError(f"{what}: rows of different lengths do not make an array") from None


def _is_tensor(value: Any) -> bool:
    """Whether `value` is a tensor as torch has them; torch is not imported to find out."""
    parts = ("detach", "cpu", "numpy")
    return not isinstance(value, type) and all(callable(getattr(value, part, None)) for part in parts)


def _from_tensor(tensor: Any, what: str) -> NDArray[Any]:
    try:
        there = tensor.detach().cpu()
        if str(getattr(there, "dtype", "")) == "torch.bfloat16":  # NumPy has no such numbers; float64 holds them all
            there = there.double()
        return np.asarray(there.numpy())
    except (TypeError, RuntimeError) as error:  # a sparse tensor, or one of a dtype that NumPy lacks
        raise InvalidInputError(f"{what}: NumPy cannot hold this tensor ({error}); make it dense and float64") from None


def one_column(array: NDArray[Any]) -> NDArray[Any]:
    """A matrix of one column as a vector, any other array as it is.

    >>> one_column(np.array([[1], [2]])), one_column(np.eye(2)).shape
    (array([1, 2]), (2, 2))
    """
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view; the array itself stays writable."""
    view = array.view()
    view.setflags(write=False)
    return view


def sealed(value: Any) -> Any:
    """The value with arrays that are read-only: an array, a scipy.sparse CSR array, or lists and tuples of them.

    >>> parts = sealed([np.zeros(2), "word"])
    >>> parts[0].flags.writeable, parts[1]
    (False, 'word')
    """
    if isinstance(value, np.ndarray):
        return read_only(value)
    if is_sparse(value):
        for part in ("data", "indices", "indptr"):
            setattr(value, part, read_only(getattr(value, part)))
        return value
    if type(value) in (list, tuple):
        return type(value)(map(sealed, value))
    return value


def is_sparse(value: Any) -> bool:
    """Whether `value` is a scipy.sparse matrix or array; scipy.sparse is not imported to find out."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(value))


def as_dense(matrix: Any) -> Array:
    """A matrix as a NumPy array, copied only if it is sparse.

    >>> import scipy.sparse as sp
    >>> as_dense(sp.eye_array(2))
    array([[1., 0.],
           [0., 1.]])
    """
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix)


def fingerprint(*arrays: Any) -> bytes:
    """The SHA-256 of the shapes and numbers of dense float64 arrays and CSR arrays, whatever their memory layout.

    >>> matrix = np.arange(4.0).reshape(2, 2)
    >>> fingerprint(matrix) == fingerprint(np.asfortranarray(matrix)), fingerprint(matrix) == fingerprint(matrix.T)
    (True, False)
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape} {is_sparse(array)}".encode())
        parts: Any = [array]
        if is_sparse(array):
            parts = array.indptr.astype(np.int64), array.indices.astype(np.int64), array.data
        elif array.ndim == 2 and not array.flags.c_contiguous:
            parts = array  # row by row, so that no copy of the whole is made
        for part in parts:
            digest.update(np.ascontiguousarray(part).data)
    return digest.digest()


def check_index(data: Any, indices: Any, starts: Any, shape: tuple[int, ...]) -> None:
    """Raise unless compiled loops may follow the indices of compressed rows, or of columns with `shape` turned round.

    `check_format` of scipy overlooks a negative last start.

    >>> check_index(np.ones(1), np.array([3]), np.array([0, 1]), (1, 3))
    Traceback (most recent call last):
    ValueError: an index is beyond its shape
    """
    if len(starts) != shape[0] + 1 or starts[0] != 0 or starts[-1] != len(indices) or len(data) != len(indices):
        raise ValueError("its lengths disagree")
    if (starts[1:] < starts[:-1]).any():
        raise ValueError("its rows or columns overlap")
    if len(indices) and not 0 <= indices.min() <= indices.max() < shape[1]:
        raise ValueError("an index is beyond its shape")


def check_finite(array: Any, what: str, *, squares: bool = False) -> None:
    """Raise if a dense array or scipy.sparse CSR array holds NaN or infinity; the error gives the first position.

    With `squares`, entries whose squares overflow are refused too, as are matrices whose squares all underflow: the
    norm of such an array would be infinite, or 0.
    """
    stored = array.data if is_sparse(array) else array
    with np.errstate(all="ignore"):
        flat = stored.ravel(order="K")
        total = np.dot(flat, flat)  # one pass and no temporary
        if total < SQUARED and (total > VANISHING or array.ndim < 2 or not flat.any()):
            return
    finite = np.isfinite(stored)
    if finite.all():
        if not squares:
            return
        what_happens = "overflow" if total > 1 else "vanish"
        most = float(np.max(np.abs(stored)))
        raise InvalidInputError(f"{what}: entries of size {most:g} {what_happens} when squared; rescale them")
    where = tuple(int(i) for i in np.argwhere(~finite)[0])
    value = stored[where]
    if is_sparse(array):
        where = (int(np.searchsorted(array.indptr, where[0], side="right")) - 1, int(array.indices[where[0]]))
    place = f"at row {where[0]}, column {where[1]}" if len(where) == 2 else ", ".join(map(str, where))
    raise InvalidInputError(f"{what}: entry {place} is {value}; remove or impute it first")


def as_vector(value: Any, length: int, what: str) -> Array:
    """Convert `value` to a float64 vector of the given length with a finite norm; no copy if `value` is such a vector.

    >>> as_vector([0, 1], 3, "w0")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: w0: expected shape (3,), got (2,)
    """
    return as_point(value, (length,), what)


def as_point(value: Any, shape: tuple[int, ...], what: str) -> Array:
    """Convert `value` to a float64 array of the given shape with a finite norm; no copy if `value` is such an array.

    >>> as_point([[0, 1]], (1, 2), "w0")
    array([[0., 1.]])
    """
    plain = type(value) is np.ndarray and value.dtype == np.float64 and value.shape == shape
    if plain and np.vdot(value, value) < SQUARED:  # `vdot` does not warn of overflow
        return value  # type: ignore[no-any-return]
    return real_array(value, what, shape=shape, squares=True)


def as_count(value: Any, what: str, *, least: int = 0, most: int | None = LARGEST) -> int:
    """Convert `value` to a whole number between `least` and `most` (None: no upper limit).

    >>> as_count(1e3, "k")
    1000
    >>> as_count(3.5, "k")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: k must be a whole number, got 3.5
    """
    number = value[()] if type(value) is np.ndarray and value.ndim == 0 else value
    try:
        is_whole = isinstance(number, float | np.floating) and float(number).is_integer()
        count = int(number) if is_whole else operator.index(number)
    except TypeError:
        raise InvalidInputError(f"{what} must be a whole number, got {_said(value)}") from None
    if count < least:
        raise InvalidInputError(f"{what} must be at least {least}, got {_said(value)}")
    if most is not None and count > most:
        got = f"{count:g}" if count.bit_length() < 1024 else _said(value)  # a float holds less than 2^1024
        raise InvalidInputError(f"{what} must be at most {most:g}, got {got}")
    return count


def as_seed(value: Any, what: str = "seed") -> int:
    """Convert `value` to a whole number of at least 0; there is no upper limit."""
    return as_count(value, what, most=None)


def seed_from(value: Seed) -> int:
    """The seed that a caller gives: a number, or one drawn from a NumPy generator, a SeedSequence or None (fresh).

    Results keep this number, so that any of them can be computed again. A generator moves on by one draw.

    >>> seed_from(7), seed_from(np.random.default_rng(0)) == seed_from(np.random.default_rng(0))
    (7, True)
    >>> seed_from(None) == seed_from(None)
    False
    """
    if value is None:
        value = np.random.SeedSequence()
    if isinstance(value, np.random.SeedSequence):
        return int(value.generate_state(1, np.uint64)[0] >> 1)  # fits into an int64, and so into any file
    if isinstance(value, np.random.Generator):
        return int(value.integers(2**63))
    return as_seed(value)


def _said(value: Any) -> str:
    """The repr of a value for an error message, at most 60 characters long."""
    try:
        words = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        return f"a number of {value.bit_length()} bits"
    return words if len(words) <= 60 else f"{words[:57]}..."


def as_number(
    value: Any,
    what: str,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> float:
    """Convert `value` to a finite float: > `above`, >= `least`, < `below` and <= `most`, where these are given.

    >>> as_number(-1, "lam", above=0)
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: lam must be greater than 0, got -1
    """
    try:
        if isinstance(value, str) or (isinstance(value, np.ma.MaskedArray) and np.any(value.mask)):
            raise TypeError
        if isinstance(value, np.generic | np.ndarray) and value.dtype.kind == "c":
            raise TypeError  # float() would drop the imaginary part
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{what} must be a number, got {_said(value)}") from None
    except OverflowError:
        raise InvalidInputError(f"{what} must be at most 1.8e+308 in size, got {_said(value)}") from None
    if not np.isfinite(number):
        raise InvalidInputError(f"{what} must be finite, got {_said(value)}")
    if above is not None and not number > above:
        raise InvalidInputError(f"{what} must be greater than {above:g}, got {_said(value)}")
    if least is not None and not number >= least:
        raise InvalidInputError(f"{what} must be at least {least:g}, got {_said(value)}")
    if below is not None and not number < below:
        raise InvalidInputError(f"{what} must be less than {below:g}, got {_said(value)}")
    if most is not None and not number <= most:
        raise InvalidInputError(f"{what} must be at most {most:g}, got {_said(value)}")
    return number


def as_flag(value: Any, what: str) -> bool:
    """Return `value` as a bool; anything but True or False is refused.

    >>> as_flag("no", "repeat")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: repeat must be True or False, got 'no'
    """
    if not isinstance(value, bool | np.bool_):
        raise InvalidInputError(f"{what} must be True or False, got {value!r:.80}")
    return bool(value)


def as_word(value: Any, known: Iterable[str], what: str) -> Any:
    """Return `value` if it is one of the known words; else raise.

    >>> as_word("med", ("sum", "mean"), "loss")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: loss must be 'sum' or 'mean', got 'med'
    """
    words = list(known)
    if not isinstance(value, str) or value not in words:
        listed = (
            f"{', '.join(map(repr, words[:-1]))} or {words[-1]!r}" if len(words) < 4 else f"one of {', '.join(words)}"
        )
        raise InvalidInputError(f"{what} must be {listed}, got {_said(value)}")
    return value


def as_path(value: Any, what: str = "path") -> Path:
    """The name of a file or a folder as a `Path`; an error for anything else, as for bytes.

    >>> as_path(3)
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: path must be a text or a pathlib.Path, got 3
    """
    name = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(name, str):
        raise InvalidInputError(f"{what} must be a text or a pathlib.Path, got {_said(value)}")
    return Path(name)


def as_list(value: Any, what: str) -> list[Any]:
    """The members of a list, an array or another iterable; an error for single values and texts.

    >>> as_list(3, "names")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: names must be a list, got 3
    """
    try:
        if isinstance(value, str | bytes | dict | type):
            raise TypeError
        count = len(value) if hasattr(value, "__len__") else 0
        require_memory(
            64.0 * count, f"{what}: a list of {count}", "give fewer"
        )  # a broadcast view may be of any length
        return list(value)
    except TypeError:
        raise InvalidInputError(f"{what} must be a list, got {_said(value)}") from None


def as_function(value: Function, what: str) -> Function:
    """Return `value` if it can be called; else raise.

    >>> as_function(3, "callback")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: callback must be a function, got 3
    """
    if not callable(value):
        raise InvalidInputError(f"{what} must be a function, got {_said(value)}")
    return value


def as_task(task: int, num_tasks: int) -> int:
    """Return `task` as an int if 0 <= task < num_tasks; else raise."""
    number = as_count(task, "task")
    if number >= num_tasks:
        raise InvalidInputError(f"there is no task {number}; tasks are 0 to {num_tasks - 1}")
    return number


def task_numbers(order: Any, names: Sequence[str], what: str = "order") -> Any:
    """The order with task numbers in place of names of tasks; what holds no text is returned as it is.

    A text that is no name may spell a number: names come first.

    >>> task_numbers(["west", 0, "2"], ("north", "west", "south")), task_numbers((2, 0), ())
    ([1, 0, 2], (2, 0))
    >>> task_numbers(["wets"], ("north", "west"))
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: order[0]: no task 'wets'; did you mean 'west'? There are north, west
    """
    words = order
    if isinstance(order, np.ndarray) and order.dtype.kind in "UTO":
        require_memory(64.0 * order.size, f"{what}: {order.size} names of tasks", "give fewer")
        words = order.tolist()
    if not isinstance(words, list | tuple) or not any(isinstance(word, str) for word in words):
        return order
    numbers = []
    for place, word in enumerate(words):
        if isinstance(word, str) and word in names:
            if names.count(word) > 1:
                raise InvalidInputError(f"{what}[{place}]: several tasks are called {word!r:.60}; give their numbers")
            numbers.append(names.index(word))
        elif isinstance(word, str) and not word.isdecimal():
            raise InvalidInputError(f"{what}[{place}]: no task {word!r:.60}{nearest(word, names)}")
        else:
            numbers.append(int(word) if isinstance(word, str) else word)
    return numbers


def as_index(value: Sequence[int] | IntArray, bound: int | None, what: str, *, least: int = 0) -> IntArray:
    """Convert `value` to an int64 vector of numbers from `least` to bound - 1; bound None: of numbers from `least`.

    >>> as_index([0, 5], 3, "order")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: order[1] is 5, but must be between 0 and 2
    """
    raw = any_array(value, what)
    if raw.size == 0:
        return np.empty(0, dtype=np.int64)
    if raw.ndim != 1 or raw.dtype.kind not in "iu":
        raise InvalidInputError(f"{what} must be a sequence of whole numbers, got {raw.dtype} of shape {raw.shape}")
    require_memory(16.0 * raw.size, f"{what}: {raw.size} numbers", "give fewer")
    bad = np.flatnonzero((raw < least) | (raw >= (2**63 if bound is None else bound)))
    if bad.size:
        first = int(bad[0])
        span = (
            ("a task number" if least == 0 else f"at least {least}")
            if bound is None
            else f"between {least} and {bound - 1}"
        )
        raise InvalidInputError(f"{what}[{first}] is {raw[first]}, but must be {span}")
    return raw.astype(np.int64)
