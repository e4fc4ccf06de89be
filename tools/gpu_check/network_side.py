"""``python -m gpu_check.network_side SIDE SECONDS``: measures the rows of one side on the GPU, prints each as JSON.

The networks are those of benchmarks/sides, which compare both sides on the CPU.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

BATCH = 16
MOST_STEPS = 20
ROW_SECONDS = 12.0


def hybridnet_rows() -> dict[str, Callable[[], Callable[[int], Any]]]:
    import hybridnet as mx
    import hybridnet_control_flow as loops
    import hybridnet_networks as networks
    from hybridnet.gluon.model_zoo import vision

    mx.gpu(0).__enter__()  # for the rest of this process: the sides make their arrays on the default device

    def resnet(make: Callable[[], Any]) -> Callable[[int], Any]:
        data, label = networks.array(BATCH, 3, 224, 224), networks.integers(1000, BATCH)
        return networks.train(make(), True, data, label)

    return {
        "while_1000": lambda: loops.forward(loops.While(), [mx.nd.zeros((1,)), mx.nd.ones((8,))]),
        "lstm_foreach_train": lambda: loops.forward_backward(*loops.loop()),
        "bert_infer": lambda: networks.infer_case("bert_infer", True),
        "resnet18_train": lambda: resnet(vision.resnet18_v1),
        "resnet50_train": lambda: resnet(vision.resnet50_v1),
    }


def torch_rows() -> dict[str, Callable[[], Callable[[int], Any]]]:
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("this PyTorch has no CUDA")
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_default_device("cuda")
    import torch_control_flow as loops
    import torch_networks as networks

    def resnet(make: Callable[[], Any]) -> Callable[[int], Any]:
        data, label = networks.array(BATCH, 3, 224, 224).cuda(), networks.integers(1000, BATCH).cuda()
        return networks.train(make().cuda(), data, label)

    def waited(step: Callable[[int], Any]) -> Callable[[int], Any]:
        def run(repeat: int) -> None:
            step(repeat)
            torch.cuda.synchronize()

        return run

    def bert() -> Callable[[int], Any]:
        make, inputs = networks.INFERENCE["bert_infer"]
        return networks.infer(make().cuda(), inputs().cuda())

    rows = {
        "while_1000": loops.while_1000,
        "lstm_foreach_train": lambda: loops.forward_backward(loops.Cells()),
        "bert_infer": bert,
        "resnet18_train": lambda: resnet(networks.resnet18),
        "resnet50_train": lambda: resnet(networks.resnet50),
    }
    return {name: (lambda make=make: waited(make())) for name, make in rows.items()}


def milliseconds(step: Callable[[int], Any], end: float) -> float:
    """Returns the median of up to 20 steps after two that are not counted, or of those that the time allows."""
    found: list[float] = []
    limit = min(end, time.monotonic() + ROW_SECONDS)
    for number in range(MOST_STEPS + 2):
        start = time.perf_counter()
        step(1)
        if number >= 2 or time.monotonic() > limit:
            found.append((time.perf_counter() - start) * 1e3)
        if time.monotonic() > limit:
            break
    return statistics.median(found)


def main() -> None:
    end = time.monotonic() + float(sys.argv[2]) - 2
    rows = {"hybridnet": hybridnet_rows, "torch": torch_rows}[sys.argv[1]]()
    for name, make in rows.items():
        if time.monotonic() > end:
            break
        print(json.dumps({name: round(milliseconds(make(), end), 4)}), flush=True)


if __name__ == "__main__":
    main()
