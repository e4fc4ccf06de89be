"""Splitting of batches over devices, gradient clipping, file checks. The module's name is MXNet's."""

from __future__ import annotations

import hashlib
import os
import tempfile
import urllib.error
import urllib.request
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ndarray
from .._lazy_names import refusing
from .._public_names import dir_of
from .._user_line import warn
from ..errors import FileError
from ..errors import UserWarning as HybridNetUserWarning
from ..errors import ValueError as HybridNetValueError
from ..util import is_np_shape
from ._numpy_border import for_user

if TYPE_CHECKING:
    from ..context import Context
    from ..ndarray import NDArray

__all__ = ["check_sha1", "clip_global_norm", "download", "replace_file", "split_and_load", "split_data"]


def split_data(data: NDArray, num_slice: int, batch_axis: int = 0, even_split: bool = True) -> list[NDArray]:
    """Splits data into num_slice parts along batch_axis; if not divisible, the first parts are one longer.

    Raises ValueError if num_slice < 1, or if even_split and the axis is not a multiple of num_slice.
    """
    if num_slice < 1:
        raise HybridNetValueError("split_data", expected="num_slice >= 1", given=str(num_slice))
    size = data.shape[batch_axis]
    if even_split and size % num_slice != 0:
        raise HybridNetValueError(
            f"data with shape {data.shape} cannot be evenly split into {num_slice} slices along axis {batch_axis}. "
            f"Use a batch size that's multiple of {num_slice} or set even_split=False to allow uneven partitioning "
            "of data.",
            fix="pass even_split=False, or a DataLoader with last_batch='discard'",
        )
    each, extras = divmod(size, num_slice)
    ends = np.cumsum([each + 1] * extras + [each] * (num_slice - extras)).tolist()
    begins = [0, *ends[:-1]]
    if batch_axis == 0:
        return [data[begin:end] for begin, end in zip(begins, ends, strict=False)]
    return [
        ndarray.slice_axis(data, axis=batch_axis, begin=begin, end=end)
        for begin, end in zip(begins, ends, strict=False)
    ]


def split_and_load(
    data: Any, ctx_list: Sequence[Context], batch_axis: int = 0, even_split: bool = True
) -> list[NDArray]:
    """Splits data into one part per context and moves each part to its context.

    data: NDArray, numpy array or nested list. Raises ValueError as split_data does, and for an empty ctx_list.
    """
    if not ctx_list:
        raise HybridNetValueError("split_and_load", expected="at least one context", given="an empty list")
    if not isinstance(data, ndarray.NDArray):
        data = for_user(ndarray.array(data, ctx=ctx_list[0]))
    if len(ctx_list) == 1:
        return [data.as_in_context(ctx_list[0])]
    parts = split_data(data, len(ctx_list), batch_axis, even_split)
    return [part.as_in_context(ctx) for part, ctx in zip(parts, ctx_list, strict=False)]


def clip_global_norm(arrays: Sequence[NDArray], max_norm: float, check_isfinite: bool = True) -> float | NDArray:
    """Scales arrays, in place, so that the 2-norm of all their values together is at most max_norm.

    Returns the norm before scaling: a float if check_isfinite (this waits for the value and warns if it is not
    finite), else an NDArray of shape (1,). Raises ValueError if arrays is empty.
    """
    if not arrays:
        raise HybridNetValueError("clip_global_norm: arrays is empty")
    arrays = [array.as_nd_ndarray() for array in arrays]
    ctx = arrays[0].context
    squares = [ndarray.sum(ndarray.square(array.astype("float32"))).as_in_context(ctx) for array in arrays]
    total = ndarray.sqrt(ndarray.add_n(*squares))
    norm: Any = total
    if check_isfinite:
        norm = float(total.asscalar())
        if not np.isfinite(norm):
            warn("nan or inf is detected. Clipping results will be undefined.", UserWarning)
    # The small constant avoids a division by zero for all-zero arrays.
    scale = ndarray.minimum(max_norm / (total + 1e-8), 1.0)
    for array in arrays:
        array *= scale.as_in_context(array.context).astype(array.dtype)
    return for_user(norm)


def check_sha1(filename: str, sha1_hash: str) -> bool:
    """Whether the file's SHA-1 equals sha1_hash (hexadecimal digits)."""
    digest = hashlib.sha1()
    with open(filename, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest() == sha1_hash


def _fetch(url: str, path: str, verify_ssl: bool) -> None:
    context = None
    if not verify_ssl and url.startswith("https"):
        import ssl

        context = ssl._create_unverified_context()
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=folder, prefix=os.path.basename(path) + ".")
    try:
        with os.fdopen(handle, "wb") as out, urllib.request.urlopen(url, timeout=30, context=context) as response:
            while block := response.read(1 << 16):
                out.write(block)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise


