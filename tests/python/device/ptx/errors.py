"""Errors of the translation of PTX."""

from __future__ import annotations


class PtxError(Exception):
    """PTX that the translation does not know. Fields: opcode (or directive), line (from 1), text, reason."""

    def __init__(self, opcode: str, line: int, text: str, reason: str) -> None:
        super().__init__(f"PTX line {line}, '{opcode}': {reason}\n  {text.strip()}")
        self.opcode = opcode
        self.line = line
        self.text = text.strip()
        self.reason = reason


class KernelFault(Exception):
    """A kernel that would fail on a GPU: a misaligned or outside access, threads that wait for each other forever."""


class CompileError(Exception):
    """A compiler refused a text. Fields: compiler, log."""

    def __init__(self, compiler: str, log: str) -> None:
        super().__init__(f"{compiler}:\n{log}")
        self.compiler = compiler
        self.log = log

    def __reduce__(self) -> tuple[type[CompileError], tuple[str, str]]:  # a pool of processes hands it on
        return CompileError, (self.compiler, self.log)
