"""tools/check_layers.py on tiny generated trees: includes and imports that it must report, and allowed ones."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "tools" / "check_layers.py"
_spec = importlib.util.spec_from_file_location("check_layers", SCRIPT)
assert _spec is not None and _spec.loader is not None
check_layers = importlib.util.module_from_spec(_spec)
sys.modules["check_layers"] = check_layers
_spec.loader.exec_module(check_layers)


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def breaks(root: Path) -> list[str]:
    checks = (check_layers.check_cpp, check_layers.check_python, check_layers.check_import_circles)
    return [str(found) for check in checks for found in check(root)]


ALLOWED = {
    "an op includes graph, kernels and its own room": {
        "src/ops/nn/a.cc": '#include "graph/g.h"\n#include "kernels/k.h"\n#include "b.h"\n#include <vector>\n',
        "src/ops/nn/b.h": '#include "hybridnet/op.h"\n#include "hybridnet/ndarray.h"\n',
        "src/graph/g.h": '#include "hybridnet/engine.h"\n',
        "src/kernels/k.h": '#include "hybridnet/threads.h"\n#include "hybridnet/op.h"\n',
    },
    "arrows": {
        "src/c_api/a.cc": '#include "runtime/r.h"\n',
        "src/plan/a.cc": '#include "imperative/i.h"\n',
    },
    "bindings include Python": {"src/bindings/python/a.cc": "#include <pybind11/pybind11.h>\n#include <Python.h>\n"},
    "the C++ front end includes the C header": {"include/hybridnet/cpp/model.h": '#include "hybridnet/c_api.h"\n'},
    "the reader of the environment": {"src/base/env.cc": 'auto v = std::getenv("A");\n'},
    "a comment about getenv": {"src/base/a.cc": "int a;  // getenv() is slow\n"},
    "Highway's header for every instruction set": {
        "src/kernels/a.cc": '#include "hwy/foreach_target.h"\n#include "hwy/highway.h"\n'
    },
    "a door that MXNet's names need": {
        "python/hybridnet/ndarray/contrib.py": "def __getattr__(name):\n    from .._control_flow import functions\n"
    },
    "an import for type checkers only": {
        "python/hybridnet/base.py": "import typing\nif typing.TYPE_CHECKING:\n    from .gluon import Block\n"
    },
    "a circle that a function call closes": {
        "python/hybridnet/gluon/a.py": "from . import b\n",
        "python/hybridnet/gluon/b.py": "def f():\n    from .a import A\n",
    },
    "downward and sideways imports": {
        "python/hybridnet/gluon/nn/a.py": "from ... import nd\nfrom ..block import B\nimport hybridnet.base\n",
        "python/hybridnet/ndarray.py": "import numpy as np\nfrom . import symbol\nfrom hybridnet import __version__\n",
    },
}  # fmt: skip

FORBIDDEN = {
    "upwards": ({"src/graph/a.cc": '\n#include "plan/p.h"\n'}, "src/graph/a.cc:2: room 'graph' includes room 'plan'"),
    "sideways": ({"src/passes/a.cc": '#include "ops/o.h"\n'}, "'passes' and 'ops' stand on one line"),
    "against an arrow": ({"src/imperative/a.cc": '#include "plan/p.h"\n'}, "'imperative' and 'plan' stand on"),
    "Java beyond the C ABI": ({"src/bindings/jni/a.cc": '#include "hybridnet/op.h"\n'}, "'jni' sees only c_api"),
    "Java elsewhere": ({"src/bindings/python/a.cc": "#include <jni.h>\n"}, "room 'bindings' includes <jni.h>"),
    "kernels beyond base": ({"src/kernels/a.h": '#include "hybridnet/engine.h"\n'}, "'kernels' sees only base, "),
    "a public header upwards": ({"include/hybridnet/base.h": '#include "hybridnet/op.h"\n'}, "'op' stands above"),
    "a relative path": (
        {"src/engine/a.cc": '#include "../storage/s.h"\n', "src/storage/s.h": ""},
        "room 'engine' includes room 'storage'",
    ),
    "Python in the library": ({"src/runtime/a.cc": "# include <Python.h>\n"}, "room 'runtime' includes <Python.h>"),
    "an unknown header": ({"src/ops/a.cc": '#include "hybridnet/new.h"\n'}, '"hybridnet/new.h" is in no known'),
    "a public header without a room": ({"include/hybridnet/new.h": ""}, "include/hybridnet/new.h:1: this file belongs"),
    "the environment": ({"src/ops/a.cc": 'if (std::getenv("X")) {}\n'}, "src/ops/a.cc:1: an environment variable"),
    "a Python import upwards": (
        {"python/hybridnet/autograd.py": "import os\nfrom .gluon.block import Block\n"},
        "python/hybridnet/autograd.py:2: 'autograd' imports 'gluon'",
    ),
    "a late import upwards": (
        {"python/hybridnet/ndarray/array.py": "def f():\n    from .. import gluon\n"},
        "python/hybridnet/ndarray/array.py:2: 'ndarray' imports 'gluon'",
    ),
    "a door opened at import": (
        {"python/hybridnet/ndarray/contrib.py": "from .._control_flow import functions\n"},
        "'ndarray' imports '_control_flow'",
    ),
    "an absolute import upwards": (
        {"python/hybridnet/context.py": "import hybridnet.optimizer.sgd\n"},
        "'context' imports 'optimizer'",
    ),
    "a circle of imports": (
        {
            "python/hybridnet/gluon/a.py": "from . import b\n",
            "python/hybridnet/gluon/b.py": "import os\nfrom ..gluon.a import A\n",
        },
        "python/hybridnet/gluon/a.py:1: import circle gluon.a -> gluon.b -> gluon.a",
    ),
    "a module without a line": ({"python/hybridnet/extra.py": ""}, "module 'extra' stands on no line"),
}  # fmt: skip


@pytest.mark.parametrize("files", ALLOWED.values(), ids=ALLOWED.keys())
def test_allowed_includes_are_left_alone(tmp_path: Path, files: dict[str, str]) -> None:
    assert breaks(tree(tmp_path, files)) == []


@pytest.mark.parametrize(("files", "expected"), FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_forbidden_includes_are_named_with_reason_and_fix(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    found = breaks(tree(tmp_path, files))
    assert len(found) == 1
    assert expected in found[0]
    assert "Because: " in found[0]
    assert "Fix: " in found[0]


def test_main_fails_on_a_break_and_passes_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree(tmp_path, {"src/base/a.cc": '#include "hybridnet/base.h"\n'})
    assert check_layers.main([str(tmp_path)]) == 0
    tree(tmp_path, {"src/base/b.cc": '#include "ops/o.h"\n'})
    assert check_layers.main([str(tmp_path)]) == 1
    assert "src/base/b.cc:1" in capsys.readouterr().out
