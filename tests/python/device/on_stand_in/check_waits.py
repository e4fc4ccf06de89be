"""Operators that wait for values of the GPU say so (OpBuilder::waits_on_gpu): they do not hold up the thread that calls
them."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parent
# Waits only for updates that have no form with rates: the common ones must stay launches.
EXCEPTIONS = {"_update_with_rates"}
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import hybridnet as mx
import operator_sweep, stand_in
from hybridnet import autograd
from hybridnet.errors import UnsupportedError
from sweep import OPS

def reads_back(use, dtype, train):
    run = operator_sweep.Run(use, mx.gpu(0), dtype)
    mx.nd.waitall()
    before = stand_in.counters()["bytes_out"]
    try:
        with autograd.train_mode() if train else autograd.predict_mode():
            out = run.call()
        mx.nd.waitall()
    except UnsupportedError:  # this use has no form for GPUs
        return False
    return stand_in.counters()["bytes_out"] > before

found = {}
for name in operator_sweep.names():
    if operator_sweep.kind_of(name) == "device":
        samples = [(use, dtype) for dtype, uses in operator_sweep.uses_by_dtype(name).items() for use in uses]
        if any(reads_back(*sample, train) for sample in samples for train in (False, True)):
            found[name] = OPS[name]["waits_on_gpu"]
print(json.dumps([found, stand_in.reports()]))
"""


def test_operators_that_read_values_back_are_declared() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(FOLDER.parent)],
        env={**os.environ, "HYBRIDNET_GPU_FALLBACK": "error"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, reports = json.loads(done.stdout)
    assert reports == []
    assert {name for name, declared in found.items() if not declared} == EXCEPTIONS
    assert "_contrib_dequantize" in found and "elemwise_add" not in found
