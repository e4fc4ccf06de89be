"""Every exception the package raises. Each says who failed, what was expected, what came, why, and how to fix it.

All derive from :class:`HybridNetError` (``mx.base.MXNetError`` is the same class) and from the builtin that fits, so
both ``except mx.MXNetError`` and ``except ValueError`` work. The parts of the text are attributes: ``op``, ``node``,
``block``, ``input``, ``expected``, ``given``, ``because``, ``fix``, ``where`` (``file:line`` of the call); None if
unknown.
"""

from __future__ import annotations

import builtins

__all__ = [
    "DTypeError",
    "DeferredInitializationError",
    "EngineError",
    "FileError",
    "FormatError",
    "GradientError",
    "HybridNetError",
    "IndexError",
    "MXNetError",
    "OutOfMemoryError",
    "ParamError",
    "ShapeError",
    "TraceError",
    "TypeError",
    "UnsupportedError",
    "ValueError",
]


class HybridNetError(RuntimeError):
    """Base of all exceptions of the package."""

    op: str | None = None
    node: str | None = None
    block: str | None = None
    input: str | None = None
    expected: str | None = None
    given: str | None = None
    because: str | None = None
    fix: str | None = None
    where: str | None = None


MXNetError = HybridNetError


class ParamError(HybridNetError, builtins.ValueError, builtins.TypeError):
    """A parameter of an operator or a layer is missing, unknown or out of range."""


class ShapeError(HybridNetError, builtins.ValueError):
    """Shapes do not fit."""


class DTypeError(HybridNetError, builtins.TypeError):
    """Element types do not fit, or there is no such type."""


class TypeError(HybridNetError, builtins.TypeError):
    """An argument of the wrong kind."""


class ValueError(HybridNetError, builtins.ValueError):
    """An argument of the right kind whose value cannot be used."""


class IndexError(HybridNetError, builtins.IndexError):
    """An index out of bounds."""


class FormatError(HybridNetError, builtins.ValueError):
    """A file or string is not what its format promises."""


class FileError(HybridNetError, OSError):
    """A file is missing, unreadable or unwritable."""


class GradientError(HybridNetError):
    """Not differentiable, overwritten in place, freed, or not recorded."""


class TraceError(HybridNetError, builtins.TypeError):
    """A traced array has shape and dtype, but no values to ask for."""


class DeferredInitializationError(HybridNetError):
    """A parameter has no values yet, because its shape becomes known with the first batch."""


class EngineError(HybridNetError):
    """The engine was used in a way that cannot work, such as waiting inside a task."""


class OutOfMemoryError(HybridNetError, MemoryError):
    """The device has not enough memory."""


class UnsupportedError(HybridNetError, NotImplementedError):
    """Valid, but not on this device, for this type, or in this build."""
