"""API pages: each public name of a module with its signature and docstring, grouped, with an anchor."""

from __future__ import annotations

import importlib
import inspect
import re
import types
from dataclasses import dataclass, field
from typing import Any

import docstrings
import stage
from api_modules import MODULES, Module
from places import import_package, write

import_package()

import hybridnet as mx  # noqa: E402
from hybridnet import _core  # noqa: E402

OPERATORS = (_core.OpFunction, _core.BinaryFunction)
KINDS = ("Classes", "Functions", "Operators", "Values")


def find(name: str) -> Any:
    """Returns the module with a name as users write it: gluon.nn, nd; "" is hybridnet itself."""
    found: Any = mx
    for part in filter(None, name.split(".")):
        if not hasattr(found, part):
            importlib.import_module(f"{found.__name__}.{part}")
        found = getattr(found, part)
    return found


def public_names(module: Any) -> list[str]:
    """Names of a module that are part of its API: `__all__`, or public names that its package defines."""
    listed = set(getattr(module, "__all__", ()))
    names = {name for name in dir(module) if not name.startswith("_")}
    if module.__name__ in ("hybridnet.ndarray", "hybridnet.symbol"):  # the registry adds the operators
        listed |= names
    found = [name for name in listed or names if is_own(getattr(module, name, None), module, name in listed)]
    return sorted(found, key=lambda name: (name.lower(), name))


def is_own(value: Any, module: Any, is_listed: bool) -> bool:
    """True for functions and classes of this package; if `__all__` does not list them, those of the module only."""
    if value is None or isinstance(value, types.ModuleType):
        return False
    if isinstance(value, OPERATORS):
        return True
    owner = getattr(value, "__module__", None) or ""
    home = "hybridnet" if is_listed else module.__name__
    if not is_listed and home.count(".") > 1 and not hasattr(module, "__path__"):
        home = home.rpartition(".")[0]  # the files of a package share its private files
    return (inspect.isclass(value) or callable(value)) and owner.startswith(home)


def kind_of(value: Any) -> str:
    if isinstance(value, OPERATORS):
        return "Operators"
    if inspect.isclass(value):
        return "Classes"
    return "Functions" if callable(value) else "Values"


def parameter_text(parameter: inspect.Parameter) -> str:
    """``name: type = default``, with types that are strings at run time shown as they were written."""
    text = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "") + parameter.name
    kind = parameter.annotation
    has_type = kind is not parameter.empty and kind not in ("Any", Any)
    if has_type:
        text += f": {kind if isinstance(kind, str) else inspect.formatannotation(kind)}"
    if parameter.default is not parameter.empty:
        shown = repr(parameter.default)
        shown = re.sub(r"<(?:class|function) '?([\w.]+)'?[^>]*>", r"\1", shown)
        text += f" = {shown}" if has_type else f"={shown}"
    return text


def signature(value: Any, name: str) -> str:
    """The call of a function or class: ``name(a, b=1)``; long ones with one parameter per line."""
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return f"{name}(...)"
    rows: list[str] = []
    star = False
    for parameter in found.parameters.values():
        if parameter.name in ("self", "cls") and not rows:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            rows.append("*")
        star = star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        rows.append(parameter_text(parameter))
    text = f"{name}({', '.join(rows)})"
    return text if len(text) <= 100 else f"{name}(\n" + "".join(f"    {row},\n" for row in rows) + ")"


def own_docstring(value: Any) -> str:
    """The docstring of a function or class; of a class without one, that of its constructor."""
    doc = inspect.getdoc(value) or ""
    if inspect.isclass(value) and "__doc__" not in vars(value):
        constructor = vars(value).get("__init__")
        doc = inspect.getdoc(constructor) or "" if constructor else ""
    return doc


def heading(level: int, text: str, anchor: str) -> str:
    label = text.rpartition(".")[2]  # the table of contents is narrow
    return f'{"#" * level} `{text}` {{ #{anchor} data-toc-label="{label}" }}'


def member(owner: str, name: str, value: Any) -> str | None:
    """The text about a method or property; None if it has no docstring or refuses names of other libraries."""
    raw = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
    is_data = isinstance(raw, (property, types.GetSetDescriptorType))
    doc = inspect.getdoc(raw)
    if not doc or type(raw).__module__.startswith("hybridnet._habits") or not (is_data or callable(raw)):
        return None
    anchor = f"{owner}.{name}"
    if is_data:
        return f"{heading(4, name, anchor)}\n\n{docstrings.markdown(doc)}"
    call = signature(raw, name)
    return f"{heading(4, name + '()', anchor)}\n\n```python\n{call}\n```\n\n{docstrings.markdown(doc)}"


def is_private(base: type) -> bool:
    return base.__name__.startswith("_") or base.__module__ == "hybridnet._core"


def class_members(value: type, qualified: str) -> list[str]:
    """Texts of the public methods and properties that a class or its private bases define, and its public bases."""
    own: dict[str, Any] = {}
    bases: list[type] = []
    for base in value.__mro__:
        if base is value or (is_private(base) and not bases):
            own = {**{k: v for k, v in vars(base).items() if not k.startswith("_")}, **own}
        elif base.__module__.startswith("hybridnet") and not is_private(base):
            bases.append(base)
    names = list(own)
    operators = [n for n in names if type(own[n]).__name__ == "_FluentMethod" or isinstance(own[n], OPERATORS)]
    inherited = {name for base in bases for name in vars(base)}
    texts = []
    if bases:
        shown = " and ".join(base_link(base) for base in bases)
        texts.append(f"Has the methods of {shown}.")
    if operators:
        calls = ", ".join(f"`{name}`" for name in operators)
        texts.append(f"Operators as methods, with this array as the first argument: {calls}.")
    hidden = {"hybrid_forward", "forward"} & inherited  # the docstring of the class describes what they compute
    return texts + [t for n in names if n not in operators and n not in hidden and (t := member(qualified, n, own[n]))]


