"""Copies oneDNN's shared library, which uses libgomp, bound to libhnteam.so instead: for OpenMP, `new` and `delete`,
and the destruction of static objects.

    python rebind_dnnl.py LIBRARY COPY

Names of the library and of its functions are replaced in the string table of dynamic symbols, by names of the same
length or shorter: no offset changes. OpenMP's own names remain with the OpenMP library of the application.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

LIBRARY = (b"libgomp.so.1", b"libhnteam.so")
OPERATORS = {  # src/teams/blocks.cc
    b"_Znwm": b"HNnwm",
    b"_ZdlPv": b"HNdlPv",
}
EXIT = {b"__cxa_atexit": b"HNxa_atexit"}  # src/teams/lasting_statics.cc
FUNCTIONS = {  # src/teams/openmp.cc
    b"GOMP_barrier": b"HNTM_barrier",
    b"GOMP_loop_end_nowait": b"HNTM_loop_end_nowait",
    b"GOMP_loop_static_next": b"HNTM_loop_static_next",
    b"GOMP_loop_static_start": b"HNTM_loop_static_start",
    b"GOMP_parallel_end": b"HNTM_parallel_end",
    b"GOMP_parallel_start": b"HNTM_parallel_start",
    b"omp_get_max_threads": b"hnt_get_max_threads",
    b"omp_get_num_threads": b"hnt_get_num_threads",
    b"omp_get_thread_num": b"hnt_get_thread_num",
    b"omp_in_parallel": b"hnt_in_parallel",
}
SHT_DYNSYM, SHN_UNDEF = 11, 0


def sections(data: bytes) -> list[tuple[int, ...]]:
    """(name, type, flags, address, offset, size, link, info, alignment, entry size) of each section."""
    start, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    return [struct.unpack_from("<IIQQQQIIQQ", data, start + size * i) for i in range(count)]


def rebind(data: bytes) -> bytes:
    """The library's bytes with the names replaced. Raises ValueError if it needs OpenMP functions that we lack."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    all_sections = sections(data)
    symbols = next(s for s in all_sections if s[1] == SHT_DYNSYM)
    strings = all_sections[symbols[6]]
    table = data[strings[4] : strings[4] + strings[5]]
    wanted = set()
    for at in range(symbols[4], symbols[4] + symbols[5], symbols[9]):
        name, _, _, section = struct.unpack_from("<IBBH", data, at)
        if section == SHN_UNDEF:
            wanted.add(table[name : table.index(b"\0", name)])
    unknown = sorted(n for n in wanted if n.startswith((b"GOMP_", b"omp_", b"kmp_", b"__kmpc_")) and n not in FUNCTIONS)
    if unknown:
        raise ValueError(f"it calls {b', '.join(unknown).decode()}, which src/teams/openmp.cc does not have")
    for old, new in (LIBRARY, *FUNCTIONS.items(), *OPERATORS.items(), *EXIT.items()):
        if table.count(b"\0" + old + b"\0") != 1:
            raise ValueError(f"{old.decode()} is not among its names")
        table = table.replace(b"\0" + old + b"\0", b"\0" + new.ljust(len(old), b"\0") + b"\0")
    return data[: strings[4]] + table + data[strings[4] + strings[5] :]


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    try:
        copy = rebind(source.read_bytes())
    except ValueError as problem:
        sys.exit(f"{source}: {problem}")
    if target.exists() and target.read_bytes() == copy:
        return  # targets linked with it stay up to date
    target.write_bytes(copy)
    target.chmod(0o755)


if __name__ == "__main__":
    main()
