"""DataFrameDataset: the rows of a pandas data frame as samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._user_line import warn
from ...errors import ParamError, suggestion
from ...errors import TypeError as HybridNetTypeError
from ...ndarray._dtypes import numpy_dtype
from ...ndarray._lost_values import lost_value
from .dataset import GATHERING, ArrayDataset

__all__ = ["DataFrameDataset", "from_pandas"]


def _listed(columns: Any) -> list[Any]:
    return list(columns) if isinstance(columns, (list, tuple)) else [columns]


def _check_columns(frame: Any, columns: Sequence[Any], argument: str) -> None:
    known = list(frame.columns)
    for column in columns:
        if column not in known:
            raise ParamError(
                f"DataFrameDataset, {argument}: the frame has no column {column!r}",
                fix=suggestion(str(column), map(str, known)),
            )


def _check_complete(frame: Any, columns: Sequence[Any]) -> None:
    counts = {column: int(frame[column].isna().sum()) for column in columns}
    lacking = {str(column): count for column, count in counts.items() if count}
    if lacking:
        raise ParamError(
            "DataFrameDataset: values are missing (NaN)",
            given=", ".join(f"{count} in column {column!r}" for column, count in lacking.items()),
            because="every output and gradient that a NaN reaches is a NaN",
            fix="drop the rows with frame.dropna(), or fill them with frame.fillna(value)",
        )


def _is_number(column: Any) -> bool:
    kind = getattr(column.dtype, "kind", "O")
    return kind in "biuf" and getattr(column.dtype, "name", "") != "category"


def _numbers(frame: Any, columns: Sequence[Any], dtype: Any) -> np.ndarray:
    """Returns the columns as an array (rows, columns)."""
    others = [column for column in columns if not _is_number(frame[column])]
    if others:
        first = others[0]
        raise ParamError(
            "DataFrameDataset: columns",
            expected="columns of numbers",
            given=", ".join(f"{str(column)!r} of dtype {frame[column].dtype}" for column in others),
            fix=(
                f"convert it first, with frame[{first!r}].astype('category').cat.codes or pandas.get_dummies(frame), "
                "or name the columns to use with columns=[...]"
            ),
        )
    wanted = numpy_dtype(dtype)
    for column in columns:
        _check_values(frame[column], wanted)
    return np.ascontiguousarray(frame[list(columns)].to_numpy(dtype=wanted))


def _check_values(column: Any, dtype: np.dtype) -> None:
    """Raises ParamError for a value that dtype cannot hold; warns of integers that it rounds."""
    values = np.asarray(column.dropna() if column.hasnans else column)
    if values.dtype == object:  # pandas' own types of integers
        values = np.array(values.tolist())
    lost = lost_value(values, dtype)
    if lost is None and column.hasnans and dtype.kind in "biu":
        lost = np.nan
    if lost is not None:
        raise ParamError(
            f"DataFrameDataset: column {str(column.name)!r}",
            expected=f"values that {dtype.name} holds",
            given=str(lost),
            fix="pass dtype='float64', or leave the column out with columns=[...]",
        )
    rounded = lost_value(values, dtype, exact=True)
    if rounded is not None:
        warn(
            f"DataFrameDataset: column {str(column.name)!r} holds integers that {dtype.name} rounds, such as "
            f"{rounded}: leave a column of ids out with columns=[...], pass dtype='int64' if all columns are integers, "
            "or as_dict=True, which keeps the type of each column."
        )


def _sorted(values: Any) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:  # values of different types
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))


def _codes(column: Any) -> tuple[np.ndarray, list[Any]]:
    """Returns the numbers of the classes of a column, and the classes: sorted, or in the order of the categories."""
    classes = list(column.cat.categories) if column.dtype.name == "category" else _sorted(column.unique())
    number = {value: i for i, value in enumerate(classes)}
    return np.array([number[value] for value in column], np.int32), classes


class DataFrameDataset(ArrayDataset):
    """The rows of a pandas data frame as samples; the values are copied once, when the dataset is made.

    Sample i is the vector of the row's columns; with label it is (vector, label). With as_dict it is a dict with a
    value per column, texts included.

    Parameters
    ----------
    frame : pandas.DataFrame
    columns : list of column names, optional
        Default: all columns except label.
    label : column name or list of names, optional
        A column of numbers keeps its type. The values of a column of texts or categories become the numbers of their
        classes, and ``dataset.classes`` lists the classes.
    dtype : optional, default 'float32'
        Type of the vectors; a label of several columns is float32. Integers that it rounds, which are those above
        2**24 for float32, cause a warning: ids would be mixed up.
    as_dict : bool, default False
    allow_missing : bool, default False
        Whether missing values (NaN) are allowed.

    Raises TypeError if frame is not a data frame; ParamError for unknown columns, columns that are not numbers, missing
    values, and values that dtype cannot hold.
    """

    def __init__(
        self,
        frame: Any,
        columns: Any = None,
        label: Any = None,
        dtype: Any = "float32",
        as_dict: bool = False,
        allow_missing: bool = False,
    ) -> None:
        if not all(hasattr(frame, name) for name in ("columns", "iloc", "to_numpy")):
            raise HybridNetTypeError(
                "DataFrameDataset: frame",
                expected="a pandas.DataFrame",
                given=type(frame).__name__,
                fix="use gluon.data.ArrayDataset for arrays and lists",
            )
        if not frame.columns.is_unique:
            raise ParamError(
                "DataFrameDataset: names of columns",
                expected="different names",
                given=str(sorted(map(str, frame.columns[frame.columns.duplicated()]))),
            )
        labels = [] if label is None else _listed(label)
        _check_columns(frame, labels, "label")
        chosen = [name for name in frame.columns if name not in labels] if columns is None else _listed(columns)
        _check_columns(frame, chosen, "columns")
        if not chosen:
            raise ParamError("DataFrameDataset: there is no column besides the label", fix="name one with columns=")
        if not allow_missing:
            _check_complete(frame, [*chosen, *labels])
        self.columns = chosen
        self.classes: list[Any] | None = None
        self._as_dict = as_dict
        if as_dict:
            self._names = [*chosen, *(name for name in labels if name not in chosen)]
            arrays = [frame[name].to_numpy() for name in self._names]
        else:
            arrays = [_numbers(frame, chosen, dtype)]
            if labels:
                arrays.append(self._label(frame, labels))
        super().__init__(*arrays)

    def _label(self, frame: Any, labels: list[Any]) -> np.ndarray:
        if len(labels) > 1:
            return _numbers(frame, labels, "float32")
        column = frame[labels[0]]
        if column.dtype.kind == "b":
            return column.to_numpy(dtype=np.int32)
        if _is_number(column):
            return np.ascontiguousarray(column.to_numpy(dtype=numpy_dtype(column.dtype.name.lower())))
        codes, self.classes = _codes(column)
        return codes

    def __getitem__(self, idx: int) -> Any:
        if self._as_dict:
            return {name: values[idx] for name, values in zip(self._names, self._data, strict=True)}
        return super().__getitem__(idx)

    def _gather(self, indices: Sequence[int]) -> Any | None:
        return None if self._as_dict else super()._gather(indices)


GATHERING.add(DataFrameDataset)


def from_pandas(frame: Any, label: Any = None, **options: Any) -> DataFrameDataset:
    """Returns ``DataFrameDataset(frame, label=label, **options)``."""
    return DataFrameDataset(frame, label=label, **options)
