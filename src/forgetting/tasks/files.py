"""Problems on disk: one .npz file, no pickle, written whole or not at all."""

from __future__ import annotations

import zipfile
import zlib
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forgetting._arrays import is_sparse
from forgetting.errors import ProblemFileError
from forgetting.storage.atomic import write

if TYPE_CHECKING:
    from forgetting.tasks.classification import ClassificationTasks
    from forgetting.tasks.regression import RegressionTasks

__all__ = [
    "classification_arrays",
    "classification_from",
    "load_classification",
    "load_regression",
    "read_arrays",
    "regression_arrays",
    "regression_from",
    "save_classification",
    "save_regression",
    "write_atomically",
]

FORMAT = "forgetting/regression/1"
CLASSIFICATION = "forgetting/classification/1"


def save_regression(tasks: RegressionTasks, path: str | PathLike[str]) -> None:
    """Write the distinct tasks, stacked, and which one every task is."""
    write_atomically(Path(path), regression_arrays(tasks))


def regression_arrays(tasks: RegressionTasks) -> dict[str, Any]:
    """The arrays of a file: distinct tasks, stacked, and which one every task is."""
    matrices, labels = tasks._matrices, tasks._labels
    arrays: dict[str, Any] = {
        "format": np.array(FORMAT),
        "rows": np.array([matrix.shape[0] for matrix in matrices]),
        "sparse": np.array([is_sparse(matrix) for matrix in matrices]),
        "y": np.concatenate(labels),
        "index": tasks._index,
        "names": np.array(tasks.names),
        "loss": np.array(tasks.loss_kind),
        "rtol": np.array(tasks.rtol),
        "rank_tol": np.array(np.nan if tasks.rank_tol is None else tasks.rank_tol),
    }
    if arrays["sparse"].any():
        import scipy.sparse as sp

        stacked = sp.csr_array(sp.vstack([sp.csr_array(matrix) for matrix in matrices]))
        arrays |= {"data": stacked.data, "indices": stacked.indices, "indptr": stacked.indptr}
        arrays["dim"] = np.array(tasks.dim)
    else:
        arrays["X"] = np.concatenate(matrices)
    return arrays


def load_regression(path: str | PathLike[str]) -> RegressionTasks:
    """Read what `save_regression` wrote, or say what is wrong with the file."""
    return regression_from(read_arrays(Path(path)), path)


def regression_from(arrays: dict[str, Any], path: str | PathLike[str]) -> RegressionTasks:
    """The tasks whose `regression_arrays` these are; `path` is for messages."""
    from forgetting.tasks.regression import RegressionTasks

    if str(arrays.get("format")) != FORMAT:
        raise ProblemFileError(f"{path}: no collection of regression tasks (its 'format' entry is not {FORMAT!r})")
    try:
        rows = arrays["rows"]
        if int(rows.sum()) != len(arrays["y"]):
            raise ValueError(f"{int(rows.sum())} rows announced, {len(arrays['y'])} labels found")
        cuts = np.cumsum(rows)[:-1]
        starts = np.concatenate([[0], cuts])
        if "X" in arrays:
            matrices: list[Any] = np.split(arrays["X"], cuts)
        else:
            shape = (int(rows.sum()), int(arrays["dim"]))
            from scipy.sparse import csr_array

            stacked = csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
            matrices = [stacked[start : start + count] for start, count in zip(starts, rows, strict=True)]
            flags = arrays["sparse"]
            matrices = [m if flag else m.toarray() for m, flag in zip(matrices, flags, strict=True)]
        labels = np.split(arrays["y"], cuts)
        rank_tol = float(arrays["rank_tol"])
        return RegressionTasks(
            [matrices[i] for i in arrays["index"]],
            [labels[i] for i in arrays["index"]],
            loss=str(arrays["loss"]),  # type: ignore[arg-type]
            rank_tol=None if np.isnan(rank_tol) else rank_tol,
            rtol=float(arrays["rtol"]),
            names=[str(name) for name in arrays["names"]],
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ProblemFileError(f"{path}: damaged collection of regression tasks ({error})") from error


def save_classification(tasks: ClassificationTasks, path: str | PathLike[str]) -> None:
    """Write the rows, stacked, their labels as -1 and +1, and the two labels these stand for."""
    write_atomically(Path(path), classification_arrays(tasks))


def classification_arrays(tasks: ClassificationTasks) -> dict[str, Any]:
    """The arrays of a file: rows and signs, stacked, the number of rows of each task, names and labels."""
    parts = [tasks.task(task) for task in range(tasks.num_tasks)]
    return {
        "format": np.array(CLASSIFICATION),
        "rows": tasks.num_rows,
        "X": np.concatenate([matrix for matrix, _ in parts]),
        "y": np.concatenate([label for _, label in parts]).astype(np.int8),
        "label_names": np.array(tasks.label_names),
        "names": np.array(tasks.names),
    }


def load_classification(path: str | PathLike[str]) -> ClassificationTasks:
    """Read what `save_classification` wrote, or say what is wrong with the file."""
    return classification_from(read_arrays(Path(path)), path)


def classification_from(arrays: dict[str, Any], path: str | PathLike[str]) -> ClassificationTasks:
    """The tasks whose `classification_arrays` these are; `path` is for messages."""
    from forgetting.tasks.classification import ClassificationTasks

    if str(arrays.get("format")) != CLASSIFICATION:
        raise ProblemFileError(
            f"{path}: no collection of classification tasks (its 'format' entry is not {CLASSIFICATION!r})"
        )
    try:
        rows, signs = arrays["rows"], arrays["y"]
        if not int(rows.sum()) == len(signs) == len(arrays["X"]):
            raise ValueError(f"{int(rows.sum())} rows announced, {len(signs)} labels and {len(arrays['X'])} rows found")
        if not np.isin(signs, (-1, 1)).all():
            raise ValueError("labels other than -1 and 1")
        cuts = np.cumsum(rows)[:-1]
        labels = arrays["label_names"][(signs + 1) // 2]
        return ClassificationTasks(
            np.split(arrays["X"], cuts),
            np.split(labels, cuts),
            names=[str(name) for name in arrays["names"]],
            label_names=arrays["label_names"].tolist(),
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ProblemFileError(f"{path}: damaged collection of classification tasks ({error})") from error


def read_arrays(path: Path) -> dict[str, Any]:
    """All arrays of an .npz file, or an error that says what is wrong with it; nothing is unpickled."""
    try:
        with path.open("rb") as handle:
            if not zipfile.is_zipfile(handle):
                raise ProblemFileError(
                    f"{path}: not a readable .npz file (no archive; single arrays and pickles are never loaded)"
                )
            handle.seek(0)
            archive = np.load(handle, allow_pickle=False)
            return {name: archive[name] for name in archive.files}
    except ProblemFileError:
        raise
    except FileNotFoundError:
        raise ProblemFileError(f"{path}: no such file") from None
    # all of these are what NumPy and zipfile raise on one kind of damage or another
    except (OSError, ValueError, EOFError, RuntimeError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        reason = "it holds pickled objects, which are never loaded" if "pickle" in str(error) else str(error)
        raise ProblemFileError(f"{path}: not a readable .npz file ({reason})") from error


def write_atomically(path: Path, arrays: dict[str, Any]) -> None:
    """Write an .npz file, whole or not at all."""
    write(path, lambda handle: np.savez_compressed(handle, **arrays))
