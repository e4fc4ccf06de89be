"""The parameter structs of kernels as ctypes structures, read from their headers."""

from __future__ import annotations

import ctypes
import functools
import re

from .headers import SOURCE

_SCALARS = {
    **{f"int{bits}_t": getattr(ctypes, f"c_int{bits}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": getattr(ctypes, f"c_uint{bits}") for bits in (8, 16, 32, 64)},
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "bool": ctypes.c_bool,
    "int": ctypes.c_int,
}
_STRUCT = re.compile(r"struct (\w+) \{(.*?)\n\};", re.DOTALL)
_CONSTANT = re.compile(r"constexpr int (\w+) = (\d+);")


@functools.cache
def struct_of(header: str, name: str) -> type[ctypes.Structure]:
    """The struct `name` of src/kernels/device/<header>. Raises KeyError for an unknown struct or type."""
    text = re.sub(r"//[^\n]*", "", (SOURCE / "kernels" / "device" / header).read_text())
    constants = {found[1]: int(found[2]) for found in _CONSTANT.finditer(text)}
    bodies = {found[1]: found[2] for found in _STRUCT.finditer(text)}
    fields = [field for line in bodies[name].split(";") if line.strip() for field in _fields(line, constants)]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


def _fields(declaration: str, constants: dict[str, int]) -> list[tuple[str, type]]:
    """`const void *a, *b` or `int64_t strides[4][kMaxMapDims]` as fields."""
    kind, _, names = declaration.strip().removeprefix("const ").partition(" ")
    points = kind.endswith("*")
    fields: list[tuple[str, type]] = []
    for declarator in names.split(","):
        name, *sizes = re.split(r"[\[\]]+", declarator.split("=")[0].strip().rstrip("]"))
        is_pointer = points or name.startswith("*")
        field: type = ctypes.c_void_p if is_pointer else _SCALARS[kind]
        for size in reversed(sizes):
            field = field * (constants[size] if size in constants else int(size))
        fields.append((name.lstrip("* "), field))
    return fields
