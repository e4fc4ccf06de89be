"""Runs programs written for MXNet 1.9.1 unchanged: ``import mxnet`` then imports HybridNet.

Each of these enables it; the first two for one program, the last for every program of an environment::

    import hybridnet.as_mxnet                           # first line of the program
    python -m hybridnet.as_mxnet program.py arguments   # or: -m module arguments
    python -m hybridnet.as_mxnet --install              # --uninstall takes it back

``mxnet.gluon`` and all other submodules are HybridNet's own module objects under a second name. The module ``mxnet``
itself forwards: attributes that are read, set or deleted there are those of ``hybridnet``, except ``__version__`` and
the other names in ``_OWN``. Names that NumPy has removed (``np.int``, ``np.float``) exist again, with a warning.

``horovod.mxnet`` and ``byteps.mxnet`` are ``hybridnet.horovod`` and ``hybridnet.byteps``, also if these packages are
installed. A process with DMLC_ROLE=server ends here with status 0, since there are no servers; one with
DMLC_ROLE=scheduler serves the meeting of the workers here, and ends after them.

Raises ImportError if MXNet itself is imported already. See ``docs/migrating-from-mxnet.md``.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import hybridnet

from .. import _AliasLoader
from .._public_names import dir_of
from ..errors import ImportError as HybridNetImportError
from ._removed_numpy_names import restore_removed_numpy_names

__all__ = ["IMPORT_PATH", "MXNET_VERSION"]

# The version that programs check; hybridnet.__version__ is HybridNet's own.
MXNET_VERSION = "1.9.1"

# A folder with mxnet.py, which imports this package. On sys.path it is for interpreters that have not imported it:
# children of multiprocessing, which inherit the path, and with --install all programs of an environment. horovod.py and
# byteps.py stand in for packages that are not installed.
IMPORT_PATH = str(Path(__file__).parent / "_import_path")

# Attributes of the module ``mxnet`` that are not hybridnet's.
_OWN = ("__version__", "__name__", "__package__", "__spec__", "__loader__", "__path__", "__file__", "__doc__")

# Modules of libraries that extend MXNet by processes, and the modules that they are here.
_EXTENSIONS = {
    "horovod.mxnet": "hybridnet.horovod",
    "horovod.mxnet.mpi_ops": "hybridnet.horovod",
    "byteps.mxnet": "hybridnet.byteps",
}


class _MXNetModule(ModuleType):
    """The module ``mxnet``: hybridnet's attributes, MXNet's version."""

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return _public_names()
        try:
            return getattr(hybridnet, name)
        except (AttributeError, ImportError) as missing:
            text = str(missing.args[0]) if missing.args else ""  # without the fix, which takes time to find
            if text.startswith(("module 'hybridnet' has", f"cannot import name {name!r} from 'hybridnet'")):
                missing.args = (text.replace("'hybridnet'", "'mxnet'", 1),)
            raise

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN:
            super().__setattr__(name, value)
        else:
            setattr(hybridnet, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(hybridnet, name)

    def __dir__(self) -> list[str]:
        return dir(hybridnet)


def _public_names() -> list[str]:
    """Returns the names for ``from mxnet import *``: all of MXNet's namespace, without foreign modules."""
    names = [name for name in dir(hybridnet) if not name.startswith("_") and name not in ("Any", "annotations")]
    values = {name: getattr(hybridnet, name) for name in names}
    return [
        name
        for name, value in values.items()
        if not isinstance(value, ModuleType) or value.__name__.startswith("hybridnet.")
    ]


class _MXNetFinder:
    """Import finder for ``mxnet``, ``mxnet.x`` and ``horovod.mxnet``: the module objects of ``hybridnet.x``."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname in _EXTENSIONS:
            return _alias(fullname, _EXTENSIONS[fullname])
        top, _, rest = fullname.partition(".")
        if top != "mxnet":
            return None
        if not rest:
            return _SPEC
        real = f"hybridnet.{rest}"
        try:
            return _alias(fullname, real)
        except ModuleNotFoundError as missing:
            if missing.name != real:
                raise
            raise _no_module(fullname, real) from None


def _alias(name: str, real: str) -> ModuleSpec:
    """Returns the spec by which ``import name`` gives the module object of real."""
    is_package = hasattr(importlib.import_module(real), "__path__")
    return ModuleSpec(name, _AliasLoader(real), is_package=is_package)  # type: ignore[arg-type]  # has a loader's methods


def _no_module(name: str, real: str) -> HybridNetImportError:
    error = HybridNetImportError(
        f"No module named {name!r}",
        because=f"HybridNet, which stands in for MXNet here, has no module {real!r}",
        fix="docs/api-coverage.md lists the missing parts and the reasons",
    )
    error.name = name  # ImportError's own attribute, which programs compare with the module's name
    return error


class _TopLoader:
    """Loader that returns the one module ``mxnet``."""

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        return _MXNET

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Does nothing: the module exists already."""


def _activate() -> None:
    present = sys.modules.get("mxnet")
    if present is not None and Path(getattr(present, "__file__", None) or "").parent != Path(IMPORT_PATH):
        raise HybridNetImportError(
            "hybridnet.as_mxnet must be imported before mxnet",
            because=f"mxnet is imported already, from {getattr(present, '__file__', None) or present!r}",
            fix="make `import hybridnet.as_mxnet` the first line of the program, or run it by "
            "`python -m hybridnet.as_mxnet program.py`",
        )
    sys.modules["mxnet"] = _MXNET
    sys.meta_path.insert(0, _MXNetFinder)
    if IMPORT_PATH not in sys.path:
        sys.path.append(IMPORT_PATH)
    restore_removed_numpy_names()


_SPEC = ModuleSpec("mxnet", _TopLoader(), origin=hybridnet.__file__, is_package=True)  # type: ignore[arg-type]
_SPEC.submodule_search_locations = list(hybridnet.__path__)
_MXNET = _MXNetModule("mxnet", hybridnet.__doc__)
for _name, _value in {
    "__version__": MXNET_VERSION,
    "__package__": "mxnet",
    "__spec__": _SPEC,
    "__loader__": _SPEC.loader,
    "__path__": _SPEC.submodule_search_locations,
    "__file__": hybridnet.__file__,
}.items():
    setattr(_MXNET, _name, _value)
del _name, _value
if "DMLC_ROLE" in os.environ:  # MXNet's launchers also start processes that do not run the program
    from .. import _dmlc

    _dmlc.end_other_roles()
_activate()

__dir__ = dir_of(__name__)
