"""hybridnet.ray.Trainer: training in Ray gives the values of the launcher, survives deaths, and names failures.

Ray is not among the packages of the tests: ``tools/dev test --ray`` runs this file in an environment that has it.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hybridnet import errors
from hybridnet.ray import Trainer
from hybridnet.ray._cluster import check_room
from hybridnet.ray._failures import user_line
from launched import needs_gloo, run

HERE = pathlib.Path(__file__).parent
MOST_SECONDS = 15.0  # from a death to the next step, on a machine that imports Ray in IMPORT_SECONDS
IMPORT_SECONDS = 2.5

needs_ray = [
    needs_gloo,
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="no Ray here: run `tools/dev test --ray`"),
]


def in_ray(test: Any) -> Any:
    for mark in needs_ray:
        test = mark(test)
    return test


def nothing() -> None:
    """Never runs."""


# --- without Ray ------------------------------------------------------------------------------------------------------


def test_without_ray_the_error_tells_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(errors.ImportError, match=r'needs Ray Train[\s\S]*Fix: pip install "ray\[train\]'):
        Trainer(nothing)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"num_workers": 0}, "num_workers: expected at least 1, got 0"),
        ({"max_restarts": -1}, "max_restarts: expected at least 0, got -1"),
        ({"num_workers": 4, "virtual_shards": 2}, "virtual_shards: expected 0, or at least num_workers, got 2"),
        ({"timeout": 0}, "timeout: expected more than 0, got 0"),
        ({"start_timeout": 0.0}, "start_timeout: expected more than 0, or None, got 0.0"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.ValueError, match=re.escape(text)):
        Trainer(nothing, **arguments)


def machine(cpus: float, **more: Any) -> dict[str, Any]:
    return {"Alive": True, "Resources": {"CPU": cpus}, **more}


@pytest.mark.parametrize(
    ("nodes", "cpus"),
    [([machine(2)], 1), ([machine(1), machine(1)], 1), ([machine(1)], 0.5), ([machine(0.3)], 0.1), ([machine(0)], 0)],
)
def test_processes_that_fit_are_started(nodes: list[dict[str, Any]], cpus: float) -> None:
    check_room(nodes, 2, {"CPU": cpus})


@pytest.mark.parametrize(
    ("nodes", "cpus", "text"),
    [
        ([machine(1)], 1, "num_workers=2, each with 1 CPU: expected at most 1, got a cluster of 1 machine with 1 CPU"),
        ([machine(3), machine(1)], 2, "expected at most 1, got a cluster of 2 machines with 4 CPU"),
        ([machine(1), machine(1)], 2, "expected less for each worker, got a cluster of 2 machines with 2 CPU"),
        ([machine(1), machine(4, Alive=False)], 1, "got a cluster of 1 machine with 1 CPU"),
    ],
)
def test_machines_that_are_too_small_are_named(nodes: list[dict[str, Any]], cpus: float, text: str) -> None:
    with pytest.raises(errors.GroupError, match=re.escape(text)):
        check_room(nodes, 2, {"CPU": cpus})


def test_the_line_of_the_user_is_the_innermost_one_outside_of_packages() -> None:
    package = os.path.join(os.path.dirname(errors.__file__), "group.py")
    frames = ["/home/me/train.py", "/env/lib/python3.11/site-packages/numpy/core.py", package]
    trace = "".join(f'  File "{file}", line {number}, in f\n    call()\n' for number, file in enumerate(frames, 7))
    assert user_line(trace) == "/home/me/train.py:7"
    assert user_line("ValueError: no frames") is None


# --- with Ray ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two cores, on this machine."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["PYTHONPATH"] = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(HERE)])
    import ray
    import ray.train

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def fit(folder: pathlib.Path, **settings: Any) -> Any:
    """Trains on two processes; the settings that Trainer lacks go to the function."""
    import ray_training

    config = {"notes": str(folder)} | {
        name: settings.pop(name) for name in ("kill", "fail", "unsendable") if name in settings
    }
    arguments: dict[str, Any] = {"num_workers": 2, "virtual_shards": 4, "folder": folder / "kept", **settings}
    return Trainer(ray_training.in_ray, config=config, **arguments).fit()


@pytest.fixture(scope="module")
def digest() -> str:
    """The digest of the same training by the launcher."""
    done = run(2, "--virtual-shards", "4", "--threads", "1", str(HERE / "ray_training.py"))
    assert done.returncode == 0, done.stderr
    (found,) = set(re.findall("digest (.*)", done.stdout))
    return found


@in_ray
def test_training_in_ray_gives_the_bits_of_the_launcher(cluster: Any, digest: str, tmp_path: pathlib.Path) -> None:
    settings = cluster.train.RunConfig(checkpoint_config=cluster.train.CheckpointConfig(num_to_keep=1))
    result = fit(tmp_path, name="one", run_config=settings)
    assert result.return_value == {"digest": digest, "first": 0, "size": 2, "own": 2}
    assert result.metrics["step"] == 11
    kept = [path.name for path in (tmp_path / "kept" / "one").glob("checkpoint_2*")]
    assert [pathlib.Path(result.checkpoint.path).name] == kept


@in_ray
def test_a_killed_process_is_replaced_and_the_last_checkpoint_is_used(
    cluster: Any, digest: str, tmp_path: pathlib.Path
) -> None:
    begin = time.monotonic()
    subprocess.run([sys.executable, "-c", "import ray.train"], check=True)
    slowness = max(1.0, (time.monotonic() - begin) / IMPORT_SECONDS)  # a busy machine has more than 1
    result = fit(tmp_path, kill=6, max_restarts=1)
    assert result.return_value == {"digest": digest, "first": 4, "size": 2, "own": 2}
    killed, after = (float((tmp_path / name).read_text()) for name in ("killed", "next"))
    print(f"from the death to the next step: {after - killed:.1f} s; importing Ray took {slowness:.1f} times as long")
    assert 0 < after - killed < MOST_SECONDS * slowness


@in_ray
def test_a_death_without_restarts_names_the_process(cluster: Any, tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.GroupError, match=r"rank 1 of 2 \(machine \S+, pid \d+\) has ended") as caught:
        fit(tmp_path, kill=2)
    assert "max_restarts=) was 0" in str(caught.value)


@in_ray
@pytest.mark.parametrize(
    ("unsendable", "text"), [(False, "ValueError: no label at step 2"), (True, "Unsendable: row 7 is negative")]
)
def test_an_exception_is_raised_with_the_line_of_the_user(
    unsendable: bool, text: str, cluster: Any, tmp_path: pathlib.Path
) -> None:
    begin = time.monotonic()
    with pytest.raises(errors.GroupError) as caught:
        fit(tmp_path, fail=2, unsendable=unsendable)
    assert "rank 1 of 2" in str(caught.value)
    assert text in str(caught.value)
    lines = (HERE / "ray_training.py").read_text().splitlines()
    line = next(number for number, code in enumerate(lines, 1) if "raise Unsendable" in code)
    assert f"ray_training.py:{line}" in str(caught.value)
    assert time.monotonic() - begin < 55  # the deadline of the others is 60 s


@in_ray
def test_too_few_cores_are_an_error_at_once(cluster: Any) -> None:
    begin = time.monotonic()
    with pytest.raises(errors.GroupError, match=r"num_workers=3, each with 1 CPU: expected at most 2"):
        Trainer(nothing, num_workers=3).fit()
    assert time.monotonic() - begin < 5


@in_ray
def test_cores_that_do_not_come_are_an_error_after_the_timeout(cluster: Any, tmp_path: pathlib.Path) -> None:
    begin = time.monotonic()
    with pytest.raises(errors.GroupError, match=r"could not be started[\s\S]*timed out after 2.0 seconds"):
        Trainer(nothing, num_workers=3, start_timeout=2.0, folder=tmp_path).fit()
    assert time.monotonic() - begin < 60
