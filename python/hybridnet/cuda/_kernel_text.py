"""Declarations of kernels in CUDA text: the parameters, and which arrays a kernel only reads."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Parameter", "kernels_in", "parameter_from", "parameters_of"]

# Types of C and the dtypes of their values.
_DTYPES = {
    **dict.fromkeys(["float"], "float32"),
    **dict.fromkeys(["double"], "float64"),
    **dict.fromkeys(["half", "__half"], "float16"),
    **dict.fromkeys(["bool"], "bool"),
    **dict.fromkeys(["char", "signed char", "int8_t"], "int8"),
    **dict.fromkeys(["unsigned char", "uint8_t"], "uint8"),
    **dict.fromkeys(["short", "short int", "int16_t"], "int16"),
    **dict.fromkeys(["unsigned short", "uint16_t"], "uint16"),
    **dict.fromkeys(["int", "signed", "signed int", "int32_t"], "int32"),
    **dict.fromkeys(["unsigned", "unsigned int", "uint32_t"], "uint32"),
    **dict.fromkeys(["long", "long int", "long long", "long long int", "int64_t", "ptrdiff_t"], "int64"),
    **dict.fromkeys(["unsigned long", "unsigned long long", "uint64_t", "size_t"], "uint64"),
}
_QUALIFIERS = re.compile(r"\b(const|volatile|__restrict__|__restrict|__grid_constant__|std::)\b|\bstd::")
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(r"__global__\b[^;{}()]*(?:\([^()]*\))?[^;{}()]*?\b(\w+)\s*\(")


class Parameter(NamedTuple):
    """A parameter of a kernel. dtype: of the number, or of the elements of the array; None for an unknown type."""

    text: str
    name: str
    dtype: str | None
    is_array: bool
    is_const: bool


def parameter_from(text: str) -> Parameter:
    """Returns the parameter that a declaration such as ``const float* x`` describes."""
    text = " ".join(text.split())
    is_array = "*" in text or "[" in text
    before, *after = re.split(r"\*|\[", text, maxsplit=1)
    is_const = is_array and re.search(r"\bconst\b", before) is not None
    words = _QUALIFIERS.sub(" ", before).split()
    name = ""
    if "*" in text:
        name = (re.findall(r"\w+", _QUALIFIERS.sub(" ", after[0])) or [""])[-1]
        if "*" in after[0]:  # a pointer to pointers, which the kernel may write
            words, is_const = [], False
    elif len(words) > 1 and " ".join(words) not in _DTYPES:
        name = words.pop()
    return Parameter(text, name, _DTYPES.get(" ".join(words)), is_array, is_const)


def parameters_of(code: str, kernel: str) -> list[Parameter] | None:
    """Returns the parameters of a kernel; None if the text does not show them (a macro declares the kernel)."""
    code = _COMMENTS.sub(" ", code)
    plain_name = kernel.split("<")[0].strip().split("::")[-1]
    for found in _KERNEL.finditer(code):
        if found.group(1) == plain_name:
            return [parameter_from(part) for part in _split(_enclosed(code, found.end()))]
    return None


def kernels_in(code: str) -> list[str]:
    """Returns the names of the kernels that the text declares."""
    return list(dict.fromkeys(found.group(1) for found in _KERNEL.finditer(_COMMENTS.sub(" ", code))))


def _enclosed(code: str, start: int) -> str:
    """Returns the text from start to the parenthesis that ends the list."""
    depth = 1
    for at in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return code[start:at]
    return code[start:]


def _split(declarations: str) -> list[str]:
    """Splits at the commas that are outside of parentheses and of angle brackets."""
    parts, depth = [""], 0
    for character in declarations:
        depth += {"(": 1, "<": 1, "[": 1, ")": -1, ">": -1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [] if parts == [""] or declarations.strip() in ("", "void") else parts
