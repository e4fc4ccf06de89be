"""Monitor: statistics of a bound graph's arrays during training."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable
from typing import Any

from . import ndarray
from ._public_names import dir_of
from .ndarray import NDArray

__all__ = ["Monitor"]


def _root_mean_square(array: NDArray) -> NDArray:
    return ndarray.norm(array) / math.sqrt(max(array.size, 1))


class Monitor:
    """Collects statistics of outputs, parameters and auxiliary states every interval batches.

    Parameters
    ----------
    interval : int
    stat_func : callable (NDArray) -> NDArray or list of NDArray, optional
        Default: root mean square.
    pattern : str, default '.*'
        Regular expression that selects names.
    sort : bool, default False
        Whether results are sorted by name.
    monitor_all : bool, default False
        Whether inputs of operators are also monitored.

    Use: install() on executors (Module.install_monitor does); tic() before a batch, toc() or toc_print() after it.
    """

    def __init__(
        self,
        interval: int,
        stat_func: Callable[[NDArray], Any] | None = None,
        pattern: str = ".*",
        sort: bool = False,
        monitor_all: bool = False,
    ) -> None:
        self.stat_func = stat_func or _root_mean_square
        self.interval = interval
        self.activated = False
        self.queue: list[tuple[int, str, Any]] = []
        self.step = 0
        self.exes: list[Any] = []
        self.re_prog = re.compile(pattern)
        self.sort = sort
        self.monitor_all = monitor_all

    def stat_helper(self, name: str, array: NDArray) -> None:
        """The callback that executors call for each array."""
        if self.activated and self.re_prog.match(name):
            self.queue.append((self.step, name, self.stat_func(array)))

    def install(self, exe: Any) -> None:
        """Installs the monitor on an executor."""
        exe.set_monitor_callback(self.stat_helper, self.monitor_all)
        self.exes.append(exe)

    def tic(self) -> None:
        """Starts collecting for the next batch, if its turn has come."""
        if self.step % self.interval == 0:
            self.queue = []
            self.activated = True
        self.step += 1

    def toc(self) -> list[tuple[int, str, str]]:
        """Returns (step, name, statistics as text) of the batch, or [] if it was not monitored."""
        if not self.activated:
            return []
        for exe in self.exes:
            for name, array in [*exe.arg_dict.items(), *exe.aux_dict.items()]:
                if self.re_prog.match(name):
                    self.queue.append((self.step, name, self.stat_func(array)))
        self.activated = False
        if self.sort:
            self.queue.sort(key=lambda item: item[1])
        found = [(step, name, self._text(values)) for step, name, values in self.queue]
        self.queue = []
        return found

    @staticmethod
    def _text(values: Any) -> str:
        listed = values if isinstance(values, (list, tuple)) else [values]
        return "".join(f"{v.asscalar() if v.size == 1 else v.asnumpy()}\t" for v in listed)

    def toc_print(self) -> None:
        """Logs the results of toc."""
        for step, name, text in self.toc():
            logging.info("Batch: %7d %30s %s", step, name, text)


__dir__ = dir_of(__name__)
