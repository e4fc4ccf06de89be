"""The backend of Ray Train that makes a group of its processes. Imported when Ray is there."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import ray
import ray.util
from ray.train.backend import Backend, BackendConfig

from . import _worker

__all__ = ["GroupConfig"]

_LOOPBACK = "127.0.0.1"


@dataclass
class GroupConfig(BackendConfig):
    """Settings of the groups; each start of the processes makes a new one."""

    virtual_shards: int = 0
    timeout: float = 60.0

    @property
    def backend_cls(self) -> type[Backend]:
        return _GroupBackend

    @property
    def train_func_context(self) -> Callable[[], AbstractContextManager[None]]:
        return _worker.in_group


def _address() -> str:
    return str(ray.util.get_node_ip_address())


def _seats(addresses: list[str], port: int, config: GroupConfig) -> list[_worker.Seat]:
    name = secrets.token_hex(8)
    host = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]  # IPv6
    return [
        _worker.Seat(
            rank=rank,
            size=len(addresses),
            local_rank=addresses[:rank].count(address),
            local_size=addresses.count(address),
            meeting=f"tcp://{host}:{port}",
            address=address,
            virtual_shards=config.virtual_shards,
            name=name,
            timeout=config.timeout,
        )
        for rank, address in enumerate(addresses)
    ]


class _GroupBackend(Backend):
    """Process 0 serves a meeting until all have joined. A new token for each start keeps old processes out.

    Nothing is done when a group ends: Ray ends its processes.
    """

    def on_start(self, worker_group: Any, backend_config: GroupConfig) -> None:
        addresses: list[str] = worker_group.execute(_address)
        if len(set(addresses)) == 1:  # one machine: nothing listens to the network
            addresses = [_LOOPBACK] * len(addresses)
        token = secrets.token_bytes(32)
        port = worker_group.execute_single(0, _worker.serve_meeting, token, addresses[0])
        joined = [
            worker_group.execute_single_async(seat.rank, _worker.join, seat, token)
            for seat in _seats(addresses, port, backend_config)
        ]
        ray.get(joined)
        worker_group.execute_single(0, _worker.close_meeting)
