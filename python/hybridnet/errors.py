"""All exceptions of the package, with the failure, the expected and given values, the reason, and the fix.

All derive from :class:`HybridNetError` (``mx.base.MXNetError`` is the same class) and from the matching builtin, so
both ``except mx.MXNetError`` and ``except ValueError`` work. The parts of the text are attributes: ``op``, ``node``,
``block``, ``input``, ``expected``, ``given``, ``because``, ``fix``, ``where`` (``file:line`` of the call); None if
unknown.

The constructor composes the text; no other code does::

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

    message names the failed operator, class or function, and its argument. expected, given, because and fix complete
    the text; op, node, block and input are only attributes for programs.
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
    """Returns a hint for an unknown word: "did you mean 'x'?", or the list of known words if none is similar."""
    import difflib

    known = list(dict.fromkeys(words))
    near = [name for name in known if word == "".join(part[:1] for part in name.split("_"))]  # lr: learning_rate
    near = near or difflib.get_close_matches(word.lower(), known, 1)
    return f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(map(repr, known))}"


def unknown_name(owner: str, kind: str, word: Any, words: Iterable[str], error: type[HybridNetError]) -> HybridNetError:
    """Returns the error for a word that owner does not know; kind is the expected kind: "keyword", "rule"."""
    return error(f"{owner}: unknown {kind} {word!r}", fix=suggestion(str(word), words))


def not_overridden(instance: object, method: str) -> UnsupportedError:
    """Returns the error for a call of a method that a subclass must define; method in call form: "forward(x)"."""
    return UnsupportedError(f"{type(instance).__name__} must override {method}")


MXNetError = HybridNetError


class ParamError(HybridNetError, builtins.ValueError, builtins.TypeError):
    """A parameter of an operator or a layer is missing, unknown or out of range."""


class ShapeError(HybridNetError, builtins.ValueError):
    """Shapes do not match."""


class DTypeError(HybridNetError, builtins.TypeError):
    """Element types do not match, or the type does not exist."""


class TypeError(HybridNetError, builtins.TypeError):
    """An argument has the wrong kind."""


class ValueError(HybridNetError, builtins.ValueError):
    """An argument has the right kind, but an invalid value."""


class IndexError(HybridNetError, builtins.IndexError):
    """An index is out of bounds."""


class KeyError(HybridNetError, builtins.KeyError):
    """A name or key does not exist."""


class AttributeError(HybridNetError, builtins.AttributeError):
    """A module or object has no such attribute."""


class ImportError(HybridNetError, builtins.ModuleNotFoundError):
    """A module does not exist or cannot be imported."""


class FormatError(HybridNetError, builtins.ValueError):
    """A file or string violates its format."""


class FileError(HybridNetError, OSError):
    """A file is missing, unreadable or unwritable."""


class GradientError(HybridNetError):
    """An array is not differentiable, was overwritten in place or freed, or was not recorded."""


class TraceError(HybridNetError, builtins.TypeError):
    """A value of a traced array is needed, but it has only shape and dtype."""

    code: str = ""  # HN100 to HN109 if control flow of a program cannot become part of a graph (docs/errors)
    # Called for each new error: a trace records it, in case the program catches it and continues (_tracing.Refusals).
    _listener: ClassVar[Callable[[TraceError], None] | None] = None

    def __init__(self, message: str = "", **parts: str | None) -> None:
        super().__init__(message, **parts)
        if TraceError._listener is not None:
            TraceError._listener(self)


class DeferredInitializationError(HybridNetError):
    """A parameter has no values yet, because its shape is only known after the first batch."""


class EngineError(HybridNetError):
    """The engine was used in an invalid way, such as waiting inside a task."""


class UserWarning(HybridNetError, builtins.UserWarning):
    """A call would not have the apparent effect. Raised as an exception, like in MXNet."""


class OutOfMemoryError(HybridNetError, MemoryError):
    """The device does not have enough memory."""


class UnsupportedError(HybridNetError, NotImplementedError):
    """A valid operation is not supported on this device, for this type, or in this build."""
