"""Worker processes, so that a program that crashes or hangs ends only its worker and is reported."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

from . import executors, generate
from .executors import Outcome
from .program import Program

PATIENCE = 120  # seconds for one program


def _serve(connection: Any) -> None:
    """The loop of a worker: receives (seed, number) or programs, sends outcomes."""
    warnings.simplefilter("ignore")
    while True:
        job = connection.recv()
        if job is None:
            return
        connection.send(_answer(job))


def _answer(job: Any) -> Outcome | None:
    made = generate.make(*job) if isinstance(job, tuple) else generate.complete(job)
    return None if made is None else executors.run(*made)


class Worker:
    """A process that runs programs and is restarted after a crash."""

    def __init__(self) -> None:
        self.context = multiprocessing.get_context("spawn")
        self._start()

    def _start(self) -> None:
        self.connection, other = self.context.Pipe()
        self.process = self.context.Process(target=_serve, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def send(self, job: Any) -> None:
        self.job, self.since = job, time.monotonic()
        self.connection.send(job)

    def receive(self) -> Outcome | None:
        """Waits for the outcome and returns it; a crash is an outcome, too."""
        try:
            return self.connection.recv()  # type: ignore[no-any-return]
        except (EOFError, ConnectionResetError):
            self.process.join()
            return self._lost(f"the process ended with exit code {self.process.exitcode}")

    def _lost(self, how: str) -> Outcome:
        self.connection.close()
        self._start()
        return Outcome(Counter(), Counter(), [("crash", how)])

    def overdue(self) -> bool:
        return time.monotonic() - self.since > PATIENCE

    def give_up(self) -> Outcome:
        self.process.kill()
        self.process.join()
        return self._lost(f"no answer within {PATIENCE} s")

    def ask(self, job: Any) -> Outcome | None:
        self.send(job)
        if self.connection.poll(PATIENCE):
            return self.receive()
        return self.give_up()

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.send(None)
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()


def run(jobs: int, seed: int, numbers: Iterator[int]) -> Iterator[tuple[int, Outcome | None]]:
    """Yields (number, outcome) of programs in the order in which workers finish them."""
    workers = [Worker() for _ in range(jobs)]
    at_work: dict[Any, tuple[Worker, int]] = {}

    def feed(worker: Worker) -> None:
        number = next(numbers, None)
        if number is not None:
            worker.send((seed, number))
            at_work[worker.connection] = worker, number

    try:
        for worker in workers:
            feed(worker)
        while at_work:
            ready = multiprocessing.connection.wait(list(at_work), timeout=5)
            for connection in ready or [c for c, (worker, _) in at_work.items() if worker.overdue()]:
                worker, number = at_work.pop(connection)
                outcome = worker.receive() if ready else worker.give_up()
                yield number, outcome
                feed(worker)
    finally:
        for worker in workers:
            worker.stop()


def regenerate(seed: int, number: int) -> Program | None:
    made = generate.make(seed, number)
    return made[0] if made else None
