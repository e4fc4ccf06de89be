"""Splits PTX into words. A cursor knows the line of each, for errors."""

from __future__ import annotations

import re
from typing import NamedTuple

from .errors import PtxError

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<number>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|\d+\.\d*(?:[eE][+-]?\d+)?|\d+U?)
  | (?P<word>[.%$_A-Za-z](?:[\w.$%]|::)*)
  | (?P<string>"[^"\n]*")
  | (?P<mark>[{}()\[\];,:@!|+\-<>=])
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    kind: str  # number, word, string, mark, end
    text: str
    line: int


class Cursor:
    """Reads tokens in order."""

    def __init__(self, ptx: str) -> None:
        self._lines = ptx.split("\n")
        self._tokens = self._split(ptx)
        self._at = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    def take(self, expected: str | None = None) -> Token:
        """The next token; an error if `expected` is given and differs."""
        token = self._tokens[self._at]
        if expected is not None and token.text != expected:
            raise self.error(token, f"expected '{expected}'")
        self._at += token.kind != "end"
        return token

    def skip(self, text: str) -> bool:
        """Takes the next token if it is `text`."""
        found = self.next.text == text
        if found:
            self.take()
        return found

    def follows(self, text: str) -> bool:
        """True if the token after the next one is `text`."""
        return self._at + 1 < len(self._tokens) and self._tokens[self._at + 1].text == text

    def line_text(self, line: int) -> str:
        return self._lines[line - 1] if line <= len(self._lines) else ""

    def error(self, token: Token, reason: str) -> PtxError:
        return PtxError(token.text or "end of text", token.line, self.line_text(token.line), reason)

    def _split(self, ptx: str) -> list[Token]:
        tokens, at, line = [], 0, 1
        while at < len(ptx):
            match = _TOKEN.match(ptx, at)
            if match is None:
                raise PtxError(ptx[at], line, self.line_text(line), "a character that PTX does not have")
            if match.lastgroup != "space":
                tokens.append(Token(match.lastgroup or "", match.group(), line))
            line += match.group().count("\n")
            at = match.end()
        tokens.append(Token("end", "", line))
        return tokens
