"""Processes on several machines, which are network namespaces joined by a bridge: started, cut off, started again."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest
from launched import launch, lines_of, needs_gloo

WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])  # a network for each process of pytest
SUBNET = f"10.83.{17 + WORKER}"
BRIDGE = f"hnbridge{WORKER}"


def ip(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=False)


def can_make_hosts() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    probe = f"hnprobe{WORKER}"
    steps = [
        ["netns", "add", probe],
        ["link", "add", probe, "type", "bridge"],
        ["link", "add", f"hnp{WORKER}a", "type", "veth", "peer", "name", "eth0", "netns", probe],
        ["link", "set", f"hnp{WORKER}a", "master", probe],
    ]
    made = all(ip(*words).returncode == 0 for words in steps)
    ip("link", "del", f"hnp{WORKER}a")
    ip("link", "del", probe)
    ip("netns", "del", probe)
    return made


pytestmark = [
    needs_gloo,
    pytest.mark.skipif(not can_make_hosts(), reason="network namespaces, bridges and veth need root and iproute2"),
]


@pytest.fixture
def hosts() -> Iterator[list[str]]:
    """Four machines, each named by its address; this machine is SUBNET.254 on their network."""
    addresses = [f"{SUBNET}.{number}" for number in range(1, 5)]
    ip("link", "add", BRIDGE, "type", "bridge")
    ip("addr", "add", f"{SUBNET}.254/24", "dev", BRIDGE)
    ip("link", "set", BRIDGE, "up")
    for number, address in enumerate(addresses):
        ip("netns", "add", address)
        ip("link", "add", f"hn{WORKER}out{number}", "type", "veth", "peer", "name", "eth0", "netns", address)
        ip("link", "set", f"hn{WORKER}out{number}", "master", BRIDGE, "up")
        for words in (
            ["addr", "add", f"{address}/24", "dev", "eth0"],
            ["link", "set", "eth0", "up"],
            ["link", "set", "lo", "up"],
        ):
            ip("-n", address, *words)
    yield addresses
    for number, address in enumerate(addresses):
        ip("link", "del", f"hn{WORKER}out{number}")
        ip("netns", "del", address)
    ip("link", "del", BRIDGE)


REMOTE = ("--remote-shell", "ip netns exec {host}")

SUMS = """
import socket
assert os.environ["HYBRIDNET_GROUP_ADDRESS"].endswith(f".{rank + 1}")
x = mx.nd.ones((100_000,)) * (rank + 1)
for _ in range(5):
    total = group.sum(x)
assert (total.asnumpy() == 10).all()
assert os.environ["HYBRIDNET_GROUP_LOCAL_RANK"] == "0"
print("fine")
"""


def test_processes_on_four_machines_form_a_group(hosts: list[str], tmp_path: pathlib.Path) -> None:
    done = launch(4, SUMS, tmp_path, "-H", ",".join(f"{host}:1" for host in hosts), *REMOTE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("fine") == 4


# The program cuts the network of host 3 once; after the restart it continues from the step that it has kept.
CUT = """
attempt, folder = int(os.environ["HYBRIDNET_GROUP_NAME"]), sys.argv[1]
kept = os.path.join(folder, "step")
first = int(open(kept).read()) if os.path.exists(kept) else 0
x = mx.nd.zeros((1000,)) + first * size
for step in range(first, 6):
    if attempt == 0 and step == 3 and rank == 2:
        os.system("ip link set eth0 down")
    try:
        x += group.sum(mx.nd.ones((1000,)), name=f"step {step}")
        mx.nd.waitall()
    except mx.errors.GroupError as error:
        print("error", " ".join(str(error).split()), flush=True)
        if rank == 2:
            os.system("ip link set eth0 up")
        sys.exit(7)
    if rank == 0:
        with open(kept + ".new", "w") as file:
            file.write(str(step + 1))
        os.replace(kept + ".new", kept)
assert (x.asnumpy() == 6 * size).all()
print("fine", attempt)
"""


def test_a_machine_that_is_cut_off_is_named_and_the_job_continues_after_a_restart(
    hosts: list[str], tmp_path: pathlib.Path
) -> None:
    places = ",".join(f"{host}:1" for host in hosts)
    begin = time.monotonic()
    done = launch(
        4, CUT, tmp_path, "-H", places, *REMOTE, "--timeout", "2", "--max-restarts", "1", "--grace", "12",
        arguments=(str(tmp_path),),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in (0, 1, 3):
        (error,) = (line for line in lines_of(done, rank) if line.startswith("error"))
        assert "rank 2 of 4" in error
        assert "step 3" in error
    assert done.stdout.count("fine 1") == 4
    assert time.monotonic() - begin < 60


def test_a_machine_that_cannot_be_reached_is_said(tmp_path: pathlib.Path) -> None:
    done = launch(2, "print('never')", tmp_path, "-H", "localhost:1,10.83.250.99:1", "--remote-shell", "false {host}")
    assert done.returncode == 1
    assert "rank 1" in done.stderr


def test_other_machines_need_a_way_to_reach_them(tmp_path: pathlib.Path) -> None:
    done = launch(2, "", tmp_path, "-H", "10.83.250.98:2")
    assert done.returncode == 2
    assert "add --launcher ssh" in done.stderr
