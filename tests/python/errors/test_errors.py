"""Errors name the operator, the expected and the given value, and the line; they are builtin exceptions, too."""

from __future__ import annotations

import builtins
import os
import signal
import subprocess
import sys
import textwrap

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors


@pytest.mark.parametrize(
    ("cls", "builtin"),
    [
        ("ShapeError", "ValueError"),
        ("ParamError", "ValueError"),
        ("ParamError", "TypeError"),
        ("DTypeError", "TypeError"),
        ("TypeError", "TypeError"),
        ("ValueError", "ValueError"),
        ("IndexError", "IndexError"),
        ("FormatError", "ValueError"),
        ("FileError", "OSError"),
        ("TraceError", "TypeError"),
        ("OutOfMemoryError", "MemoryError"),
        ("UnsupportedError", "NotImplementedError"),
        ("GradientError", "RuntimeError"),
        ("EngineError", "RuntimeError"),
    ],
)
def test_classes_derive_from_the_builtin_that_fits(cls, builtin):
    error = getattr(errors, cls)
    assert issubclass(error, getattr(builtins, builtin))
    assert issubclass(error, mx.MXNetError)
    assert str(error("text")) == "text"
    assert mx.MXNetError is errors.HybridNetError is mx.base.MXNetError


def test_an_unknown_keyword_names_a_similar_one():
    with pytest.raises(errors.ParamError, match="did you mean 'num_hidden'") as caught:
        mx.nd.FullyConnected(mx.nd.ones((2, 3)), mx.nd.ones((4, 3)), no_bias=True, num_hiden=4)
    assert caught.value.op == "FullyConnected"
    assert caught.value.input == "num_hiden"
    assert "test_errors.py" in caught.value.where


def test_a_missing_parameter_is_named():
    with pytest.raises(errors.ParamError, match="num_hidden"):
        mx.nd.FullyConnected(mx.nd.ones((2, 3)), mx.nd.ones((4, 3)), no_bias=True)


def test_a_bad_choice_lists_the_choices():
    with pytest.raises(errors.ParamError, match="relu"):
        mx.nd.Activation(mx.nd.ones((2,)), act_type="rleu")


def test_a_bad_value_names_the_parameter():
    for value in ("many", [1, 2], 2.5, None, -3):
        with pytest.raises(errors.ParamError, match="num_hidden"):
            mx.nd.FullyConnected(mx.nd.ones((2, 3)), mx.nd.ones((4, 3)), no_bias=True, num_hidden=value)


def test_an_object_that_is_no_parameter():
    with pytest.raises(TypeError, match="num_hidden"):
        mx.nd.FullyConnected(mx.nd.ones((2, 3)), mx.nd.ones((4, 3)), no_bias=True, num_hidden=object())


