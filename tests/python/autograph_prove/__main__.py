"""Proves that plain Python control flow becomes the right graph, or is refused.

    PYTHONPATH=../../python:. python -m autograph_prove programs --programs 5000 --seed 0
    PYTHONPATH=../../python:. python -m autograph_prove mutations

``programs`` runs random programs (generator.py) imperatively and as graphs: results, changed arguments and gradients
must be equal, or the graph is refused with a code HN100 to HN109. ``mutations`` puts unsupported forms into programs:
each must be refused with its code at its line. Options: ``--jobs``, ``--case`` (one program in this process),
``--shrink`` (seconds to make a failing program smaller).
"""

from __future__ import annotations

import argparse
import time

from autograph_prove import workers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["programs", "mutations"])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--shrink", type=float, default=20)
    parser.add_argument("--case", type=int)
    options = parser.parse_args()
    if options.what == "mutations":
        from autograph_prove import mutations

        return mutations.main()
    if options.case is not None:
        from autograph_prove import programs

        outcome, source = programs.case(options.case, options.seed, options.shrink)
        print(source, outcome.kind, outcome.cause, outcome.text, sep="\n")
        return outcome.is_failure
    begin = time.monotonic()
    found = workers.run(options.programs, options.seed, options.jobs, options.shrink)
    print(found.report())
    print(f"{options.programs} programs in {time.monotonic() - begin:.0f} s")
    return bool(found.failures)


if __name__ == "__main__":
    raise SystemExit(main())
