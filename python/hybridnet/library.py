"""Operators of shared objects: C and C++ code that knows ``hybridnet/c_api.h`` and nothing else of HybridNet."""

from __future__ import annotations

import os
from typing import Any

from . import _core
from .errors import TypeError as HybridNetTypeError
from .ops._namespace import forget_names

__all__ = ["load"]


def load(path: str | os.PathLike[str], verbose: bool = True) -> None:
    """Load a shared object that brings operators; they are ``mx.nd.NAME`` and ``mx.sym.NAME`` from then on.

    The object exports ``hn_library_init``, which declares them (docs/operator-libraries.md). Its operators become known
    together, or none of them, and stay for the life of the process. Its code runs in this process: load only what you
    trust. Libraries that were built against MXNet's ``lib_api.h`` have another interface; they are an error.

    Parameters
    ----------
    path : str or PathLike
        The shared object; a relative path starts at the working directory.
    verbose : bool, default True
        Whether to print which operators came.

    Raises
    ------
    FileError
        The file is not there, is no shared object for this machine, or has no ``hn_library_init``.
    ParamError
        A declaration is wrong, or the name of an operator is taken.

    """
    if not isinstance(path, (str, os.PathLike)):
        raise HybridNetTypeError("library.load, input 'path'", expected="a path", given=repr(path))
    names: list[Any] = _core.load_library(os.path.abspath(os.fspath(path)))
    forget_names()
    if verbose:
        print(f"{os.fspath(path)}: operators {', '.join(names) or 'none'}")
