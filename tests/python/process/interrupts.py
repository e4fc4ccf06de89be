"""Programs that run until Ctrl-C ends them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time


def start(code: str) -> subprocess.Popen[str]:
    """Starts Python code with SIGINT enabled, as in a terminal; background jobs ignore SIGINT by default."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def interrupted(process: subprocess.Popen[str], after: float = 0) -> tuple[str, str]:
    """Interrupts the process after some seconds and returns its output; kills the process if it does not end."""
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=60)
    finally:
        process.kill()
