"""The time of programs of run.py by operator and by function, compared with the machine's limit.

    python benchmarks/profiles.py [--only CASE,CASE] [--write]

By operator: shares of the time that mx.profiler records in operators. By function: shares of the samples of `perf
record` (linux-perf) over one process; machine code that oneDNN generates at run time counts as one function; omitted if
perf is not installed. The limit is that of multiplications: the operations of the program's products and convolutions,
counted by their definition, divided by the rate of fused multiply-adds that this machine reaches on all cores in
vectors of AVX2, or of AVX-512 if the kernels use it (measured here by a program in C: x86 only). A convolution by
Winograd's algorithm needs fewer operations.
--write keeps the rows in benchmarks/PROFILES.md.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sections import Section, instruction_sets, keep, machine, peer_versions, stamp

HERE = Path(__file__).resolve().parent
COLUMNS = ("work", "a call", "limit of multiplying", "of the limit", "by operator", "by function", "measured")
HEAD = """# Profiles

Written by `python benchmarks/profiles.py --write`, which says how they are made. They belong to the rows of RESULTS.md
that miss a goal.

Why they miss it, with AVX-512 on the AMD EPYC of family 26, where nothing else is said:

- a\\*b+c: two operator calls of 0.29 us each, spread over some twenty functions of which none takes a tenth.
- dot of 32x32: 0.4 us are the call (as in x+1), 0.49 the product, of which multiplying takes 0.24; the rest is loading
  and storing tiles that are that small.
- ResNet-18 training, ResNet-50: at 96 to 111 % of multiplying directly. To be faster they would have to multiply less:
  F(4x4) of Winograd loses beyond 256 channels, where it reads 36 matrices of weights instead of 9.
- MobileNet: convolutions of single pixels take 2.23 ms of 2.70 and run at 92 % of the limit, depthwise ones 0.26 (they
  move 20 MB through caches of 1 MB), the first layer 0.08, the last 0.06 (4 MB of weights for one row). Depthwise and
  single pixels as one operation would save 0.09: measured, not built.
- BERT, and transformer training with AVX2: at 84 to 86 % and 67 % of the limit. Products are 81 % of the training step,
  attention 9 %; weight gradients are at 1.0 of the time of oneDNN's (KERNELS.md).
