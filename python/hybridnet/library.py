"""Operators and rules of shared objects: C and C++ code that knows ``hybridnet/c_api.h`` alone."""

from __future__ import annotations

import os

from . import _core
from .errors import TypeError as HybridNetTypeError
from .ops._namespace import forget_names

__all__ = ["load"]


def load(path: str | os.PathLike[str], verbose: bool = True) -> None:
    """Load a shared object that brings operators, rules that rewrite graphs, or both.

    Operators are ``mx.nd.NAME`` and ``mx.sym.NAME`` from then on; rules stand in the pipeline of ``mx.rewrite`` under
    their names. The object exports ``hn_library_init`` and ``hn_library_init_rules``, or one of them, which declare
    them (docs/operator-libraries.md). They become known together, or none of them; operators stay for the life of the
    process. Its code runs in this process: load only what you trust. Libraries that were built against MXNet's
    ``lib_api.h`` have another interface; they are an error.

    Parameters
    ----------
    path : str or PathLike
        The shared object; a relative path starts at the working directory.
    verbose : bool, default True
        Whether to print which operators and rules came.

    Raises
    ------
    FileError
        The file is not there, is no shared object for this machine, or has neither function.
    ParamError
        A declaration is wrong, or the name of an operator or rule is taken.

    """
    if not isinstance(path, (str, os.PathLike)):
        raise HybridNetTypeError("library.load, input 'path'", expected="a path", given=repr(path))
    contents: tuple[list[str], list[str]] = _core.load_library(os.path.abspath(os.fspath(path)))
    forget_names()
    if verbose:
        kinds = zip(("operators", "rules"), contents, strict=True)
        said = [f"{kind} {', '.join(names)}" for kind, names in kinds if names]
        print(f"{os.fspath(path)}: {'; '.join(said) or 'nothing'}")
