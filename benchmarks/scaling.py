"""The time of sums over processes as a model: checked in networks of limited rates, computed for 8 to 1,024 machines.

``python benchmarks/scaling.py`` measures sums of two processes in a network of its own (needs root, ``unshare``,
``ip`` and ``tc``) beside the model; ``--predict`` prints the table of the model only; ``--write`` puts both into
docs/distributed.md.

A sum of S bytes over n processes is an all-to-all of parts and an all-gather: each process sends 2 (n - 1) messages and
2 (n - 1) / n S bytes. If each process has a port of its own, that takes
``2 (n - 1) latency + 2 (n - 1) / n S / rate``. The two processes of the measurement share one loopback device, so each
has half of its rate.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "distributed.md"
RATES = {"100 Mbit/s": 100e6 / 8, "1 Gbit/s": 1e9 / 8}  # bytes per second
SIZES = (1, 4, 16, 64)  # MB: 10^6 bytes
SMALL = 4096  # bytes of the sum that measures the latency
SUMMED = 48  # MB that are summed for each size, at least
MACHINES = (8, 64, 256, 1024)


@dataclass(frozen=True)
class Network:
    latency: float  # seconds of a message without its bytes
    rate: float  # bytes per second that a process sends, while it receives as many


@dataclass(frozen=True)
class Training:
    name: str
    bytes: float  # all gradients
    step: float  # seconds of a step of one process: an assumption


ETHERNET = Network(latency=40e-6, rate=1.1e9)  # 10 Gbit/s
TRAININGS = (Training("ResNet-50", 4 * 25.6e6, 0.49), Training("BERT-base", 4 * 110e6, 1.0))
BACKWARD = 2 / 3  # part of a step in which gradients become complete, and can travel beside the computation
FIRST_MESSAGE = 1e6  # bytes of gradients in a message (docs/distributed.md)


def seconds_of_sum(size: float, processes: int, network: Network) -> float:
    return 2 * (processes - 1) * (network.latency + size / processes / network.rate)


def bytes_of_message(processes: int) -> float:
    """Bytes of gradients in a message after the first one (docs/distributed.md)."""
    return min(max(processes, 4), 25) * 1e6


def exposed_after(training: Training, processes: int) -> float:
    """Seconds that all gradients take in one message after the backward pass."""
    return seconds_of_sum(training.bytes, processes, ETHERNET)


def exposed_beside(training: Training, processes: int) -> float:
    """Seconds from the end of the backward pass to that of the sums, if each message goes when it is complete."""
    begin, end, complete = (1 - BACKWARD) * training.step, 0.0, 0.0
    sizes = [FIRST_MESSAGE]
    while sum(sizes) < training.bytes:
        sizes.append(min(bytes_of_message(processes), training.bytes - sum(sizes)))
    for size in sizes:  # one after the other; gradients complete at an even rate
        complete += size
        ready = begin + BACKWARD * training.step * complete / training.bytes
        end = max(end, ready) + seconds_of_sum(size, processes, ETHERNET)
    return end - training.step


def efficiency(step: float, exposed: float) -> float:
    """The time of a step of one process in relation to that of a step of many, each with a batch of the same size."""
    return step / (step + exposed)


def predictions() -> str:
    """The table of the model, in Markdown."""
    lines = ["| machines | " + " | ".join(f"{t.name}, sums after / beside" for t in TRAININGS) + " |"]
    lines.append("|---" * (len(TRAININGS) + 1) + "|")
    for machines in MACHINES:
        cells = [
            " / ".join(f"{efficiency(t.step, rest(t, machines)):.0%}" for rest in (exposed_after, exposed_beside))
            for t in TRAININGS
        ]
        lines.append(f"| {machines:,} | " + " | ".join(cells) + " |")
    assumed = "; ".join(f"{t.name}: {t.bytes / 1e6:.0f} MB of gradients, {t.step:g} s for a step" for t in TRAININGS)
    least, most = (bytes_of_message(machines) / 1e6 for machines in (1, MACHINES[-1]))
    latency, rate = f"{ETHERNET.latency * 1e6:.0f} µs", f"{ETHERNET.rate / 1e9:g} GB/s"
    lines += [
        f"\nAssumed: {latency} for a message; {rate} in each direction of each machine at the same time;",
        "a network without congestion; one process on a machine; equally fast machines;",
        f"{assumed};",
        f"gradients complete at an even rate in the last {BACKWARD:.0%} of a step. After: all of them in one message.",
        f"Beside: messages of {FIRST_MESSAGE / 1e6:g} MB, then 1 MB for each machine, from {least:g} to {most:g} MB, "
        "each as soon as it is complete.",
    ]
    return "\n".join(lines)


# --- measurement ------------------------------------------------------------------------------------------------------


def work(rounds: int, sizes: list[float]) -> None:
    """Runs in each of the two processes: prints the seconds of a sum for each size in MB, 0 being SMALL bytes.

    Large sums: the mean of many, one after the other. While a process waits for a core, the device saves up a burst
    that the next sum uses, so single sums are too long or too short. Small ones: the fastest tenth, which did not wait
    for a core.
    """
    import hybridnet as mx

    for size in sizes:
        array = mx.nd.ones((int(size * 1e6) // 4 if size else SMALL // 4,))
        count = max(rounds, int(SUMMED / size)) if size else 200
        times = []
        mx.group.sum_into(array, name="first")  # uses up the burst that the network lets through at once
        mx.nd.waitall()
        for _ in range(count):
            begin = time.perf_counter()
            mx.group.sum_into(array)
            array.wait_to_read()
            times.append(time.perf_counter() - begin)
        if mx.group.rank() == 0:
            seconds = statistics.mean(times) if size else sorted(times)[len(times) // 10]
            print("seconds", json.dumps([size, seconds]), flush=True)


def measured(rate: float, sizes: tuple[float, ...], rounds: int) -> dict[float, float]:
    """Seconds of a sum of two processes for each size in MB, on a loopback device of this rate."""
    limit = f"tc qdisc add dev lo root tbf rate {int(rate * 8)}bit burst 512kb latency 200ms"
    program = [sys.executable, "-m", "hybridnet.launch", "-n", "2", "--threads", "1", __file__, "--work", str(rounds)]
    program += [str(size) for size in sizes]
    command = ["unshare", "-n", "sh", "-c", f'ip link set lo up && {limit} && exec "$@"', "sh", *program]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"scaling.py: the measurement failed (it needs root, unshare, ip and tc)\n{done.stderr}")
    return dict(map(json.loads, re.findall(r"seconds (\[.*\])", done.stdout)))


def comparison(rates: dict[str, float], sizes: tuple[int, ...], rounds: int) -> list[tuple[str, int, float, float]]:
    """Rows (rate, MB, seconds measured, seconds of the model). The model knows the rate and the time of 4 kB."""
    rows = []
    for name, rate in rates.items():
        found = measured(rate, (0, *sizes), rounds)
        network = Network(latency=(found[0] - SMALL / (rate / 2)) / 2, rate=rate / 2)  # two processes share the device
        rows += [(name, size, found[size], seconds_of_sum(size * 1e6, 2, network)) for size in sizes]
    return rows


def compared(rows: list[tuple[str, int, float, float]]) -> str:
    """The table of the comparison, in Markdown."""
    lines = ["| rate | MB | measured, ms | model, ms | difference |", "|---|---|---|---|---|"]
    for name, size, seconds, model in rows:
        lines.append(f"| {name} | {size} | {seconds * 1e3:.1f} | {model * 1e3:.1f} | {seconds / model - 1:+.1%} |")
    return "\n".join(lines)


def put(text: str, part: str, table: str) -> str:
    """The page with another table between the comments of a part."""
    begin, end = f"<!-- {part}: written by benchmarks/scaling.py -->\n", f"<!-- end of {part} -->"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)  # nothing if there was no begin
    if not found:
        raise SystemExit(f"scaling.py: the page has no comments of the part {part!r}")
    return f"{before}{begin}{table}\n{end}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--predict", action="store_true", help="only the table of the model")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/distributed.md")
    parser.add_argument("--rounds", type=int, default=3, help="sums of each size, at least")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(int(options.work[0]), [float(size) for size in options.work[1:]])
        return 0
    tables = {"model": predictions()}
    if not options.predict:
        tables["measurement"] = compared(comparison(RATES, SIZES, options.rounds))
    page = PAGE.read_text("utf-8")
    for part, table in tables.items():
        print(f"{table}\n")
        page = put(page, part, table) if options.write else page
    if options.write:
        PAGE.write_text(page, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
