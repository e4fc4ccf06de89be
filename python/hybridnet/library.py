"""Operators and rules from shared objects: C and C++ code that only depends on ``hybridnet/c_api.h``."""

from __future__ import annotations

import os

from . import _core
from ._public_names import dir_of
from .errors import TypeError as HybridNetTypeError
from .ops._namespace import forget_names

__all__ = ["load"]


def load(path: str | os.PathLike[str], verbose: bool = True) -> None:
    """Loads a shared object that defines operators, rules that rewrite graphs, or both.

    Operators are then available as ``mx.nd.NAME`` and ``mx.sym.NAME``; rules are in the pipeline of ``mx.rewrite``
    under their names. The object exports ``hn_library_init``, ``hn_library_init_rules``, or both, which declare them
    (docs/operator-libraries.md). All of them are registered or none; operators stay for the life of the process. The
    code runs in this process: load only trusted files. Libraries built against MXNet's ``lib_api.h`` have another
    interface and raise an error.

    Parameters
    ----------
    path : str or PathLike
        The shared object; a relative path is relative to the working directory.
    verbose : bool, default True
        Whether to print the new operators and rules.

    Raises
    ------
    FileError
        The file is missing, is not a shared object for this machine, or exports neither function.
    ParamError
        A declaration is invalid, or the name of an operator or rule is already registered.

    """
    if not isinstance(path, (str, os.PathLike)):
        raise HybridNetTypeError("library.load, input 'path'", expected="a path", given=repr(path))
    contents: tuple[list[str], list[str]] = _core.load_library(os.path.abspath(os.fspath(path)))
    forget_names()
    if verbose:
        kinds = zip(("operators", "rules"), contents, strict=True)
        said = [f"{kind} {', '.join(names)}" for kind, names in kinds if names]
        print(f"{os.fspath(path)}: {'; '.join(said) or 'nothing'}")


__dir__ = dir_of(__name__)
