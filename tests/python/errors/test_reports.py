"""Reports of uncaught errors are short: they show the program's lines. Warnings name the program's line."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import types
import warnings

import hybridnet as mx
import pytest
from hybridnet import _user_line, gluon
from hybridnet._error_help import _tracebacks
from hybridnet.gluon import nn

PACKAGE = os.path.dirname(mx.__file__)
NOTE = "inside hybridnet and Python hidden: HYBRIDNET_FULL_TRACEBACK=1 shows all"


class Model(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.body = nn.HybridSequential()
        self.body.add(nn.Dense(4, in_units=3), nn.Dense(2, in_units=5))

    def forward(self, x):
        return self.body(x)


def failing(call) -> BaseException:
    """Returns the error of call, whose traceback begins in the calling test."""
    try:
        call()
    except BaseException as error:
        return error
    raise AssertionError("no error")


def wrong_shape() -> BaseException:
    net = Model()
    net.initialize()
    return failing(lambda: net(mx.nd.ones((2, 3))))


def test_a_report_shows_frames_of_the_program_only():
    report = _tracebacks.report(wrong_shape())
    assert PACKAGE not in report
    assert "return self.body(x)" in report
    assert "\n  Fix: " in report
    assert NOTE in report.rstrip().splitlines()[-1]


def test_the_number_of_hidden_frames_is_right(monkeypatch):
    error = wrong_shape()
    report = _tracebacks.report(error)
    monkeypatch.setenv("HYBRIDNET_FULL_TRACEBACK", "1")
    full = _tracebacks.report(error)
    hidden = full.count('  File "') - report.count('  File "')
    assert f"({hidden} frames " in report
    assert NOTE not in full


def test_a_report_leaves_the_error_as_it_was():
    error = wrong_shape()
    before = error.__traceback__, error.__cause__, error.__context__, error.__suppress_context__
    _tracebacks.report(error)
    assert before == (error.__traceback__, error.__cause__, error.__context__, error.__suppress_context__)


def test_errors_that_the_package_handled_are_left_out():
    error = failing(lambda: mx.nd.array([[1, 2], [3]]))
    assert error.__cause__ is not None
    report = _tracebacks.report(error)
    assert report.count("Traceback") == 1
    assert "direct cause" not in report


def test_an_error_that_the_program_handled_is_shown():
    def call():
        try:
            {}["a"]
        except KeyError:
            mx.nd.array([[1, 2], [3]])

    report = _tracebacks.report(failing(call))
    assert "KeyError: 'a'" in report
    assert "During handling of the above exception" in report
    assert report.count("Traceback") == 2


def test_an_error_of_the_program_inside_of_a_call_of_the_package_is_shown_without_the_package():
    class Broken(gluon.Block):
        def forward(self, x):
            return x.undefined_number / {}["a"]

    report = _tracebacks.report(failing(lambda: nn.Lambda(lambda x: {}["a"])(1)))
    assert "KeyError: 'a'" in report
    assert PACKAGE not in report


def test_a_fault_of_the_package_keeps_its_frames():
    inside = compile("def fail():\n    return 1 + 'a'\n", os.path.join(PACKAGE, "invented.py"), "exec")
    names: dict = {}
    exec(inside, names)
    report = _tracebacks.report(failing(names["fail"]))
    assert "invented.py" in report
    assert NOTE not in report


@pytest.mark.parametrize("value", ["0", "", "false", "off"])
def test_off_values_of_the_variable_hide_frames(monkeypatch, value):
    monkeypatch.setenv("HYBRIDNET_FULL_TRACEBACK", value)
    assert NOTE in _tracebacks.report(wrong_shape())


def test_a_thread_reports_in_short(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    error = wrong_shape()
    thread = threading.Thread(name="loader")
    _tracebacks._print_in_thread(threading.ExceptHookArgs((type(error), error, error.__traceback__, thread)))
    report = sys.stderr.getvalue()
    assert "Exception in thread loader" in report
    assert PACKAGE not in report
    assert NOTE in report.rstrip().splitlines()[-1]


class Shell:
    """IPython's interface to handlers of exceptions."""

    def __init__(self, custom=()):
        self.custom_exceptions = custom
        self.shown: list = []

    def set_custom_exc(self, classes, handler):
        self.custom_exceptions, self.handler = classes, handler

    def showtraceback(self, exc_tuple, tb_offset=None):
        self.shown.append("".join(_tracebacks_of(exc_tuple[2])))


def _tracebacks_of(trace) -> list[str]:
    return [frame.tb_frame.f_code.co_filename + "\n" for frame in _tracebacks._frames(trace)]


def test_ipython_shows_frames_of_the_program_only(monkeypatch, capsys):
    shell = Shell()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    _tracebacks.install()
    assert shell.custom_exceptions == (mx.MXNetError,)
    error = wrong_shape()
    shell.handler(shell, type(error), error, error.__traceback__, tb_offset=1)
    assert PACKAGE not in shell.shown[0]
    assert __file__ in shell.shown[0]
    assert NOTE in capsys.readouterr().err


def test_a_handler_that_a_program_has_given_to_ipython_stays(monkeypatch):
    shell = Shell((ValueError,))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    _tracebacks.install()
    assert shell.custom_exceptions == (ValueError,)


PROGRAM = """
import sys
{before}
import hybridnet as mx
from hybridnet.gluon import nn
net = nn.HybridSequential()
net.add(nn.Dense(4, in_units=3), nn.Dense(2, in_units=5))
net.initialize()
net(mx.nd.ones((2, 3)))
"""


