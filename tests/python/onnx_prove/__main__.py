"""Attacks the import of ONNX models: ``python -m onnx_prove files`` and ``python -m onnx_prove graphs``.

``files`` damages small valid models and imports and runs them: each gives results or an error of the library, within
limits on time and memory. ``graphs`` imports random valid graphs and compares every value with onnxruntime. Options:
``--count``, ``--seed``, ``--jobs``, ``--limit`` (seconds of a case), ``--case`` (one case in this process).
"""

from __future__ import annotations

import argparse
import time

from onnx_prove import workers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["files", "graphs"])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=20)
    parser.add_argument("--case", type=int)
    options = parser.parse_args()
    if options.case is not None:
        from onnx_prove import files, graphs

        outcome, text = (files if options.what == "files" else graphs).case(options.case, options.seed)
        print(outcome, text, sep="\n")
        return bool(text)
    begin = time.monotonic()
    outcomes, findings = workers.run(options.what, options.count, options.seed, options.jobs, options.limit)
    for finding in sorted(findings, key=lambda finding: (finding.kind, finding.number)):
        print(f"--- {options.what} --seed {options.seed} --case {finding.number}: {finding.kind}\n{finding.text}")
    print(
        f"{options.what}: {dict(outcomes.most_common())} in {time.monotonic() - begin:.0f} s; {len(findings)} findings"
    )
    return bool(findings)


if __name__ == "__main__":
    raise SystemExit(main())
