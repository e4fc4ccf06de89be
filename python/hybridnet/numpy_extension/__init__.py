"""``mx.npx``: neural-network operators on arrays of ``mx.np``, and the switches of NumPy semantics."""

from __future__ import annotations

from typing import Any

from .._lazy_names import names_from
from .._public_names import dir_of
from ..context import Context, cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus
from ..ndarray import waitall
from ..numpy._operators import public_operator
from ..random import seed
from ..util import (
    is_np_array,
    is_np_shape,
    np_array,
    np_shape,
    reset_np,
    set_np,
    set_np_shape,
    use_np,
    use_np_array,
    use_np_shape,
)
from ._files import load, save, savez
from ._operators import OPERATORS

__all__ = [
    "Context", "cpu", "cpu_pinned", "current_context", "gpu", "gpu_memory_info", "is_np_array", "is_np_shape",
    "load", "np_array", "np_shape", "num_gpus", "reset_np", "save", "savez", "seed", "set_np", "set_np_shape", "use_np",
    "use_np_array", "use_np_shape", "waitall",
]  # fmt: skip

_submodule, _ = names_from(__name__, {"..contrib.control_flow": "cond foreach while_loop"}, modules="image random")


def __getattr__(name: str) -> Any:
    if name not in OPERATORS:
        return _submodule(name)
    made = public_operator(name, OPERATORS[name], module=__name__)
    globals()[name] = made
    return made


def _listed() -> list[str]:
    return sorted({*globals(), *__all__, *OPERATORS, "image", "random"})


__dir__ = dir_of(__name__, _listed)
