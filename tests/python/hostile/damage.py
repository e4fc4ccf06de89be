"""Damages copies of files like broken disks, interrupted transfers and malicious programs do."""

from __future__ import annotations

import random
import struct

_WORDS = [0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1]
_TEXTS = [
    b"-1",
    b"nan",
    b"inf",
    b"1e400",
    b"99999999999999999999",
    b"",
    b"\0",
    b"\xff\xfe",
    b"0x10",
    b"1:2:3",
    b"(",
    b"[[",
    b"\n",
]


def _bits(draw: random.Random, data: bytearray) -> None:
    for _ in range(draw.choice([1, 1, 2, 8])):
        if data:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def _cut(draw: random.Random, data: bytearray) -> None:
    del data[draw.randint(0, len(data)) :]


def _remove(draw: random.Random, data: bytearray) -> None:
    begin = draw.randint(0, len(data))
    del data[begin : begin + draw.choice([1, 2, 4, 8, 64])]


def _repeat(draw: random.Random, data: bytearray) -> None:
    begin = draw.randint(0, len(data))
    piece = data[begin : begin + draw.choice([1, 4, 8, 64, 1024])]
    data[begin:begin] = piece * draw.choice([1, 2, 50])


def _number(draw: random.Random, data: bytearray) -> None:
    size = draw.choice([1, 2, 4, 8])
    begin = draw.randint(0, max(0, min(len(data), 256) - size)) if draw.random() < 0.7 else draw.randint(0, len(data))
    word = draw.choice(_WORDS) & ((1 << (8 * size)) - 1)
    data[begin : begin + size] = struct.pack(draw.choice("<>") + {1: "B", 2: "H", 4: "I", 8: "Q"}[size], word)


def _text(draw: random.Random, data: bytearray) -> None:
    begin = draw.randint(0, len(data))
    data[begin : begin + draw.choice([0, 1, 4])] = draw.choice(_TEXTS)


def _noise(draw: random.Random, data: bytearray) -> None:
    data[:] = draw.randbytes(draw.choice([0, 1, 7, 64, 4096]))


KINDS = [_bits, _bits, _cut, _remove, _repeat, _number, _number, _text, _noise]


def damaged(draw: random.Random, content: bytes) -> bytes:
    """Returns `content` with one to three damages of random kinds."""
    data = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 3])):
        draw.choice(KINDS)(draw, data)
    return bytes(data)
