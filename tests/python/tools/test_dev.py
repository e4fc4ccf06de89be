"""tools/dev prints help and errors about arguments before any set-up."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]
_COMMANDS = [
    "demo",
    "test",
    "build",
    "lint",
    "docs",
    "format",
    "mypy",
    "gen",
    "bench",
    "sanitize",
    "fuzz",
    "jar",
    "package",
    "wheel",
    "setup",
    "isa",
]


def _dev(*arguments):
    # There is no Python and no environment, so a set-up would fail.
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": "/nowhere/python", "HOME": "/nowhere"}
    command = ["bash", str(_ROOT / "tools" / "dev"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("command", _COMMANDS)
def test_every_command_has_help_of_its_own(command):
    result = _dev(command, "--help")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"tools/dev {command}")
    assert len(result.stdout.splitlines()) > 1
    assert result.stderr == ""


def test_the_usage_lists_every_command():
    listed = re.findall(r"^  ([a-z]+) ", _dev("--help").stdout, re.MULTILINE)
    assert sorted(listed) == sorted(_COMMANDS)


@pytest.mark.parametrize("arguments", [("nothing",), ("nothing", "--help")])
def test_an_unknown_command_is_named(arguments):
    result = _dev(*arguments)
    assert result.returncode == 1
    assert "unknown command 'nothing'" in result.stderr


@pytest.mark.parametrize("command", ["lint", "format", "mypy", "jar", "wheel", "setup", "isa"])
def test_commands_without_arguments_say_so(command):
    result = _dev(command, "more")
    assert result.returncode == 1
    assert f"'{command}' takes no arguments, got: more" in result.stderr