def download(
    url: str,
    path: str | None = None,
    overwrite: bool = False,
    sha1_hash: str | None = None,
    retries: int = 5,
    verify_ssl: bool = True,
) -> str:
    """Downloads a file unless it exists, and returns its path.

    Parameters
    ----------
    url : str
    path : str, optional
        File or existing folder; default: the URL's last part in the current folder.
    overwrite : bool, default False
    sha1_hash : str, optional
        An existing file with another hash is downloaded again.
    retries : int, default 5
        Further attempts after a failure, >= 0.
    verify_ssl : bool, default True

    Raises
    ------
    OSError
        The machine is offline or the server refused; the text names the place for a manual download.
    UserWarning
        The content does not match sha1_hash.
    """
    if retries < 0:
        raise HybridNetValueError(f"Number of retries should be at least 0, currently it's {retries}")
    name = url.split("/")[-1]
    target = os.path.expanduser(path) if path else name
    if os.path.isdir(target):
        target = os.path.join(target, name)
    if not target:
        raise HybridNetValueError("Can't construct file-name from this URL. Please set the `path` option manually.")
    if not verify_ssl:
        warn("Unverified HTTPS request is being made (verify_ssl=False).")
    if not overwrite and os.path.exists(target) and (not sha1_hash or check_sha1(target, sha1_hash)):
        return target
    for attempt in range(retries + 1):
        try:
            _fetch(url, target, verify_ssl)
            break
        except (urllib.error.URLError, OSError) as error:
            if attempt == retries:
                raise FileError(
                    f"cannot download {url}: {error}",
                    fix=f"fetch the file on a machine that is online and put it at {os.path.abspath(target)}",
                ) from error
    if sha1_hash and not check_sha1(target, sha1_hash):
        raise HybridNetUserWarning(
            f"File {target} is downloaded but the content hash does not match. "
            "The repo may be outdated or download may be incomplete."
        )
    return target


_REPOSITORY = "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/"


def _get_repo_url() -> str:
    """The URL of MXNet's published datasets and pretrained models."""
    return _REPOSITORY


def _get_repo_file_url(namespace: str, filename: str) -> str:
    """Returns the URL of a published file."""
    return f"{_get_repo_url()}{namespace}/{filename}"


def _indent(text: str, spaces: int) -> str:
    return text.replace("\n", "\n" + " " * spaces)


def _brief_print_list(names: Iterable[Any], limit: int = 7) -> str:
    names = list(names)
    if len(names) > limit:
        half = limit // 2
        return f"{_brief_print_list(names[:half], limit)}, ..., {_brief_print_list(names[-half:], limit)}"
    return ", ".join(f"'{name}'" for name in names)


class HookHandle:
    """The result of registering a hook: detaches the hook, also as a context manager."""

    def __init__(self) -> None:
        self._hooks_dict_ref: Any = None
        self._id: int | None = None

    def attach(self, hooks_dict: OrderedDict[int, Any], hook: Any) -> None:
        """Adds hook to hooks_dict. Raises ValueError on a second call."""
        if self._hooks_dict_ref is not None:
            raise HybridNetValueError("The same handle cannot be attached twice.")
        self._id = id(hook)
        hooks_dict[self._id] = hook
        self._hooks_dict_ref = weakref.ref(hooks_dict)

    def detach(self) -> None:
        """Removes the hook; does nothing if it is gone."""
        hooks = self._hooks_dict_ref() if self._hooks_dict_ref is not None else None
        if hooks is not None:
            hooks.pop(self._id, None)

    def __getstate__(self) -> tuple[Any, Any]:
        return (self._hooks_dict_ref() if self._hooks_dict_ref is not None else None, self._id)

    def __setstate__(self, state: tuple[Any, Any]) -> None:
        hooks, self._id = state
        self._hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.detach()


def shape_is_known(shape: Sequence[int] | None) -> bool:
    """Whether all sizes are known. Unknown sizes are 0 or -1; under NumPy shape semantics only -1.

    Raises ValueError for sizes below -1.
    """
    if shape is None:
        return False
    numpy_semantics = is_np_shape()
    if len(shape) == 0:
        return numpy_semantics
    if min(shape) < -1:
        raise HybridNetValueError("sizes cannot be negative (-1 means unknown)", given=f"shape {tuple(shape)}")
    return min(shape) >= (0 if numpy_semantics else 1)


def replace_file(src: str, dst: str) -> None:
    """Moves src to dst atomically, replacing an existing file."""
    os.replace(src, dst)


__getattr__, __dir__ = refusing(__name__), dir_of(__name__)
