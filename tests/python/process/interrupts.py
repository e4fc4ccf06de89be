"""Programs that run until Ctrl-C ends them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time


def start(code: str) -> subprocess.Popen[str]:
    """Python running code, with interrupts as a terminal delivers them: background jobs start with them ignored."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def interrupted(process: subprocess.Popen[str], after: float = 0) -> tuple[str, str]:
    """What the process wrote until an interrupt, so many seconds from now, ended it; one that goes on is killed."""
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=60)
    finally:
        process.kill()
