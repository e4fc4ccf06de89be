"""Names that users of PyTorch, Keras and NumPy type, with the names here: the fixes of errors about unknown names.

One table for modules, one for objects, one for keywords. They are read when an error is raised or printed. Classes get
an attribute for each name that is looked for on their objects (:func:`add_habits`): a ``__getattr__`` would make every
attribute slower, also those that exist.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Collection, Iterable
from typing import Any

from ..errors import AttributeError as HybridNetAttributeError

__all__ = ["Habit", "add_habits", "keyword_fix", "module_fix", "nearest", "replacement"]

# Modules in which a name is looked for that another module does not have, in this order, as users write them.
_PLACES = {
    "ndarray": "mx.nd",
    "gluon.nn": "mx.gluon.nn",
    "gluon": "mx.gluon",
    "gluon.loss": "mx.gluon.loss",
    "gluon.data": "mx.gluon.data",
    "gluon.rnn": "mx.gluon.rnn",
    "gluon.utils": "mx.gluon.utils",
    "autograd": "mx.autograd",
    "optimizer": "mx.optimizer",
    "initializer": "mx.init",
    "metric": "mx.metric",
    "lr_scheduler": "mx.lr_scheduler",
    "ndarray.contrib": "mx.nd.contrib",
    "ndarray.linalg": "mx.nd.linalg",
    "ndarray.random": "mx.nd.random",
    "gluon.data.vision": "mx.gluon.data.vision",
    "gluon.data.vision.transforms": "mx.gluon.data.vision.transforms",
    "numpy_extension": "mx.npx",
    "numpy": "mx.np",
    "context": "mx",
    "image": "mx.image",
    "io": "mx.io",
}
_IMPORTED = {"Any", "TYPE_CHECKING", "annotations", "importlib", "lazy_functions", "names_from", "no_attribute"}


def replacement(line: str) -> str:
    """Returns a line of the tables as the text of a fix."""
    code, _, remark = line.partition("# ")
    code = code.strip()
    if not code:
        return remark
    return f"write {code}: {remark}" if remark else f"write {code}"


# --- names of modules -------------------------------------------------------------------------------------------------


def module_fix(module: str, name: str) -> str | None:
    """Returns the fix for a name that a module does not have; None if nothing is similar."""
    from ._module_names import MODULE_NAMES
    from ._object_names import OBJECT_NAMES

    path = module.partition(".")[2]
    line = MODULE_NAMES.get(path, {}).get(name)
    if line is None and path == "symbol":
        line = _for_symbols(MODULE_NAMES["ndarray"].get(name)) or OBJECT_NAMES["symbol"].get(name)
    if line is not None:
        return replacement(line)
    place = _place_of(path, name)
    if place is not None:
        return f"write {place}.{name}"
    near = nearest(name, dir(sys.modules[module])) if module in sys.modules else None
    return None if near is None else f"did you mean {near!r}?"


def _for_symbols(line: str | None) -> str | None:
    """Returns a line for mx.nd as one for mx.sym, if it calls a function that both have."""
    found = re.match(r"mx\.nd\.(\w+)", line or "")
    if line is None or found is None:
        return None
    return line.replace("mx.nd.", "mx.sym.") if _has("symbol", found[1]) else None


def _has(path: str, name: str) -> bool:
    """Whether a module of the package has a public class or function of this name."""
    value = getattr(importlib.import_module(f"hybridnet.{path}"), name, None)
    return callable(value) and (getattr(value, "__module__", None) or "").startswith("hybridnet")


def _place_of(path: str, name: str) -> str | None:
    """Returns the module, as users write it, that has a name which the module at path lacks."""
    places = list(_PLACES.items())
    if path.startswith("numpy"):
        places.reverse()
    elif path.startswith("symbol"):
        places = [("symbol", "mx.sym"), ("symbol.contrib", "mx.sym.contrib"), ("symbol.random", "mx.sym.random")]
    elif path not in ("", *_PLACES):
        return None
    return next((shown for place, shown in places if place != path and _has(place, name)), None)


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Returns the public name that is most similar, whatever its case; None if none is similar."""
    import difflib

    public = {word.lower(): word for word in names if not word.startswith("_") and word not in _IMPORTED}
    near = difflib.get_close_matches(name.lower(), public, 1, 0.7)
    return public[near[0]] if near else None


