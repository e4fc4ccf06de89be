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
import sys
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from ._public_names import dir_of

__all__ = [
    "AnomalyError",
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
    "GroupError",
    "UnsupportedError",
    "UserWarning",
    "ValueError",
]


class HybridNetError(RuntimeError):
    """Base of all exceptions of the package.

    message names the failed operator, class or function, and its argument. expected, given, because and fix complete
    the text; op, node, block and input are only attributes for programs. More: docs/errors/HybridNetError.md.
    """

    op: str | None = None
    node: str | None = None
    block: str | None = None
    input: str | None = None
    expected: str | None = None
    given: str | None = None
    because: str | None = None
    where: str | None = None
    _fix: str | None = None
    _finds_fix: Callable[[], str | None] | None = None

    def __init__(self, message: str = "", **parts: str | None) -> None:
        super().__init__(_text(message, parts) if parts else message)
        for name, value in parts.items():
            if not hasattr(HybridNetError, name):
                raise builtins.TypeError(f"{type(self).__name__}: an error has no part {name!r}")
            setattr(self, name, value or None)
        if "_pytest" in sys.modules:
            from ._error_help._tracebacks import mark_for_pytest

            mark_for_pytest()

    @property
    def fix(self) -> str | None:
        """The fix, as a sentence without its end; None if it is unknown."""
        self._find_fix()
        return self._fix

    @fix.setter
    def fix(self, text: str | None) -> None:
        self._fix = text

    def find_fix_later(self, find: Callable[[], str | None]) -> None:
        """Makes the error call find for its fix when it is read. Most errors are not, such as those of hasattr()."""
        self._finds_fix = find

    def _find_fix(self) -> None:
        """Adds a fix that takes time to find to the text."""
        find, self._finds_fix = self._finds_fix, None
        found = None if find is None else find()
        if found:
            self._fix = found
            self.args = (_with_fix(str(self.args[0]), found), *self.args[1:])

    def __str__(self) -> str:
        if self._finds_fix is not None:
            self._find_fix()
        text = str(self.args[0]) if len(self.args) == 1 else super().__str__()
        if self.op is None:
            return text
        from ._error_help._operator_advice import completed

        return completed(self, text)

    def __reduce__(self) -> Any:
        self._find_fix()
        return super().__reduce__()


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


def _with_fix(text: str, fix: str) -> str:
    """Returns the text of an error with another fix, which stands before the place of the call and the block."""
    lines = [line for line in text.split("\n") if not line.startswith("  Fix: ")]
    at = next((i for i, line in enumerate(lines) if line.startswith(("  At: ", "  Block: "))), len(lines))
    lines[0] = _sentence(lines[0])
    return "\n".join([*lines[:at], f"  Fix: {_sentence(fix)}", *lines[at:]])


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


def suggestion(word: str, words: Iterable[str]) -> str:
    """Returns a hint for an unknown word: "did you mean 'x'?", or the list of known words if none is similar."""
    import difflib

    known = list(dict.fromkeys(words))
    near = [name for name in known if word == "".join(part[:1] for part in name.split("_"))]  # lr: learning_rate
    near = near or difflib.get_close_matches(word.lower(), known, 1)
    return f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(map(repr, known))}"


def unknown_name(
    owner: str, kind: str, word: Any, words: Iterable[str], error: type[HybridNetError], bases: Iterable[str] = ()
) -> HybridNetError:
    """Returns the error for a word that owner does not know; kind is the expected kind: "keyword", "rule".

    bases: names of the classes that an owner which is a class is derived from.
    """
    from ._habits import keyword_fix

    known = list(words)
    fix = keyword_fix([owner, *bases], str(word), known) if kind == "keyword" else None
    return error(f"{owner}: unknown {kind} {word!r}", fix=fix or suggestion(str(word), known))


def not_overridden(instance: object, method: str) -> UnsupportedError:
    """Returns the error for a call of a method that a subclass must define; method in call form: "forward(x)"."""
    fix = None
    if "forward" in method and hasattr(type(instance), "call"):  # the name in Keras
        fix = "rename call(self, x) to forward(self, x)"
    return UnsupportedError(f"{type(instance).__name__} must override {method}", fix=fix)


MXNetError = HybridNetError


