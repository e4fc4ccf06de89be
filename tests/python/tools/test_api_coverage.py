"""docs/api-coverage.md lists the available names of MXNet, and a reason for every missing one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
import api_coverage  # noqa: E402


def test_the_document_is_up_to_date():
    check = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "api_coverage.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert check.returncode == 0, check.stdout[-3000:] + check.stderr + "\nFix: python tools/api_coverage.py"


def test_every_missing_name_has_a_reason():
    names = [name for name in api_coverage.read_names() if name.area in api_coverage.AREAS]
    assert len(names) > 2000
    missing = [name.name for name in names if not api_coverage.is_there(name)]
    assert [name for name in missing if api_coverage.reason_for(name) is None] == []


def test_every_reason_is_that_of_a_missing_name():
    missing = [name.name for name in api_coverage.read_names() if not api_coverage.is_there(name)]
    used = {api_coverage.reason_for(name) for name in missing}
    assert set(api_coverage.REASONS.values()) - used == set()


@pytest.mark.parametrize(
    ("name", "there"),
    [
        (("python", "1", "NDArray.asnumpy", ""), True),
        (("python", "1", "gluon.Parameter.lr_mult", ""), True),
        (("python", "3", "io.DataBatch.pad", ""), True),
        (("python", "1", "gluon.nn.Denser", ""), False),
        (("python", "1", "contrib.tensorrt.init_tensorrt_params", ""), False),
        (("operators", "1", "contrib.box_nms", "nd+sym"), True),
        (("operators", "1", "contrib.box_nmx", "nd+sym"), False),
    ],
)
def test_names_are_followed_through_modules_classes_and_objects(name, there):
    assert api_coverage.is_there(api_coverage.Name(*name)) is there


def test_names_of_the_most_used_tiers_are_there():
    names = [name for name in api_coverage.read_names() if name.area in api_coverage.AREAS and name.tier in ("1", "2")]
    missing = {name.name for name in names if not api_coverage.is_there(name)}
    assert not missing
