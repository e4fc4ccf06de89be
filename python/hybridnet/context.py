"""Devices on which arrays are stored and operators run."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

from . import _core
from ._public_names import dir_of
from .errors import ValueError as HybridNetValueError

__all__ = [
    "Context",
    "GpuFallbackWarning",
    "cpu",
    "cpu_pinned",
    "cpu_shared",
    "current_context",
    "gpu",
    "gpu_memory_info",
    "num_gpus",
]


class GpuFallbackWarning(UserWarning):
    """An operator has no form for GPUs: it runs on the CPU, with copies (``HYBRIDNET_GPU_FALLBACK``)."""


class _Default(threading.local):
    """The default context of a thread; None: cpu(0). A class attribute: a missing one would cost as much as a call."""

    value: Context | None = None


class _ContextType(type):
    """Metaclass of Context with the attribute default_ctx, which the instances do not have."""

    @property
    def default_ctx(cls) -> Context:
        """The context of the innermost ``with``; cpu(0) outside."""
        return current_context()

    @default_ctx.setter
    def default_ctx(cls, ctx: Context) -> None:
        Context._default_ctx.value = ctx


class Context(metaclass=_ContextType):
    """A device; in a ``with`` statement the default device for new arrays of this thread.

    Parameters
    ----------
    device_type : str or Context
        'cpu', 'gpu', 'cpu_pinned' or 'cpu_shared'.
    device_id : int, default 0
        Number of the device; all CPU ids mean the same memory.
    """

    devtype2str: ClassVar[dict[int, str]] = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}
    devstr2type: ClassVar[dict[str, int]] = {"cpu": 1, "gpu": 2, "cpu_pinned": 3, "cpu_shared": 5}
    _default_ctx = _Default()

    def __init__(self, device_type: str | Context, device_id: int = 0) -> None:
        if isinstance(device_type, Context):
            self.device_typeid: int = device_type.device_typeid
            self.device_id: int = device_type.device_id
        elif isinstance(device_type, str) and device_type in Context.devstr2type:
            self.device_typeid, self.device_id = Context.devstr2type[device_type], int(device_id)
        else:
            raise _no_device(device_type)

    @property
    def device_type(self) -> str:
        """The type of the device: 'cpu', 'gpu', 'cpu_pinned' or 'cpu_shared'."""
        return Context.devtype2str[self.device_typeid]

    def __hash__(self) -> int:
        return hash((self.device_typeid, self.device_id))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Context)
            and self.device_typeid == other.device_typeid
            and self.device_id == other.device_id
        )

    def __str__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    __repr__ = __str__

    def __enter__(self) -> Context:
        # Stored per thread, not in the context: one context serves many threads, and may be entered within itself.
        local = Context._default_ctx
        local.__dict__.setdefault("outer", []).append(local.value)
        local.value = self
        return self

    def __exit__(self, *exception: Any) -> None:
        Context._default_ctx.value = Context._default_ctx.outer.pop()

    def empty_cache(self) -> None:
        """Returns unused pooled memory to the system."""
        _core.empty_cache(self.device_typeid, self.device_id)

    @classmethod
    def from_str(cls, text: str) -> Context:
        """Returns the context that ``str()`` prints as text, such as 'gpu(1)'."""
        name, _, rest = text.partition("(") if isinstance(text, str) else ("", "", "")
        number = rest.removesuffix(")") or "0"
        if name not in cls.devstr2type or not number.isdecimal():
            raise _no_device(text)
        return cls(name, int(number))

    @classmethod
    def of(cls, ctx: Context | str) -> Context:
        """Returns a context as it is, or the one that a text names. Raises ValueError for anything else."""
        return ctx if isinstance(ctx, Context) else cls.from_str(ctx)


def _no_device(given: Any) -> HybridNetValueError:
    """Returns the error for a value that names no device."""
    kind, _, number = str(given).lower().partition(":")
    number = number if number.isdecimal() else "0"
    devices = {"cuda": f"mx.gpu({number})", "gpu": f"mx.gpu({number})", "cpu": "mx.cpu()"}
    return HybridNetValueError(
        "Context",
        expected=f"a device type of {', '.join(Context.devstr2type)}",
        given=repr(given),
        fix=f"pass {devices.get(kind, 'mx.cpu() or mx.gpu(0)')}",
    )


_CPU = Context("cpu", 0)


def cpu(device_id: int = 0) -> Context:
    """Returns the context of the CPU."""
    return Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Returns the context of page-locked CPU memory, for faster copies to a GPU; plain CPU memory without a GPU."""
    return Context("cpu_pinned", device_id)


def cpu_shared(device_id: int = 0) -> Context:
    """Returns the context of CPU memory that processes share."""
    return Context("cpu_shared", device_id)


def gpu(device_id: int = 0) -> Context:
    """Returns the context of a CUDA device. Its use where there is no such device raises UnsupportedError."""
    return Context("gpu", device_id)


def num_gpus() -> int:
    """Returns the number of usable CUDA devices. The first call loads the driver, if there is one."""
    return _core.num_gpus()


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Returns (free, total) bytes of a CUDA device. Raises UnsupportedError if there is none."""
    return _core.gpu_memory_info(device_id)


def current_context() -> Context:
    """Returns the default context of new arrays: that of the innermost ``with Context``, else cpu(0)."""
    return Context._default_ctx.value or _CPU


def is_default(ctx: Context) -> bool:
    """True if new arrays of this thread are made there."""
    default = Context._default_ctx.value
    return ctx.device_typeid == _CPU.device_typeid if default is None else bool(ctx == default)


def context_of_code(device_typeid: int, device_id: int) -> Context:
    """Returns the context with the device numbers of C++."""
    return Context(Context.devtype2str[device_typeid], device_id)


__dir__ = dir_of(__name__)
