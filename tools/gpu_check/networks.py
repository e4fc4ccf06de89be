"""Step times of networks and loops, beside PyTorch's where it is installed: float32, without TF32 on both sides.

Each side (:mod:`.network_side`) is a process of its own, which prints a row at a time: rows that were done stay.
"""

from __future__ import annotations

import json
import subprocess
import sys

from .outcome import Options, Outcome
from .runner import last_lines

__all__ = ["measure"]


def measure(options: Options) -> Outcome:
    """Measures all rows on both sides; the ratio is PyTorch's time by ours, above 1 where we are faster."""
    outcome = Outcome()
    ours = _side("hybridnet", options.seconds * 0.6, outcome)
    theirs = _side("torch", options.seconds * 0.35, outcome)
    for name, milliseconds in ours.items():
        row = {"hybridnet_ms": milliseconds, "torch_ms": theirs.get(name)}
        row["ratio"] = round(theirs[name] / milliseconds, 3) if theirs.get(name) else None
        outcome.rows[name] = row
    shown = [f"{name} {row['hybridnet_ms']:.3g} ms" + _beside(row["ratio"]) for name, row in outcome.rows.items()]
    outcome.line = "; ".join(shown) or "no row"
    return outcome


def _beside(ratio: float | None) -> str:
    return f" ({ratio:.2g}x PyTorch)" if ratio else ""


def _side(name: str, seconds: float, outcome: Outcome) -> dict[str, float]:
    """Returns the milliseconds of each row of a side. A side that is not installed has none."""
    command = [sys.executable, "-m", f"{__package__}.network_side", name, str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    try:
        printed, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        printed, errors = process.communicate()
        errors += f"\nstopped after {seconds:.0f} s"
    rows: dict[str, float] = {}
    for line in printed.splitlines():
        if line.startswith("{"):
            rows.update(json.loads(line))
    if name == "hybridnet":
        outcome.expect(bool(rows), f"no row could be measured: {last_lines(errors)}")
        ended = process.returncode in (0, -9)  # -9: stopped above
        outcome.expect(ended, f"the process ended with {process.returncode}: {last_lines(errors)}")
    return rows
