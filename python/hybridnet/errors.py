"""Every exception that the package raises: what failed, what was expected, what was given, why, and how to fix it.

All derive from :class:`HybridNetError` (``mx.base.MXNetError`` is the same class) and from the builtin that fits, so
both ``except mx.MXNetError`` and ``except ValueError`` work. The parts of the text are attributes: ``op``, ``node``,
``block``, ``input``, ``expected``, ``given``, ``because``, ``fix``, ``where`` (``file:line`` of the call); None if
unknown.

The constructor writes the text; no other place does::

    raise ParamError("Dropout: rate", expected="a number from 0 to 1", given=repr(rate), fix="pass rate=0.5")

    Dropout: rate: expected a number from 0 to 1, got 3.
      Fix: pass rate=0.5.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

__all__ = [
    "AttributeError",
    "DTypeError",
    "DeferredInitializationError",
    "EngineError",
    "FileError",
    "FormatError",
    "GradientError",
    "HybridNetError",
    "ImportError",
    "IndexError",
    "KeyError",
    "MXNetError",
    "OutOfMemoryError",
    "ParamError",
    "ShapeError",
    "TraceError",
    "TypeError",
    "UnsupportedError",
    "UserWarning",
    "ValueError",
]


class HybridNetError(RuntimeError):
    """Base of all exceptions of the package.

    message says what failed: the operator, class or function, and its argument. expected, given, because and fix
    complete the text; op, node, block and input are for programs only.
    """

    op: str | None = None
    node: str | None = None
    block: str | None = None
    input: str | None = None
    expected: str | None = None
    given: str | None = None
    because: str | None = None
    fix: str | None = None
    where: str | None = None

    def __init__(self, message: str = "", **parts: str | None) -> None:
        super().__init__(_text(message, parts) if parts else message)
        for name, value in parts.items():
            if not hasattr(HybridNetError, name):
                raise builtins.TypeError(f"{type(self).__name__}: an error has no part {name!r}")
            setattr(self, name, value or None)

    def __str__(self) -> str:
        return str(self.args[0]) if len(self.args) == 1 else super().__str__()


def _text(message: str, parts: dict[str, str | None]) -> str:
    expected, given = parts.get("expected"), parts.get("given")
    if expected:
        message += f": expected {expected}, got {given}" if given else f": expected {expected}"
    elif given:
        message += f", got {given}"
    lines = [_sentence(message)]
    lines += [f"{title}: {_sentence(text)}" for title in ("Because", "Fix") if (text := parts.get(title.lower()))]
    if where := parts.get("where"):
        lines.append(f"At: {where}")
    return "\n  ".join(lines)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


def suggestion(word: str, words: Iterable[str]) -> str:
    """What to do about an unknown word: "did you mean 'x'?", or the list of known words if none is similar."""
    import difflib

    known = list(dict.fromkeys(words))
    near = [name for name in known if word == "".join(part[:1] for part in name.split("_"))]  # lr: learning_rate
    near = near or difflib.get_close_matches(word.lower(), known, 1)
    return f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(map(repr, known))}"


def unknown_name(owner: str, kind: str, word: Any, words: Iterable[str], error: type[HybridNetError]) -> HybridNetError:
    """The error for a word that owner does not know; kind is what the word should be: "keyword", "rule"."""
    return error(f"{owner}: unknown {kind} {word!r}", fix=suggestion(str(word), words))


def not_overridden(instance: object, method: str) -> UnsupportedError:
    """The error for a call of a method that a subclass must define; method as it is called: "forward(x)"."""
    return UnsupportedError(f"{type(instance).__name__} must override {method}")


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


class KeyError(HybridNetError, builtins.KeyError):
    """A name or key that is not there."""


class AttributeError(HybridNetError, builtins.AttributeError):
    """A module or object has no such attribute."""


class ImportError(HybridNetError, builtins.ModuleNotFoundError):
    """A module that is not there, or cannot be imported."""


class FormatError(HybridNetError, builtins.ValueError):
    """A file or string is not what its format promises."""


class FileError(HybridNetError, OSError):
    """A file is missing, unreadable or unwritable."""


class GradientError(HybridNetError):
    """Not differentiable, overwritten in place, freed, or not recorded."""


class TraceError(HybridNetError, builtins.TypeError):
    """A traced array has shape and dtype, but no values."""

    # Told of each one that is made: a trace remembers it, should the program catch it and go on (_tracing.Refusals).
    _listener: ClassVar[Callable[[TraceError], None] | None] = None

    def __init__(self, message: str = "", **parts: str | None) -> None:
        super().__init__(message, **parts)
        if TraceError._listener is not None:
            TraceError._listener(self)


class DeferredInitializationError(HybridNetError):
    """A parameter has no values yet, because its shape becomes known with the first batch."""


class EngineError(HybridNetError):
    """The engine was used in a way that cannot work, such as waiting inside a task."""


class UserWarning(HybridNetError, builtins.UserWarning):
    """Raised (as in MXNet) where a call would not do what it seems to do."""


class OutOfMemoryError(HybridNetError, MemoryError):
    """The device has not enough memory."""


class UnsupportedError(HybridNetError, NotImplementedError):
    """Valid, but not on this device, for this type, or in this build."""