class ParamError(HybridNetError, builtins.ValueError, builtins.TypeError):
    """A parameter of an operator or a layer is missing, unknown or out of range. More: docs/errors/ParamError.md."""

    # The reason of C++ (op_function.cc) for an unknown keyword. The keywords of other libraries are in Python's table.
    _UNKNOWN_KEYWORD: ClassVar[str] = "the operator has no argument of this name"
    _because: str | None = None

    @property
    def because(self) -> str | None:
        """The reason, as a sentence without its end; None if it is unknown."""
        return self._because

    @because.setter
    def because(self, text: str | None) -> None:
        self._because = text
        if text == self._UNKNOWN_KEYWORD:
            self.find_fix_later(self._fix_of_keyword)

    def _fix_of_keyword(self) -> str | None:
        from ._habits import keyword_fix

        known = (self.expected or "").removeprefix("one of: ").split(", ")
        return keyword_fix([self.op or ""], self.input or "", known)


class ShapeError(HybridNetError, builtins.ValueError):
    """Shapes do not match. More: docs/errors/ShapeError.md."""


class DTypeError(HybridNetError, builtins.TypeError):
    """Element types do not match, or the type does not exist. More: docs/errors/DTypeError.md."""


class TypeError(HybridNetError, builtins.TypeError):
    """An argument has the wrong kind. More: docs/errors/TypeError.md."""


class ValueError(HybridNetError, builtins.ValueError):
    """An argument has the right kind, but an invalid value. More: docs/errors/ValueError.md."""


class IndexError(HybridNetError, builtins.IndexError):
    """An index is out of bounds. More: docs/errors/IndexError.md."""


class KeyError(HybridNetError, builtins.KeyError):
    """A name or key does not exist. More: docs/errors/KeyError.md."""


class AttributeError(HybridNetError, builtins.AttributeError):
    """A module or object has no such attribute. More: docs/errors/AttributeError.md."""

    def __init__(self, message: str = "", **parts: str | None) -> None:
        super().__init__(message, **parts)
        self.name = None  # otherwise Python sets it, and its tracebacks add a second proposal behind the fix


class ImportError(HybridNetError, builtins.ModuleNotFoundError):
    """A module does not exist or cannot be imported. More: docs/errors/ImportError.md."""


class FormatError(HybridNetError, builtins.ValueError):
    """A file or string violates its format. More: docs/errors/FormatError.md."""


class FileError(HybridNetError, OSError):
    """A file is missing, unreadable or unwritable. More: docs/errors/FileError.md."""


class GradientError(HybridNetError):
    """An array is not differentiable, was overwritten in place or freed, or was not recorded.

    More: docs/errors/GradientError.md.
    """


class AnomalyError(HybridNetError, builtins.ValueError):
    """An operator made a NaN or an infinity inside of autograd.detect_anomaly(); given: count, place and shape.

    More: docs/errors/AnomalyError.md.
    """


class TraceError(HybridNetError, builtins.TypeError):
    """A value of a traced array is needed, but it has only shape and dtype. More: docs/errors/TraceError.md."""

    code: str = ""  # HN100 to HN109 if control flow of a program cannot become part of a graph (docs/errors)
    # Called for each new error: a trace records it, in case the program catches it and continues (_tracing.Refusals).
    _listener: ClassVar[Callable[[TraceError], None] | None] = None

    def __init__(self, message: str = "", **parts: str | None) -> None:
        super().__init__(message, **parts)
        if TraceError._listener is not None:
            TraceError._listener(self)


class DeferredInitializationError(HybridNetError):
    """A parameter has no values yet, because its shape is only known after the first batch.

    More: docs/errors/DeferredInitializationError.md.
    """


class EngineError(HybridNetError):
    """The engine was used in an invalid way, such as waiting inside a task. More: docs/errors/EngineError.md."""


class UserWarning(HybridNetError, builtins.UserWarning):
    """A call would not have the apparent effect. Raised as an exception, like in MXNet.

    More: docs/errors/UserWarning.md.
    """


class OutOfMemoryError(HybridNetError, MemoryError):
    """The device does not have enough memory. More: docs/errors/OutOfMemoryError.md."""


class UnsupportedError(HybridNetError, NotImplementedError):
    """A valid operation is not supported on this device, for this type, or in this build.

    More: docs/errors/UnsupportedError.md.
    """


class GroupError(HybridNetError, ConnectionError):
    """Another process of the group died, stopped or disagrees. More: docs/errors/GroupError.md."""


__dir__ = dir_of(__name__)