- gluon.rnn.LSTM and foreach over cells, forward: 77 to 79 % of the time are products of 32 rows, at the limit,
  in 70 steps that wait for each other; the cells take 6 to 7 % (five exponentials and quotients a unit), waiting for
  the other core 3 to 5 %. Backward: one product for all weights of a layer; the data gradient goes step by step."""
SHOWN = 6  # operators and functions
# Case: name, operations of products and convolutions per call, calls of a process under perf.
CASES = {
    "multiply_add/imperative": ("a*b+c, 4x4", 0, 2_000_000),
    "dot_32/imperative": ("dot of 32x32", 2 * 32**3, 1_000_000),
    "lenet_train/hybridized": ("LeNet training step, batch 64", 845e6, 300),
    "resnet18_train/hybridized": ("ResNet-18 training step, batch 8", 87.2e9, 8),
    "resnet50_infer_1/hybridized": ("ResNet-50 inference, batch 1", 7.72e9, 80),
    "resnet50_infer_16/hybridized": ("ResNet-50 inference, batch 16", 16 * 7.72e9, 6),
    "mobilenet_infer_1/hybridized": ("MobileNet inference, batch 1", 1.138e9, 400),
    "bert_infer/hybridized": ("BERT-base inference, 1x128 tokens", 22.3e9, 25),
    "transformer_train/hybridized": ("2-layer transformer training step, 8x128x256, no dropout", 12.0e9, 40),
    "lstm_foreach/hybridized": ("LSTM 2x256 by foreach over cells, batch 32, length 35, forward", 2.35e9, 200),
    "lstm_foreach_train/hybridized": (
        "LSTM 2x256 by foreach over cells, batch 32, length 35, forward and backward",
        7.05e9,
        80,
    ),
    "lstm_fused_train/hybridized": ("gluon.rnn.LSTM 2x256, batch 32, length 35, forward and backward", 7.05e9, 80),
    "lstm_fused/hybridized": ("gluon.rnn.LSTM 2x256, batch 32, length 35, forward", 2.35e9, 200),
}
PEAK = r"""
#include <immintrin.h>
#include <stdio.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
#ifdef __AVX512F__
typedef __m512 vector;
#define SET _mm512_set1_ps
#define MULTIPLY_ADD _mm512_fmadd_ps
#else
typedef __m256 vector;
#define SET _mm256_set1_ps
#define MULTIPLY_ADD _mm256_fmadd_ps
#endif
int main(void) {
  vector s[12], x = SET(0.999f), y = SET(1e-9f);
  double most = 0;
  for (int i = 0; i < 12; ++i) s[i] = SET((float)i);
  for (int round = 0; round < 20; ++round) {
    const double begin = now();
    for (int n = 0; n < 2000000; ++n)
      for (int i = 0; i < 12; ++i) s[i] = MULTIPLY_ADD(s[i], x, y);
    const double rate = 2000000.0 * 12 * sizeof(vector) / 4 * 2 / (now() - begin);
    if (rate > most) most = rate;
  }
  volatile float kept = 0;
  for (int i = 0; i < 12; ++i) kept += ((float*)&s[i])[0];
  printf("%g\n", most);
}
"""


def peak(used: str) -> float:
    """The operations per second of one core, in the widest vectors of these instruction sets, AVX2 at least."""
    options = ["-mavx512f"] if used.startswith(("avx512", "amx")) else ["-mavx2", "-mfma"]
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "peak.c"), Path(folder, "peak")
        source.write_text(PEAK, encoding="utf-8")
        subprocess.run(["cc", "-O3", *options, str(source), "-o", str(program)], check=True)
        return float(subprocess.run([str(program)], check=True, stdout=subprocess.PIPE, text=True).stdout)


def shares(times: dict[str, float]) -> str:
    whole = sum(times.values()) or 1.0
    most = sorted(times.items(), key=lambda item: -item[1])[:SHOWN]
    return ", ".join(f"{name} {100 * part / whole:.0f} %" for name, part in most if part >= 0.01 * whole)


def by_operator(case: str) -> tuple[float, str]:
    """The seconds per call, the median of many, and the shares of operators. Runs in this process."""
    sys.path[:0] = [str(HERE / "sides"), str(HERE.parent / "python")]
    import hybridnet as mx
    import hybridnet_side

    step = hybridnet_side.CASES[case]()
    step(3)
    begin = time.perf_counter()
    step(1)
    repeat = max(1, int(0.05 / (time.perf_counter() - begin)))
    calls = []
    for _ in range(15):
        begin = time.perf_counter()
        step(repeat)
        calls.append((time.perf_counter() - begin) / repeat)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "profile.json")
        mx.profiler.set_config(profile_all=True, filename=str(path))
        mx.profiler.set_state("run")
        step(min(repeat, 1000))
        mx.profiler.set_state("stop")
        mx.profiler.dump()
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    times: dict[str, float] = collections.defaultdict(float)
    for event in events:
        if event.get("ph") == "X" and event.get("cat") == "operator":
            times[event["name"]] += event["dur"]
    return statistics.median(calls), shares(times)


def short(symbol: str) -> str:
    """A function without namespaces, template arguments and parameters; machine code made at run time has no name."""
    if symbol.startswith("0x"):
        return "machine code of oneDNN"
    depth, kept = 0, []
    for letter in symbol.split("::{lambda")[0]:
        depth += (letter in "<(") - (letter in ">)")
        if depth == 0 and letter not in "<>()":
            kept.append(letter)
    return "".join(kept).split("::")[-1].strip().split(" ")[-1] or symbol[:40]


def samples(case: str, repeat: int) -> Iterator[tuple[str, float]]:
    code = (
        f"import sys; sys.path[:0] = [{str(HERE / 'sides')!r}, {str(HERE.parent / 'python')!r}]\n"
        "import hybridnet_side\n"
        f"hybridnet_side.CASES[{case!r}]()({repeat})"
    )
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/perf.data"
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "2000", "-o", data, sys.executable, "-c", code]
        subprocess.run(record, check=True, stderr=subprocess.DEVNULL)
        report = ["perf", "report", "-i", data, "--stdio", "--no-inline", "--sort", "symbol", "--percent-limit", "0"]
        text = subprocess.run(report, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    for line in text.splitlines():
        percent, _, rest = line.strip().partition("%")
        if rest and not line.startswith("#") and rest.strip().startswith("[.]"):
            yield short(rest.strip()[3:].strip(" -")), float(percent)


def by_function(case: str, repeat: int) -> str:
    if shutil.which("perf") is None:
        return "(perf is not installed)"
    times: dict[str, float] = collections.defaultdict(float)
    for name, percent in samples(case, repeat):
        times[name] += percent
    return shares(times)


def seconds_text(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def row(case: str, rate: float) -> str:
    name, operations, repeat = CASES[case]
    seconds, operators = by_operator(case)
    limit = operations / rate
    cells = (
        name,
        seconds_text(seconds),
        seconds_text(limit) if limit else "-",
        f"{100 * limit / seconds:.0f} %" if limit else "-",
        operators,
        by_function(case, repeat),
        stamp(),
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES), help="parts of names of cases")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rate = peak(instruction_sets(dict(os.environ)))
    cores = len(os.sched_getaffinity(0))
    print(f"one core: {rate / 1e9:.0f} GFLOP/s")
    wanted = options.only.split(",")
    rows = []
    for case in CASES:
        if not any(part in case for part in wanted):
            continue
        # Work that is too small for two cores is compared with the limit of one.
        rows.append(row(case, rate * (cores if CASES[case][1] > 1e6 else 1)))
        print(rows[-1], flush=True)
    if options.write:
        title = f"{machine()}: {instruction_sets(dict(os.environ))}"
        order = tuple(name for name, _, _ in CASES.values())
        keep(HERE / "PROFILES.md", HEAD, Section(title, peer_versions(), COLUMNS, tuple(rows), order))


if __name__ == "__main__":
    main()
