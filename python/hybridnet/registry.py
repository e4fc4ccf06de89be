"""Registries of classes by name, which create initializers and metrics from a name, a JSON text or an instance."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from ._public_names import dir_of
from ._user_line import warn
from .errors import TypeError as HybridNetTypeError
from .errors import ValueError as HybridNetValueError
from .errors import suggestion

T = TypeVar("T", bound=type)

_REGISTRY: dict[type, dict[str, type]] = {}


def get_registry(base_class: type) -> dict[str, type]:
    """Returns a copy of the names registered for base_class."""
    return dict(_REGISTRY.get(base_class, {}))


def get_register_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """Returns a function that registers subclasses of base_class; nickname is used in messages."""
    table = _REGISTRY.setdefault(base_class, {})

    def register(klass: T, name: str | None = None) -> T:
        if not (isinstance(klass, type) and issubclass(klass, base_class)):
            raise HybridNetTypeError("register", expected=f"a subclass of {base_class.__name__}", given=repr(klass))
        key = (name or klass.__name__).lower()
        previous = table.get(key)
        if previous is not None and previous is not klass:
            warn(
                f"new {nickname} {klass.__module__}.{klass.__name__} registered with name {key} is overriding existing "
                f"{nickname} {previous.__module__}.{previous.__name__}",
                UserWarning,
            )
        table[key] = klass
        return klass

    register.__doc__ = f"Registers a subclass of {base_class.__name__} under its lower-case name."
    return register


def get_alias_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """Returns a decorator that registers a class under further names."""
    register = get_register_func(base_class, nickname)

    def alias(*aliases: str) -> Callable[[T], T]:
        def add(klass: T) -> T:
            for name in aliases:
                register(klass, name)
            return klass

        return add

    alias.__doc__ = f"Decorator: registers a {nickname} under further names."
    return alias


def _instance_fix(nickname: str, name: Any, base_class: type) -> str:
    """The fix for a value that is no name and no instance."""
    if hasattr(name, "device_typeid"):
        return f"name the device: ctx={name!r}"
    if isinstance(name, type) and issubclass(name, base_class):
        return f"pass an instance: {name.__name__}()"
    return f"pass the name of one, or an instance; {nickname}.create makes it from both"


def get_create_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """Returns a function that creates an instance from an instance, a name, a JSON text or a dict."""
    table = _REGISTRY.setdefault(base_class, {})

    def create(*args: Any, **kwargs: Any) -> Any:
        if args:
            name, args = args[0], args[1:]
        else:
            name = kwargs.pop(nickname)
        if isinstance(name, base_class):
            if args or kwargs:
                raise HybridNetValueError(f"{nickname} is already an instance. Additional arguments are invalid")
            return name
        if isinstance(name, dict):
            return create(**name)
        if not isinstance(name, str):
            raise HybridNetTypeError(
                f"{nickname} must be a string or an instance of {base_class.__name__}",
                given=f"the class {name.__name__}" if isinstance(name, type) else repr(name),
                fix=_instance_fix(nickname, name, base_class),
            )
        if name.startswith("["):
            if args or kwargs:
                raise HybridNetValueError(f"{nickname} is given as JSON. Additional arguments are invalid")
            name, kwargs = json.loads(name)
            return create(name, **kwargs)
        if name.startswith("{"):
            if args or kwargs:
                raise HybridNetValueError(f"{nickname} is given as JSON. Additional arguments are invalid")
            return create(**json.loads(name))
        klass = table.get(name.lower())
        if klass is None:
            raise HybridNetValueError(
                f"{name} is not registered. Please register with {nickname}.register first",
                fix=suggestion(name, sorted(table)),
            )
        return klass(*args, **kwargs)

    create.__doc__ = f"Creates a {nickname} from its name and arguments, a JSON text, or returns an instance as it is."
    return create


__dir__ = dir_of(__name__)