BASE_PAGES = {"HybridBlock": "gluon.md#mx.gluon.HybridBlock", "Block": "gluon.md#mx.gluon.Block"}


def base_link(base: type) -> str:
    page = BASE_PAGES.get(base.__name__)
    return f"[`{base.__name__}`]({page})" if page else f"`{base.__name__}`"


@dataclass
class Links:
    """Places on the pages: of operators by registered name, of classes that have a section already."""

    operators: dict[str, str]
    classes: dict[type, str] = field(default_factory=dict)


def entry(page: str, module: str, name: str, value: Any, links: Links) -> str:
    """The section about a public name; a class that has a section elsewhere gets a link to it."""
    qualified = ".".join(filter(None, ("mx", module, name)))
    parts = [heading(3, qualified, qualified)]
    if inspect.isclass(value):
        place = links.classes.get(value)
        if place:
            return "\n\n".join([*parts, f"The class [`{place.partition('#')[2]}`]({place})."])
        if value.__name__ != name and value.__name__ in dir(find(module)):
            return "\n\n".join([*parts, f"Another name of `{value.__name__}`."])
        links.classes[value] = f"{page}.md#{qualified}"
    parts.append(f"```python\n{signature(value, qualified)}\n```")
    parts.append(docstrings.markdown(own_docstring(value)))
    if inspect.isclass(value) and not issubclass(value, BaseException):
        parts += class_members(value, qualified)
    return "\n\n".join(part for part in parts if part)


def operator_list(module: str, found: dict[str, Any], links: Links) -> str:
    """Operators as links to their sections on the pages of operators."""
    shown = []
    for name, value in found.items():
        home = links.operators.get(value.op_name)
        shown.append(f"[`mx.{module}.{name}`](operators/{home})" if home else f"`mx.{module}.{name}`")
    return ", ".join(shown)


def module_part(page: str, name: str, names: tuple[str, ...], links: Links) -> list[str]:
    """The text about one module: its docstring, then its names by kind."""
    module = find(name)
    parts = [docstrings.markdown(module.__doc__)] if name else []
    found = {n: getattr(module, n) for n in (names or public_names(module))}
    title = f" of `mx.{name}`" if name else ""
    for kind in KINDS:
        group = {n: value for n, value in found.items() if kind_of(value) == kind}
        if not group:
            continue
        parts.append(f"## {kind}{title}")
        if kind == "Operators":
            linked = {n: value for n, value in group.items() if isinstance(value, _core.OpFunction)}
            parts.append(operator_list(name, linked, links))
            group = {n: value for n, value in group.items() if n not in linked}
        parts += [entry(page, name, n, value, links) for n, value in group.items()]
    return parts


def shown_name(module: Module) -> str:
    return f"mx.{module.name}" if module.name else "mx.function"


def page(module: Module, links: Links) -> str:
    """A page of the API: a module, and the modules whose names are documented with it."""
    parts = [f"# {shown_name(module)}", module.note, *module_part(module.page, module.name, module.names, links)]
    for name in module.parts:
        parts += module_part(module.page, name, (), links)
    return "\n\n".join(part for part in parts if part) + "\n"


def overview() -> str:
    """The first page: all modules with the first sentence of their docstrings."""
    parts = [
        "# API",
        "Generated from signatures and docstrings; `help(mx.gluon.nn.Dense)` shows the same in Python. "
        "Operators, which `mx.nd` and `mx.sym` share, stand on [pages of their own](operators/index.md).",
    ]
    for group in dict.fromkeys(module.group for module in MODULES):
        parts.append(f"## {group}")
        rows = []
        for module in (m for m in MODULES if m.group == group):
            text = docstrings.summary(find(module.name).__doc__) if module.name else FUNCTION_SUMMARY
            text = re.sub(r"^`[\w.]+`: ", "", text)
            rows.append(f"- [`{shown_name(module)}`]({module.page}.md): {text}")
        parts.append("\n".join(rows))
    return "\n\n".join(parts) + "\n"


FUNCTION_SUMMARY = "Compiled functions with named inputs, shared variables and atomic updates."


def write_pages(homes: dict[str, str]) -> list[Any]:
    """Writes all pages; returns their navigation. homes: page and anchor of each operator."""
    known = stage.targets()
    write("api/index.md", overview())
    navigation: list[Any] = ["api/index.md"]
    links = Links(homes)
    for group in dict.fromkeys(module.group for module in MODULES):
        members = [m for m in MODULES if m.group == group]
        for module in members:
            name = f"api/{module.page}.md"
            text = stage.relinked(page(module, links), f"docs/{name}", name, known)
            write(name, stage.weighted(text, 2 if "contrib" in module.name else 5))
        navigation.append({group: [{shown_name(m): f"api/{m.page}.md"} for m in members]})
    return navigation
