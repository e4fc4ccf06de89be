"""HybridNet: deep learning with the API of MXNet 1.9.1. ``import hybridnet as mx``.

Write models as imperative Python and call ``hybridize()``: the same model becomes a graph that a C++ runtime optimizes,
runs, differentiates and exports. Submodules are imported on first use.
"""

from __future__ import annotations

import atexit
import importlib
import sys
from typing import Any

from . import _core, attribute, autograd, base, context, engine, errors, name, ndarray, random, symbol, util
from ._error_help._tracebacks import install as _install_tracebacks
from ._lazy_names import names_from
from ._public_names import dir_of
from .attribute import AttrScope as AttrScope
from .base import MXNetError as MXNetError
from .context import Context as Context
from .context import cpu as cpu
from .context import cpu_pinned as cpu_pinned
from .context import current_context as current_context
from .context import gpu as gpu
from .context import num_gpus as num_gpus
from .util import is_np_array as is_np_array
from .util import is_np_shape as is_np_shape
from .util import np_array as np_array
from .util import np_shape as np_shape
from .util import set_np_shape as set_np_shape
from .util import use_np as use_np
from .util import use_np_array as use_np_array
from .util import use_np_shape as use_np_shape

# Short module names of MXNet, valid as attributes and in import statements.
_ALIASES = {
    "nd": "ndarray",
    "sym": "symbol",
    "init": "initializer",
    "kv": "kvstore",
    "mod": "module",
    "viz": "visualization",
    "img": "image",
    "mon": "monitor",
    "rnd": "random",
    "error": "errors",
    "np": "numpy",
    "npx": "numpy_extension",
}
_SUBMODULES = (
    "autograph callback contrib cuda debug dlpack executor gluon group image initializer io jit kvstore libinfo "
    "library log lr_scheduler metric model module monitor numpy numpy_extension onnx operator ops optimizer profiler "
    "recordio rewrite rnn rtc runtime serving test_utils visualization"
)
# MXNet modules that do not exist yet, with the replacement.
_CPU_ONLY = "write an operator in Python (mx.operator.CustomOp), or compute with operators"
_MISSING = {
    "tvmop": _CPU_ONLY,
    "th": _CPU_ONLY,
    "torch": _CPU_ONLY,
    "executor_manager": "train with mx.mod.Module",
    "kvstore_server": "there are no servers: run python -m hybridnet.launch -n 4 train.py with kvstore='dist_sync'",
    "notebook": "give Module.fit a callback of mx.callback",
}

nd = ndarray
sym = symbol
rnd = random
error = errors
for _short, _long in _ALIASES.items():
    _module = sys.modules.get(f"{__name__}.{_long}")
    if _module is not None:
        sys.modules[f"{__name__}.{_short}"] = _module
del _short, _long, _module


def _missing(kind: type[errors.HybridNetError], module: str) -> errors.HybridNetError:
    message = f"module {__name__!r} has no attribute {module!r}"
    return kind(message, because=f"HybridNet has no mx.{module} yet", fix=_MISSING[module])


class _AliasFinder:
    """Import finder that resolves ``import hybridnet.init`` and other short names to the module with the long name."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> Any:
        parent, _, short = fullname.rpartition(".")
        if parent == __name__ and short in _MISSING:
            raise _missing(errors.ImportError, short)
        if parent != __name__ or short not in _ALIASES:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(fullname, _AliasLoader(f"{__name__}.{_ALIASES[short]}"))  # type: ignore[arg-type]  # has a loader's methods


class _AliasLoader:
    def __init__(self, target: str) -> None:
        self.target = target

    def create_module(self, spec: Any) -> Any:
        module = importlib.import_module(self.target)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: Any) -> None:
        module.__spec__ = self.spec  # the import system has just set the alias's own spec


sys.meta_path.append(_AliasFinder)


_lazy, __dir__ = names_from(
    __name__,
    # libinfo is lazy because it is also a command: ``python -m hybridnet.libinfo`` warns if it was imported before.
    {
        "._function": "Function In Out SharedVariable function shared",
        ".autograph": "check range",
        ".libinfo": "__version__",
    },
    modules={**{m: m for m in _SUBMODULES.split()}, **{short: f".{m}" for short, m in _ALIASES.items()}},
)


def __getattr__(member: str) -> Any:
    if member in _MISSING:
        raise _missing(errors.AttributeError, member)
    return _lazy(member)


_install_tracebacks()
# Finishes pushed work that is not done at the end of the program, before the interpreter exits.
atexit.register(_core.shutdown)

__dir__ = dir_of(__name__, __dir__)