def output_of(folder, before="", *command) -> str:
    (folder / "program.py").write_text(PROGRAM.format(before=before))
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(PACKAGE)}
    environment.pop("HYBRIDNET_FULL_TRACEBACK", None)
    command = command or ("program.py",)
    done = subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("command", [("program.py",), ("-m", "program")])
def test_a_program_prints_a_short_report(tmp_path, command):
    lines = output_of(tmp_path, "", *command).splitlines()
    assert len(lines) < 12
    assert sum('  File "' in line for line in lines) == 1
    assert "net(mx.nd.ones((2, 3)))" in lines[2]
    assert NOTE in lines[-1]


def test_a_hook_that_a_program_has_set_stays(tmp_path):
    before = "sys.excepthook = lambda kind, error, trace: print('own hook', kind.__name__, file=sys.stderr)"
    assert output_of(tmp_path, before) == "own hook ShapeError\n"


# --- pytest -----------------------------------------------------------------------------------------------------------


def test_pytest_hides_frames_of_layers_in_errors_of_the_package():
    caught = pytest.ExceptionInfo.from_exception(wrong_shape())
    shown = {str(entry.path) for entry in caught.traceback.filter(caught)}
    assert not [path for path in shown if path.startswith(os.path.join(PACKAGE, "gluon", "block"))]
    assert __file__ in shown


def test_pytest_shows_frames_of_layers_in_other_errors():
    assert not _tracebacks.hide_in_pytest(pytest.ExceptionInfo.from_exception(failing(lambda: 1 / 0)))
    assert not _tracebacks.hide_in_pytest(None)


# --- warnings ---------------------------------------------------------------------------------------------------------


def test_a_warning_names_the_line_of_the_program_whatever_is_in_between():
    net = nn.Sequential()
    net.add(nn.Dense(2, in_units=2))
    net.initialize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net.initialize()
        net.hybridize()
    assert {warning.filename for warning in caught} == {__file__}
    assert len({warning.lineno for warning in caught}) == 2


def test_a_warning_of_a_direct_call_names_the_calling_line():
    with pytest.warns(UserWarning, match="text") as caught:
        _user_line.warn("text")
    assert caught[0].filename == __file__


# --- errors that Python raises itself ---------------------------------------------------------------------------------
X = mx.nd.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        (lambda: X.size(), "size is a property: write x.size, the number of elements; one size is x.shape[0]"),
        (lambda: X.shape(), "shape is a property: write x.shape"),
        (lambda: X.expand_dims(dim=1), "write axis=... in place of dim="),
        (lambda: X.astype(dtyp="int8"), "did you mean dtype="),
        (lambda: X.attach_grad(requires=1), "it takes grad_req, stype"),
        (lambda: nn.Conv2D(3), "give kernel_size: nn.Conv2D(channels, kernel_size, strides=1"),
        (lambda: mx.gpu(id=3), "it takes device_id"),
    ],
)
def test_a_report_adds_the_fix_to_an_error_of_python_at_a_call_of_the_package(call, fix):
    error = failing(call)
    assert type(error) is TypeError
    assert f"\n  Fix: {fix}" in _tracebacks.report(error)


def test_a_report_leaves_errors_of_other_code_alone():
    def size() -> None: ...

    for call in (lambda: size(3), lambda: int(base=3, other=2), lambda: "a" + 1):
        assert "Fix:" not in _tracebacks.report(failing(call))


# --- errors of Python -------------------------------------------------------------------------------------------------


def reported(line: str, tmp_path) -> str:
    """Returns the report of a program that ends with this line."""
    file = tmp_path / "program.py"
    head = "import hybridnet as mx\nfrom hybridnet import gluon\nfrom hybridnet.gluon import nn\n"
    head += "x = mx.nd.ones((2, 3))\nnet = nn.Dense(2, in_units=3)\nnet.initialize()\n"
    file.write_text(f"{head}{line}\n")
    code = compile(file.read_text(), str(file), "exec")
    return _tracebacks.report(failing(lambda: exec(code, {})))


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("x.squeeze(dim=0)", "write axis=... in place of dim=..."),
        ("x.size(0)", "size is a property: write x.size, the number of elements; one size is x.shape[0]."),
        ("x.backward(create_graph=True)",
         "for second gradients: autograd.grad(y, [x], create_graph=True) inside record()."),
        ("net.weight.grad.zero_()", "grad is a method: write .grad() with parentheses."),
        ("gluon.data.vision.MNIST(download=True)", "leave it out: missing files are downloaded."),
        ("import hybridnet.nn as nn", "write from hybridnet.gluon import nn."),
        ("from hybridnet.nn import functional", "write from hybridnet.gluon import nn."),
        ("import hybridnet.nn.functional as F", "write from hybridnet import nd: the functions are in mx.nd."),
        ("import hybridnet.optim",
         'write from hybridnet import gluon: gluon.Trainer(net.collect_params(), "adam") has the optimizer.'),
        ("from hybridnet.utils.data import DataLoader",
         "write from hybridnet.gluon.data import DataLoader, Dataset."),
    ],
)  # fmt: skip
def test_an_error_of_python_at_a_call_of_the_package_has_a_fix(line, fix, tmp_path):
    assert reported(line, tmp_path).endswith(f"\n  Fix: {fix}\n")


@pytest.mark.parametrize("line", ["import hybridnet.nothing", "import nothing.nn", "len.nothing"])
def test_an_error_of_python_without_a_known_fix_stays(line, tmp_path):
    assert "Fix: " not in reported(line, tmp_path)
