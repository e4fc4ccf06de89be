"""A page in headless Chromium, controlled over the pipe of its DevTools protocol, which needs no package."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page:
    """A page of the browser."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes, self._number, self._rest = reads, writes, 0, b""
        self._session: str | None = None
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._ask("Page.enable")

    def _ask(self, method: str, **params: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._reads, 1 << 16)
            assert part, "chromium has ended"
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)

    def open(self, address: str) -> None:
        """Opens an address and waits until the page has loaded."""
        self._ask("Page.navigate", url=address)
        self.wait_for("document.readyState == 'complete' && location.href != 'about:blank'")

    def value(self, expression: str) -> Any:
        """Evaluates a JavaScript expression."""
        result = self._ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_for(self, expression: str, seconds: float = 30) -> None:
        """Waits until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < end, f"{expression} did not become true"
            time.sleep(0.02)

    def mouse(self, kind: str, x: float, y: float, pressed: bool) -> None:
        """Sends a mouse event; kind: mousePressed, mouseMoved or mouseReleased."""
        buttons = {"button": "left", "buttons": 1 if pressed else 0, "clickCount": 1}
        self._ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **buttons)

    def drag(self, points: list[tuple[float, float]]) -> None:
        """Drags along points with the left button."""
        self.mouse("mousePressed", *points[0], True)
        for x, y in points:
            self.mouse("mouseMoved", x, y, True)
        self.mouse("mouseReleased", *points[-1], False)


@contextlib.contextmanager
def page(folder: Any) -> Iterator[Page]:
    """Yields a page of a browser that runs until the `with` block ends and keeps its files in `folder`."""
    assert PROGRAM is not None
    commands, results = os.pipe(), os.pipe()
    # The browser reads from file descriptor 3 and writes to 4.
    script = f'exec {PROGRAM} "$@" 3<&{commands[0]} 4>&{results[1]}'
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    options += ["--remote-debugging-pipe", f"--user-data-dir={folder}", "--window-size=800,800"]
    with subprocess.Popen(
        ["bash", "-c", script, "chromium", *options], pass_fds=(commands[0], results[1]), stderr=subprocess.DEVNULL
    ) as browser:
        os.close(commands[0])
        os.close(results[1])
        try:
            yield Page(results[0], commands[1])
        finally:
            browser.terminate()
            os.close(commands[1])
            os.close(results[0])