# --- names of objects -------------------------------------------------------------------------------------------------


class Habit:
    """Attribute of a class for a name that its objects do not have: reading it raises AttributeError with the fix.

    Any other attribute of this name is preferred: of the object, of a subclass, and of a class behind the owner in the
    order of inheritance.
    """

    __slots__ = ("line", "name", "owner")

    def __init__(self, owner: type, name: str, line: str) -> None:
        self.owner = owner
        self.name = name
        self.line = line

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The text that help() shows."""
        return f"No attribute here: {replacement(self.line)}."

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        owner = owner or type(instance)
        order = owner.__mro__
        for cls in order[order.index(self.owner) + 1 :] if self.owner in order else ():
            found = vars(cls).get(self.name, self)
            if not isinstance(found, Habit):
                return found.__get__(instance, owner) if hasattr(type(found), "__get__") else found
        raise self.error(instance, owner)

    def error(self, instance: Any, owner: type) -> HybridNetAttributeError:
        """Returns the error for the name; instance: None if it was looked for on the class owner."""
        subject = f"type object {owner.__name__!r}" if instance is None else f"{owner.__name__!r} object"
        error = HybridNetAttributeError(f"{subject} has no attribute {self.name!r}")
        error.find_fix_later(lambda: replacement(self.line))
        return error


class RefusingHabit(Habit):
    """A Habit that also raises its error if the name is set, which would have no effect."""

    __slots__ = ()

    def __set__(self, instance: Any, value: Any) -> None:
        raise self.error(instance, type(instance))


def add_habits(cls: type, kind: str, refused: Collection[str] = ()) -> None:
    """Adds the names of a kind of object in the table to its class, and hides them from dir() of objects.

    refused: names that must not be set either, such as ``param.requires_grad``.
    """
    from ._object_names import OBJECT_NAMES

    for name, line in OBJECT_NAMES[kind].items():
        setattr(cls, name, (RefusingHabit if name in refused else Habit)(cls, name, line))
    listed: Any = cls.__dir__

    def __dir__(self: object) -> list[str]:
        return _existing_names(self, listed(self))

    cls.__dir__ = __dir__  # type: ignore[assignment]


def _existing_names(instance: object, names: Iterable[str]) -> list[str]:
    """Returns names without those that only exist for their error."""
    cls = type(instance)
    own = getattr(instance, "__dict__", ())
    return [name for name in names if name in own or not _is_habit(cls, name)]


def _is_habit(cls: type, name: str) -> bool:
    """Whether the first class that has a name has it as a Habit, and no class behind it has anything else."""
    values = [vars(base)[name] for base in cls.__mro__ if name in vars(base)]
    return bool(values) and all(isinstance(value, Habit) for value in values)


# --- keywords ---------------------------------------------------------------------------------------------------------


def keyword_fix(owners: Collection[str], word: str, known: Collection[str]) -> str | None:
    """Returns the fix for an unknown keyword; None if the table has none whose keywords are known.

    owners: names of the called operator, or of the class and its bases. known: the keywords that it takes.
    """
    from ._keyword_names import KEYWORD_NAMES

    for entry in KEYWORD_NAMES.get(word, ()):
        only, line = entry if isinstance(entry, tuple) else ("", entry)
        if only and not any(owner in only.split() for owner in owners):
            continue
        if line.startswith("# "):
            return line[2:]
        names = re.findall(r"(?:^|, )(\w+)=", line)
        if all(name in known for name in names or [line]):
            return f"write {line if names else f'{line}=...'} in place of {word}=..."
    return None
