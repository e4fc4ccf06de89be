"""Text of objects for ``repr``: the class, and the arguments that differ from the constructor's defaults."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["changed_arguments", "count_text", "described", "name_of_callable"]


def described(instance: object, *parts: str, **arguments: Any) -> str:
    """Returns "Class(part, name=value, ...)"."""
    texts = [*parts, *(f"{name}={_short(value)}" for name, value in arguments.items())]
    return f"{type(instance).__name__}({', '.join(texts)})"


def changed_arguments(
    instance: object, names: Mapping[str, str] | None = None, leave_out: Iterable[str] = ()
) -> dict[str, Any]:
    """Returns the constructor's arguments whose values are known and are not the defaults.

    The value of an argument is the attribute of its name, with or without an underscore in front. names: attributes of
    arguments with other names.
    """
    found = {}
    for name, parameter in inspect.signature(type(instance).__init__).parameters.items():
        if name == "self" or name in leave_out or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        for attribute in ((names or {}).get(name, name), f"_{name}"):
            value = vars(instance).get(attribute, parameter)
            if value is not parameter:
                if parameter.default is parameter.empty or not _equal(value, parameter.default):
                    found[name] = value
                break
    return found


def _equal(value: Any, default: Any) -> bool:
    try:
        return bool(value is default or value == default)
    except (TypeError, ValueError):  # arrays
        return False


def count_text(count: int, noun: str) -> str:
    """Returns "1 sample", "2,000 samples"."""
    if count != 1:
        noun = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{count:,} {noun}"


def name_of_callable(function: Any) -> str:
    """Returns the name of a function or a class, else the text of the object."""
    return str(getattr(function, "__name__", None) or repr(function))


def _short(value: Any) -> str:
    text = name_of_callable(value) if inspect.isroutine(value) or inspect.isclass(value) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:77]}..."
