"""Code shared by the programs that generate files: their --check option, and writing or comparing."""

import argparse
import difflib
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def check_requested(description: str | None) -> bool:
    """Parses the command line of a generator: True if it only compares."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the file would change")
    return parser.parse_args().check


def write_or_compare(target: pathlib.Path, present: str, wanted: str, source: str, check: bool) -> int:
    """Writes `wanted` to `target` if it differs from `present`; with `check` prints the difference instead.

    `source` names the input of the generator, for the message. Returns the exit status: 1 if `check` found a
    difference, else 0.
    """
    if wanted == present:
        return 0
    name = target.relative_to(ROOT)
    if check:
        difference = difflib.unified_diff(present.splitlines(), wanted.splitlines(), str(name), source, lineterm="")
        print("\n".join(list(difference)[:60]))
        print(f"\n{name} is not what the {source} says.\nFix: run `tools/dev gen`.")
        return 1
    target.write_text(wanted, encoding="utf-8")
    print(f"wrote {name}")
    return 0