def test_a_list_that_contains_itself_also_where_the_stack_is_small():
    """This runs in a separate process, which a stack overflow would crash."""
    code = """
        import threading
        import hybridnet as mx

        def give():
            loop = []
            loop.append(loop)
            try:
                mx.nd.transpose(mx.nd.ones((2, 3)), axes=loop)
            except RecursionError as error:
                print(error)

        threading.stack_size(256 << 10)
        thread = threading.Thread(target=give)
        thread.start()
        thread.join()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "axes: lists nest more than 64 levels deep\n"), done.stderr


def test_lists_may_nest():
    nested = 0
    for _ in range(64):
        nested = [nested]
    with pytest.raises(errors.ParamError, match="axes"):  # the list was read, but is not a tuple of integers
        mx.nd.transpose(mx.nd.ones((2, 3)), axes=nested)
    with pytest.raises(RecursionError, match="64"):
        mx.nd.transpose(mx.nd.ones((2, 3)), axes=[nested])


@pytest.mark.parametrize("value", [1, "x", np.ones(2), [mx.nd.ones((1,))]], ids=["int", "str", "numpy", "list"])
def test_inputs_must_be_arrays(value):
    with pytest.raises(TypeError, match=r"data.*NDArray"):
        mx.nd.Flatten(value)


def test_missing_and_surplus_inputs():
    with pytest.raises(errors.ParamError, match="weight"):
        mx.nd.FullyConnected(mx.nd.ones((2, 3)), num_hidden=4, no_bias=True)
    with pytest.raises(errors.ParamError, match="2 inputs"):
        mx.nd.FullyConnected(mx.nd.ones((2, 3)), mx.nd.ones((4, 3)), mx.nd.ones((4,)), num_hidden=4, no_bias=True)
    with pytest.raises(TypeError, match="positional"):
        mx.nd.relu(mx.nd.ones((1,)), 1, 2, 3)
    with pytest.raises(TypeError, match="twice"):
        mx.nd.Flatten(mx.nd.ones((1,)), data=mx.nd.ones((1,)))


def test_a_wrong_number_of_inputs_of_many():
    x = mx.nd.ones((2, 3))
    with pytest.raises(errors.ParamError, match=r"num_args.*expected 2.*got 3"):
        mx.nd.concat(x, x, num_args=3)
    text = mx.sym.concat(mx.sym.var("a"), mx.sym.var("b")).tojson().replace('"num_args": "2"', '"num_args": "3"')
    with pytest.raises(errors.FormatError, match="num_args"):
        mx.sym.load_json(text)


def test_shape_errors_have_fields():
    with pytest.raises(errors.ShapeError) as caught:
        mx.nd.FullyConnected(mx.nd.ones((2, 5)), mx.nd.ones((4, 3)), no_bias=True, num_hidden=4)
    assert caught.value.op == "FullyConnected"
    assert caught.value.input == "weight"
    assert "(4, 5)" in caught.value.expected
    assert "(4, 3)" in caught.value.given


def test_out_of_the_wrong_shape_or_dtype():
    x = mx.nd.ones((2, 3))
    with pytest.raises(errors.ShapeError):
        mx.nd.relu(x, out=mx.nd.zeros((3, 2)))
    with pytest.raises(errors.DTypeError):
        mx.nd.relu(x, out=mx.nd.zeros((2, 3), dtype="float64"))
    with pytest.raises(TypeError, match="out"):
        mx.nd.relu(x, out=3)


def test_unknown_names():
    with pytest.raises(AttributeError, match="NoSuchOperator"):
        _ = mx.nd.NoSuchOperator
    with pytest.raises(AttributeError, match="no_such_module"):
        _ = mx.no_such_module
    with pytest.raises(ImportError):
        from hybridnet import no_such_module  # noqa: F401


def run_python(code, **kwargs):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs ignore SIGINT by default
        **kwargs,
    )


def test_ctrl_c_interrupts_a_wait():
    process = run_python("""
        import hybridnet as mx
        x = mx.nd.ones((2500, 2500))
        print("ready", flush=True)
        try:
            while True:
                y = x
                for _ in range(200):
                    y = mx.nd.dot(y, x)
                y.wait_to_read()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        import os
        os._exit(0)
    """)
    assert process.stdout.readline() == "ready\n"
    import time

    time.sleep(0.3)  # the signal must arrive while the program waits; any later moment is right, too
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert "interrupted" in out, err


def test_pending_work_is_finished_at_exit():
    process = run_python("""
        import hybridnet as mx
        x = mx.nd.ones((300, 300))
        for _ in range(50):
            x = mx.nd.dot(x, x) * 0
    """)
    _out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert err == ""


@pytest.mark.parametrize("pending", [False, True])
def test_a_fork_works_in_parent_and_child(pending):
    process = run_python(f"""
        import os
        import hybridnet as mx
        x = mx.nd.ones((400, 400))
        if {pending}:
            for _ in range(20):
                x = mx.nd.dot(x, x) * 0 + 1
        pid = os.fork()
        total = mx.nd.dot(x, x).sum().asscalar()
        assert total == 400.0 ** 3, total
        if pid == 0:
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        assert status == 0, status
        print("done")
    """)
    out, err = process.communicate(timeout=60)
    assert out == "done\n", err
