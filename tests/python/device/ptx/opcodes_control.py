"""Opcodes that steer: branches, calls, barriers, instructions for which the threads of a warp meet."""

from __future__ import annotations

from .opcodes import Parts, Scope, opcode
from .syntax import Callee, Label, Pair, Variable

# Instructions at which a thread waits for others. A function with one of them gets the form of writer.py that can stop.
STOPS = frozenset({"bar", "barrier", "shfl", "vote", "redux"})


@opcode("bra")
def _bra(parts: Parts, scope: Scope) -> str:
    parts.flag("uni")
    (label,) = parts.operands(1)
    if not isinstance(label, Label):
        raise parts.instruction.error("expected a label")
    return f"goto {label.name};"


@opcode("brx")
def _brx(parts: Parts, scope: Scope) -> str:
    parts.choice(("idx",))
    parts.flag("uni")
    index, table = parts.operands(2)
    targets = scope.branch_targets(table.name) if isinstance(table, Label) else None
    if targets is None:
        raise parts.instruction.error("an unknown table of labels")
    cases = " ".join(f"case {i}: goto {label};" for i, label in enumerate(targets))
    outside = f'default: ptx::fail("an index is outside of a table of labels", thread, {parts.line});'
    return f"switch ({parts.read(index, 'u32')}) {{ {cases} {outside} }}"


@opcode("ret", "exit")
def _ret(parts: Parts, scope: Scope) -> str:
    parts.flag("uni")
    parts.operands(0)
    if not scope.function.is_entry:
        if parts.name == "exit":
            raise parts.instruction.error("a function that ends its thread is not translated")
        return "return;"
    return "{ thread.stop = ptx::Stop::kDone; return; }"


@opcode("trap")
def _trap(parts: Parts, scope: Scope) -> str:
    return f'ptx::fail("the kernel trapped", thread, {parts.line});'


@opcode("call")
def _call(parts: Parts, scope: Scope) -> str:
    parts.flag("uni")
    names = [operand for operand in parts.instruction.operands if isinstance(operand, Callee)]
    if len(names) != 1:
        raise parts.instruction.error("calls through a table of functions are not translated")
    callee = scope.callee(names[0].name)
    if callee is None or not callee.defined:
        raise parts.instruction.error(f"the function '{names[0].name}' has no body in this module")
    arguments = ["thread"]
    for group in parts.instruction.operands:
        for each in group if isinstance(group, tuple) else ():
            if not isinstance(each, Variable) or each.space != "param":
                raise parts.instruction.error("expected parameters declared by .param")
            arguments.append(each.cpp_name)
    if len(arguments) != 1 + len(callee.results) + len(callee.parameters):
        raise parts.instruction.error("the number of parameters differs from the function's")
    return f"{function_name(callee.name)}({', '.join(arguments)});"


def function_name(name: str) -> str:
    """The C++ name of a .func: it must not meet a name of the C library."""
    return f"func_{name.replace('$', '_')}"


# Places at which a thread waits

_VOTES = {"all": "kVoteAll", "any": "kVoteAny", "uni": "kVoteUniform", "ballot": "kBallot"}
_SHUFFLES = {"up": "kShuffleUp", "down": "kShuffleDown", "bfly": "kShuffleXor", "idx": "kShuffleIndex"}
_REDUCTIONS = {
    "add": "kSum",
    "min": "kLeast",
    "max": "kMost",
    "and": "kAnd",
    "or": "kOr",
    "xor": "kXor",
    "min.s32": "kLeastSigned",
    "max.s32": "kMostSigned",
}


def _stop(parts: Parts, scope: Scope, settings: dict[str, str], then: str = "") -> str:
    """Stores what the others need, returns, and goes on behind the label at the next call."""
    if not scope.function.is_entry:
        raise parts.instruction.error("threads that meet inside of a function are not translated")
    number = scope.new_stop()
    stores = " ".join(f"thread.{name} = {value};" for name, value in settings.items())
    return f"thread.line = {parts.line}; {stores} resume = {number}; return; resume_{number}: {then or ';'}"


def _meet(parts: Parts, scope: Scope, meeting: str, settings: dict[str, str], then: str = "") -> str:
    stop = {"stop": "ptx::Stop::kWarp", "meeting": f"ptx::Meeting::{meeting}"}
    return _stop(parts, scope, {**stop, **settings}, then)


@opcode("bar", "barrier")
def _bar(parts: Parts, scope: Scope) -> str:
    if parts.flag("warp"):
        parts.choice(("sync",))
        (mask,) = parts.operands(1)
        return _meet(parts, scope, "kSync", {"mask": parts.read(mask, "u32")})
    parts.flag("cta", "aligned")
    stop = {"stop": "ptx::Stop::kBarrier", "a": "0", "reduction": "ptx::Reduction::kNone"}
    if parts.choice(("sync", "red")) == "sync":
        (barrier,) = parts.operands(1)
        return _stop(parts, scope, {**stop, "barrier": parts.read(barrier, "u32")})
    type_name = parts.type(("u32", "pred"))
    how = {"popc": "kCount", "and": "kAll", "or": "kAny"}[parts.choice(("popc", "and", "or"))]
    result, barrier, predicate = parts.operands(3)
    stop |= {"a": parts.read(predicate, "pred"), "reduction": f"ptx::Reduction::{how}"}
    then = parts.write(result, "thread.result" if type_name == "u32" else "thread.holds")
    return _stop(parts, scope, {**stop, "barrier": parts.read(barrier, "u32")}, then)


@opcode("shfl")
def _shfl(parts: Parts, scope: Scope) -> str:
    parts.type(("b32",))
    parts.choice(("sync",))
    meeting = _SHUFFLES[parts.choice(_SHUFFLES)]
    result, *inputs = parts.operands(5)
    settings = {name: parts.read(operand, "b32") for name, operand in zip(("a", "b", "c", "mask"), inputs)}
    first, second = (result.first, result.second) if isinstance(result, Pair) else (result, None)
    then = parts.write(first, "thread.result")
    if second is not None:
        then += " " + parts.write(second, "thread.holds")
    return _meet(parts, scope, meeting, settings, then)


@opcode("vote")
def _vote(parts: Parts, scope: Scope) -> str:
    type_name = parts.type(("pred", "b32"))
    parts.choice(("sync",))
    how = parts.choice(_VOTES)
    result, predicate, mask = parts.operands(3)
    settings = {"a": parts.read(predicate, "pred"), "mask": parts.read(mask, "b32")}
    then = parts.write(result, "thread.result" if type_name == "b32" else "thread.holds")
    return _meet(parts, scope, _VOTES[how], settings, then)


@opcode("redux")
def _redux(parts: Parts, scope: Scope) -> str:
    type_name = parts.type(("u32", "s32", "b32"))
    parts.choice(("sync",))
    operation = parts.choice(("add", "min", "max", "and", "or", "xor"))
    meeting = _REDUCTIONS.get(f"{operation}.{type_name}", _REDUCTIONS[operation])
    result, value, mask = parts.operands(3)
    settings = {"a": parts.read(value, "b32"), "mask": parts.read(mask, "b32")}
    return _meet(parts, scope, meeting, settings, parts.write(result, "thread.result"))
