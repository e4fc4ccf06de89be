"""Digits trained by 1 to 4 processes: the bytes that each sends in a step, beside 2 (n - 1) / n of the gradients."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from plot import figure

EXAMPLE = Path(__file__).parents[3] / "examples" / "train_distributed.py"
PROCESSES = range(1, 5)


def kilobytes_of_each_step(processes: int) -> float:
    """Runs one epoch of the example; returns the kB that process 0 sends in each step."""
    launch = [sys.executable, "-m", "hybridnet.launch", "-n", str(processes), "--virtual-shards", "4"]
    done = subprocess.run(
        [*launch, str(EXAMPLE), "--epochs", "5"], capture_output=True, text=True, check=True, timeout=300
    )
    return float(re.findall(r"sent in each step ([\d.]+) kB", done.stdout)[0])


def draw(folder: Path) -> None:
    sent = [kilobytes_of_each_step(processes) for processes in PROCESSES]
    gradients = sent[1]  # two processes send half of the gradients twice
    with figure(folder / "group_bytes.svg") as axes:
        axes.bar(PROCESSES, sent, width=0.5, label="measured")
        axes.plot(
            PROCESSES, [2 * (n - 1) / n * gradients for n in PROCESSES], "o--", color="black", label="2 (n - 1) / n"
        )
        axes.set(xlabel="processes n", ylabel="kB sent by each, per step", xticks=list(PROCESSES))
        axes.legend(frameon=False)


if __name__ == "__main__":
    draw(Path())
