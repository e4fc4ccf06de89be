"""Texts of kernels: several in one translation unit, and the results of their compilation for each of them."""

from __future__ import annotations

import re
from typing import NamedTuple

import hybridnet as mx
from ptx import nvrtc

__all__ = ["Facts", "facts_in", "facts_of", "family", "merged"]


class Facts(NamedTuple):
    """Facts of a kernel: its text, its name there, bytes of spilled registers, and whether its PTX has estimates."""

    text: str
    name: str
    spilled: int
    estimates: bool


def merged(texts: list[str]) -> str:
    """One translation unit of several texts: compiled together, the headers are read once."""
    includes: dict[str, None] = {}
    bodies = []
    for number, text in enumerate(texts):
        lines = text.splitlines()
        includes.update((line, None) for line in lines if line.startswith("#include"))
        body = "\n".join(line for line in lines if not line.startswith("#include"))
        for words in re.findall(r"^\s*(?:using (\w+) =|struct (\w+))", body, re.MULTILINE):
            name = words[0] or words[1]
            body = re.sub(rf"(?<![:\w]){name}\b", f"{name}{number}", body)
        bodies.append(re.sub(r"(HN_(?:BLOCK_)?KERNEL)\((\w+),", rf"\g<1>(\g<2>_{number},", body))
    return "\n".join([*includes, *bodies])


def family(text: str) -> str:
    """The header that has the kernels of a text, without its suffix."""
    return re.findall(r"device/(\w+)\.cuh", text)[0]


def facts_of(texts: list[str], architecture: str) -> list[Facts]:
    """Compiles texts together. Returns the facts of each kernel in them."""
    options = (*nvrtc.EXACT_OPTIONS, "--ptxas-options=-v")
    return facts_in(nvrtc.compile(merged(texts), mx._core.kernel_headers(), architecture, options), texts)


def facts_in(compiled: nvrtc.Compiled, texts: list[str]) -> list[Facts]:
    """The facts of each kernel of merged texts, which were compiled with the report of ptxas."""
    parts = re.split(r"\.entry (\w+)\(", compiled.ptx)
    estimates = {name for name, body in zip(parts[1::2], parts[2::2]) if re.search(r"\.approx|\.ftz", body)}
    reports = re.split(r"Compiling entry function '(\w+)'", compiled.log)
    facts = []
    for entry, report in zip(reports[1::2], reports[2::2]):
        name, _, number = entry.rpartition("_")
        stores, loads = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", report)[0]
        facts.append(Facts(texts[int(number)], name, max(int(stores), int(loads)), entry in estimates))
    return facts
