"""Damages files and reads them: ``python -m hostile.run [--readers a,b] [--count 1000] [--seed 0]``.

Prints for each reader how many damaged files were read, were refused, and raised an error not of the library.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import resource
import tempfile
import time
import traceback
import warnings
from collections import Counter

import hybridnet as mx

from hostile.damage import damaged
from hostile.readers import READERS


def attack(name: str, count: int, seed: int) -> tuple[Counter, dict[str, tuple[int, str]]]:
    """Returns counts of outcomes, and (number, traceback) of the first foreign error of each kind and slow read."""
    reader, outcomes, foreign = READERS[name], Counter(), {}
    with tempfile.TemporaryDirectory() as valid_folder, tempfile.TemporaryDirectory() as folder:
        valid, work = pathlib.Path(valid_folder), pathlib.Path(folder)
        names = reader.write(valid)
        reader.read(valid)  # an invalid file would always be refused
        contents = {str(file.relative_to(valid)): file.read_bytes() for file in valid.rglob("*") if file.is_file()}
        for number in range(count):
            draw = random.Random(f"{name} {seed} {number}")
            for file, content in contents.items():
                (work / file).parent.mkdir(exist_ok=True)
                (work / file).write_bytes(content)
            victim = draw.choice(names)
            (work / victim).write_bytes(damaged(draw, contents[victim]))
            begin = time.monotonic()
            try:
                reader.read(work)
                mx.nd.waitall()
                outcomes["read"] += 1
            except mx.MXNetError:
                outcomes["refused"] += 1
            except Exception as error:
                frame = traceback.extract_tb(error.__traceback__)[-1]
                kind = f"{type(error).__name__} at {frame.filename.rsplit('/', 2)[-1]}:{frame.lineno}"
                outcomes["foreign"] += 1
                foreign.setdefault(kind, (number, traceback.format_exc()))
            if time.monotonic() - begin > 5:
                foreign.setdefault("more than 5 s", (number, ""))
    return outcomes, foreign


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hostile.run", description=__doc__)
    parser.add_argument("--readers", help="names separated by commas; default: all")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory", type=int, default=8, help="limit of address space in GiB: small files take little")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (options.memory << 30, options.memory << 30))
    warnings.simplefilter("ignore")
    bad = 0
    for name in options.readers.split(",") if options.readers else READERS:
        outcomes, foreign = attack(name, options.count, options.seed)
        print(f"{name}: {dict(outcomes)}", flush=True)
        for kind, (number, text) in foreign.items():
            bad += 1
            print(f"  {kind}, number {number}\n{text}", flush=True)
    return bad != 0


if __name__ == "__main__":
    raise SystemExit(main())
