"""Python source of programs, which executors run and reports print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .instructions import Neighbor
from .program import Array, Program


@dataclass
class Round:
    """The lines of one round of calls."""

    begin: list[str]
    call: list[str]
    end: list[str]


@dataclass
class Source:
    """The lines of a program. The executor defines `prepare(net)` and `note(label, array)`."""

    imports: list[str]
    block: list[str]
    rounds: list[Round]

    def text(self, prepare: str | None = None, notes: bool = True) -> str:
        """Returns the whole source; `prepare` replaces the line with prepare(net), `notes` keeps note() lines."""
        lines = self.imports + self.block
        for part in self.rounds:
            lines = [*lines, "", *part.begin, *part.call, *part.end]
        if prepare is not None:
            lines = [prepare if line == "net = prepare(net)" else line for line in lines]
        if not notes:
            lines = [line for line in lines if not line.lstrip().startswith("note(")]
        return "\n".join(lines) + "\n"


def numbers_text(values: np.ndarray) -> str:
    """Returns an expression for a NumPy array."""
    return f"onp.array({values.tolist()!r}, dtype={str(values.dtype)!r}).reshape({values.shape!r})"


def _array_text(array: Array, number: int, is_np: bool) -> str:
    module = "np" if is_np else "nd"
    values = array.values[number]
    return f"{module}.array({numbers_text(values)}, dtype={array.dtype!r})"


def make(program: Program) -> Source:
    imports = [
        "from math import inf, nan",
        "import numpy as onp",
        "import hybridnet as mx",
        "from hybridnet import autograd, nd, np, npx",
    ]
    if any(isinstance(i, Neighbor) and i.form.startswith("torch") for part in program.lists() for i in part):
        imports.append("import torch")
    if program.is_np:
        imports.append("npx.set_np()")
    return Source(imports, _block(program), [_round(program, number) for number in range(program.rounds)])


def _block(program: Program) -> list[str]:
    arguments = [f"x{number}" for number in range(len(program.arguments))]
    names = [parameter.name for parameter in program.parameters]
    lines = ["", "", "class Net(mx.gluon.HybridBlock):", "    def __init__(self):", "        super().__init__()"]
    for parameter in program.parameters:
        req = program.grad_req if parameter.gradient and program.record else "null"
        lines.append(
            f"        self.{parameter.name} = self.params.get({parameter.name!r}, shape={parameter.values[0].shape!r}, "
            f"dtype={parameter.dtype!r}, grad_req={req!r})"
        )
    lines.append("")
    if program.style == "hybrid_forward":
        lines.append(f"    def hybrid_forward({', '.join(['self', 'F', *arguments, *names])}):")
        if program.is_np:
            lines.append("        np, npx = F.np, F.npx")
    else:
        lines.append(f"    def forward({', '.join(['self', *arguments])}):")
        if not program.is_np:
            lines.append("        F = nd")
        lines += [f"        {name} = self.{name}.data()" for name in names]
    if program.shared:
        again = f"self.{names[0]}.data()" if program.style == "forward" else names[0]
        lines.append(f"        ws = {again}")
    for instruction in program.body:
        lines += [f"        {line}" for line in instruction.lines(program.is_np)]
    lines += [f"        return {', '.join(program.outputs)}", "", ""]
    lines += ["net = Net()", "net.initialize()"]
    for parameter in program.parameters:
        lines.append(f"net.{parameter.name}.set_data({_array_text(parameter, 0, program.is_np)})")
    return [*lines, "net = prepare(net)"]


def _round(program: Program, number: int) -> Round:
    label = f"round {number}: "
    begin, end = [], []
    for parameter in program.parameters:
        begin.append(f"{parameter.name} = net.{parameter.name}.data()")
        if parameter.gradient and program.record and program.grad_req == "write":
            begin.append(f"net.{parameter.name}.zero_grad()")
    for array in program.inputs:
        begin.append(f"{array.name} = {_array_text(array, number, program.is_np)}")
        if array.gradient and program.record:
            begin.append(f"{array.name}.attach_grad({program.grad_req!r})")
    for instruction in program.before:
        begin += instruction.lines(program.is_np)
    outputs = [f"y{k}" for k in range(len(program.outputs))]
    call = f"{', '.join(outputs)} = net({', '.join(program.arguments)})"
    if program.record:
        calls = [f"with autograd.record(train_mode={program.train}):", f"    {call}"]
    elif program.train:
        calls = ["with autograd.train_mode():", f"    {call}"]
    else:
        calls = [call]
    visible = [array.name for array in [*program.inputs, *program.parameters]]
    end += [f"note({label + name!r}, {name})" for name in outputs]
    end += [f"note({label + name + ' after the call'!r}, {name})" for name in visible]
    for instruction in program.between:
        end += instruction.lines(program.is_np)
    end += _backward(program, number)
    if number == 0:
        for instruction in program.last:
            end += instruction.lines(program.is_np)
    names = list(dict.fromkeys([p.name for p in program.parameters] + [a.name for a in program.inputs]))
    made = _targets(program, number)
    end += [f"note({label + name + ' at the end'!r}, {name})" for name in [*names, *made, *outputs]]
    return Round(begin, calls, end)


def _targets(program: Program, number: int) -> list[str]:
    parts = [program.before, program.between, program.last if number == 0 else []]
    found = [getattr(i, "target", None) for part in parts for i in part]
    return list(dict.fromkeys(name for name in found if name))


def _backward(program: Program, number: int) -> list[str]:
    if not program.heads:
        return []
    lines = []
    heads = ", ".join(f"y{head.output}" for head in program.heads)
    times = 2 if program.retain else 1
    for time in range(times):
        given = [_head_text(head, time + 1, program.is_np) for head in program.heads]
        more = ", retain_graph=True" if time + 1 < times else ""
        lines.append(f"autograd.backward([{heads}], [{', '.join(given)}]{more})")
        for array in [*program.parameters, *program.inputs]:
            if array.gradient:
                place = f"net.{array.name}.grad()" if array in program.parameters else f"{array.name}.grad"
                lines.append(f"note('round {number}: gradient of {array.name}, backward {time + 1}', {place})")
    return lines


def _head_text(head: Any, factor: int, is_np: bool) -> str:
    if head.values is None:
        return "None"
    module = "np" if is_np else "nd"
    return f"{module}.array({numbers_text(head.values * factor)}, dtype={head.dtype!r})"
