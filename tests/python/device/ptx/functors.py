"""The functors of src/kernels/functors, and texts that map each over arrays (kernels/elementwise/device_map.cc)."""

from __future__ import annotations

import re
from typing import NamedTuple

from .headers import SOURCE

_FUNCTOR = re.compile(
    r"(?P<template>template <class T>\n)?struct (?P<name>\w+) \{(?P<head>(?:(?!\nstruct |\n\}).)*?)"
    r"operator\(\)\((?P<parameters>[^)]*)\)",
    re.DOTALL,
)


class Functor(NamedTuple):
    name: str
    arity: int
    is_template: bool  # Leaky<float>, constructed from scalars


def functors_of(header: str) -> list[Functor]:
    """The functors of kernels/functors/<header>.h, in order."""
    text = (SOURCE / "kernels" / "functors" / f"{header}.h").read_text()
    found = []
    for match in _FUNCTOR.finditer(text):
        inputs = [each for each in match["parameters"].split(",") if each.split()[0] != "D"]
        found.append(Functor(match["name"], len(inputs), match["template"] is not None))
    return found


def entry_of(functor: Functor, element: str) -> str:
    return f"{functor.name}_{element}"


def map_text(header: str, functors: list[Functor], elements: tuple[str, ...]) -> str:
    """One kernel for each functor and element type: entry_of() names it."""
    kernels = [
        f"HN_KERNEL({entry_of(functor, element)}, MapArguments) {{ "
        f"Map<{functor.name}{f'<{element}>' if functor.is_template else ''}, "
        f"{element}, {element}, {element}, {functor.arity}>::map(a); }}"
        for functor in functors
        for element in elements
    ]
    return "\n".join(
        [
            '#include "kernels/device/map.cuh"',
            f'#include "kernels/functors/{header}.h"',
            "namespace hybridnet::device {",
            "using namespace kernels::HWY_NAMESPACE;",
            *kernels,
            "}",
        ]
    )
