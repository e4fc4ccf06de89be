"""Operators and rules of shared objects: mx.library.load.

test_library.py runs this file in a separate process: loaded operators stay until the process ends, and tests of all
operators would include them.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, libinfo, nd

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
EXAMPLE = REPOSITORY / "examples/operator_library/operators.c"
_NAMES = (os.environ.get("CC"), "cc", "gcc", "clang")
COMPILER = next((found for name in _NAMES if name and (found := shutil.which(name))), None)


def compiled(source: str | pathlib.Path, folder: pathlib.Path, name: str = "liboperators.so") -> pathlib.Path:
    """Compiles a C source, given as a file or as text, to a shared object."""
    if isinstance(source, str):
        file = folder / f"{name}.c"
        file.write_text(source)
    else:
        file = source
    target = folder / name
    command = [
        str(COMPILER),
        "-std=c11",
        "-Wall",
        "-Werror",
        "-O1",
        "-shared",
        "-fPIC",
        "-I",
        include_folder(),
        str(file),
    ]
    subprocess.run([*command, "-o", str(target)], check=True)
    return target


def include_folder() -> str:
    """The folder of hybridnet/c_api.h: in an installed package or in the source tree."""
    return libinfo.find_include_path()


def declaring(*operators: str) -> str:
    """Returns the source of a library with these operators; each is a text of assignments to fields of `op`."""
    body = "\n".join(
        f"  {{ HnOperator op = {{sizeof(HnOperator)}}; op.num_inputs = op.num_outputs = 1; op.forward = run; {fields};"
        " if (register_operator(&op)) return 7; }"
        for fields in operators
    )
    return (
        textwrap.dedent(
            """
        #include <hybridnet/c_api.h>
        static const char* run(const HnOperatorCall* call) { (void)call; return "it always fails"; }
        static const char* bad_infer(const HnParameterValue* p, size_t n, const HnTensor* in, size_t m,
                                     HnTensorSpec* out) {
          (void)p; (void)n; (void)in; (void)m; out[0].ndim = 1; out[0].shape[0] = -5; return NULL;
        }
        int hn_library_init(HnRegisterOperator register_operator) {
          (void)run; (void)bad_infer;
        %s
          return 0;
        }
        """
        )
        % body
    )


def ruling(rule: str, fields: str = "", before: str = "") -> str:
    """Returns the source of a library with one rule: the body of its function, and assignments to fields of `rule`."""
    return f"""
        #include <hybridnet/c_api.h>
        #include <string.h>
        {before}
        static const char* rewrite(const HnGraphFunctions* g, HnGraph graph, HnValue value) {{ {rule} }}
        int hn_library_init_rules(HnRegisterRule register_rule) {{
          static const char* const ops[] = {{"exp"}};
          HnRule rule = {{sizeof(HnRule)}};
          (void)rewrite; (void)ops;
          rule.name = "rule_in_c"; rule.ops = ops; rule.num_ops = 1; rule.stage = "canonicalize";
          rule.rewrite = rewrite; rule.exactness = HN_UNSAFE - 1;
          {fields}
          return register_rule(&rule);
        }}
    """


@contextlib.contextmanager
def loaded(source: str, folder: pathlib.Path):
    """Loads a library with the rule rule_in_c, and unregisters the rule at the end."""
    mx.library.load(compiled(source, folder), verbose=False)
    try:
        yield
    finally:
        mx.rewrite.unregister("rule_in_c")


@pytest.fixture(scope="module", autouse=True)
def example(tmp_path_factory):
    """The library of examples/operator_library, loaded."""
    path = compiled(EXAMPLE, tmp_path_factory.mktemp("library"))
    mx.library.load(str(path), verbose=False)
    return path


def test_operators_of_a_library_compute_and_differentiate():
    x = nd.array([[1.0, -2.0], [3.0, 0.5]])
    x.attach_grad()
    with autograd.record():
        y = nd.scaled_square(x, scale=3)
        z = (y * nd.array([1.0, 2.0])).sum()
    z.backward()
    np.testing.assert_allclose(y.asnumpy(), 3 * x.asnumpy() ** 2, rtol=1e-6)
    np.testing.assert_allclose(x.grad.asnumpy(), 6 * x.asnumpy() * [1, 2], rtol=1e-6)
    low, high = nd.row_extremes(x, absolute=True)
    np.testing.assert_array_equal(low.asnumpy(), [1, 0.5])
    np.testing.assert_array_equal(high.asnumpy(), [2, 3])
    assert "row_extremes" in mx.operator.get_all_registered_operators()
    assert "scale" in nd.scaled_square.__doc__


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), (1,), (4, 5, 6), (100_000,)])
def test_sizes_of_all_kinds(shape):
    x = nd.array(np.random.default_rng(0).normal(size=shape))
    np.testing.assert_allclose(nd.scaled_square(x).asnumpy(), x.asnumpy() ** 2, rtol=1e-6)
    part = x.reshape((-1,))[1:3] if x.size > 2 else x
    np.testing.assert_allclose(nd.scaled_square(part).asnumpy(), part.asnumpy() ** 2, rtol=1e-6)


class Net(gluon.HybridBlock):
    """Dense layers around an operator of the library, which is also inside a loop."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.first = gluon.nn.Dense(8, in_units=4)
            self.last = gluon.nn.Dense(3, in_units=8)

    def hybrid_forward(self, F, x):
        h = F.scaled_square(self.first(x), scale=0.5)
        _, total = F.contrib.foreach(lambda row, s: (row, s + F.scaled_square(row)), h, F.zeros_like(F.sum(h, axis=0)))
        return F.broadcast_add(self.last(h), F.sum(total))


def test_hybridized_as_imperative_and_through_files(tmp_path, example):
    net = Net()
    net.initialize(mx.init.Xavier())
    x = nd.random.normal(shape=(5, 4))

    def run():
        with autograd.record():
            y = net(x)
        y.backward()
        return [y, *(p.grad() for p in net.collect_params().values())]

    expected = [a.asnumpy() for a in run()]
    net.hybridize()
    for found, wanted in zip(run(), expected):
        np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-5, atol=1e-6)
    net(x)
    net.export(str(tmp_path / "net"))
    loaded = gluon.SymbolBlock.imports(f"{tmp_path}/net-symbol.json", ["data"], f"{tmp_path}/net-0000.params")
    np.testing.assert_allclose(loaded(x).asnumpy(), expected[0], rtol=1e-5, atol=1e-6)
    code = (
        f"import hybridnet as mx\nfrom hybridnet import gluon\n"
        f"try:\n    gluon.SymbolBlock.imports('{tmp_path}/net-symbol.json', ['data'], '{tmp_path}/net-0000.params')\n"
        f"except mx.errors.HybridNetError as error:\n    assert 'scaled_square' in str(error)\n"
        f"else:\n    raise SystemExit('loaded without the library')\n"
        f"mx.library.load({str(example)!r})\n"
        f"gluon.SymbolBlock.imports('{tmp_path}/net-symbol.json', ['data'], '{tmp_path}/net-0000.params')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "scaled_square, row_extremes" in done.stdout


def test_symbols_know_the_operators_and_infer():
    x = mx.sym.var("x")
    s = mx.sym.row_extremes(mx.sym.scaled_square(x, scale=2, name="square"), name="rows")
    assert s.list_outputs() == ["rows_low", "rows_high"]
    _, outputs, _ = s.infer_shape(x=(3, 4))
    assert outputs == [(3,), (3,)]


def test_errors_name_the_fault_of_a_call():
    with pytest.raises(mx.errors.HybridNetError, match=r"row_extremes.*\n?.*data must have two axes"):
        nd.row_extremes(nd.ones((2, 3, 4)))
    with pytest.raises(mx.errors.HybridNetError, match="every input must be float32"):
        nd.scaled_square(nd.ones((2,), dtype="float64"))
    with pytest.raises(mx.errors.ParamError, match="scale"):
        nd.scaled_square(nd.ones((2,)), scale="wide")
    with pytest.raises((mx.errors.ParamError, TypeError), match="scales"):
        nd.scaled_square(nd.ones((2,)), scales=1)
    x = nd.ones((2, 2))
    x.attach_grad()
    with autograd.record():
        low, _ = nd.row_extremes(x)
    with pytest.raises(mx.errors.GradientError, match="declares no gradient"):
        low.backward()


def test_a_failing_function_is_an_error_at_the_array(tmp_path):
    path = compiled(declaring('op.name = "always_fails"', 'op.name = "odd_infer"; op.infer = bad_infer'), tmp_path)
    mx.library.load(path, verbose=False)
    with pytest.raises(mx.errors.HybridNetError, match=r"always_fails.*\n?.*it always fails"):
        nd.always_fails(nd.ones((2,))).asnumpy()
    with pytest.raises(mx.errors.ShapeError, match="size -5"):
        nd.odd_infer(nd.ones((2,)))
    np.testing.assert_array_equal(nd.scaled_square(nd.ones((2,))).asnumpy(), [1, 1])


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ('op.name = "relu"', "already"),
        ('op.name = "1st"', "letters, digits"),
        ("", "letters, digits"),
        ('op.name = "no_forward"; op.forward = NULL', "forward"),
        ('op.name = "no_inputs"; op.num_inputs = 0', "1 to 32"),
        ('op.name = "old"; op.struct_size = 8', "struct_size"),
        (
            'op.name = "odd"; static const HnParameter p[] = {{"n", 0, 9, 0}}; op.parameters = p;'
            " op.num_parameters = 1",
            "Kind",
        ),
        (
            'op.name = "odd"; static const HnParameter p[] = {{"n", 0, HN_INTEGER, "many"}}; op.parameters = p;'
            " op.num_parameters = 1",
            "an int",
        ),
    ],
)
def test_a_wrong_declaration_registers_nothing(tmp_path, fields, says):
    path = compiled(declaring('op.name = "good_one"', fields), tmp_path)
    with pytest.raises(mx.errors.HybridNetError, match=says):
        mx.library.load(path, verbose=False)
    assert not hasattr(nd, "good_one")


def test_a_library_that_overlooks_a_failed_declaration_registers_nothing(tmp_path):
    fields = 'op.name = "good_one"', 'op.name = "relu"; op.forward = NULL'
    source = declaring(*fields).replace("if (register_operator(&op)) return 7;", "register_operator(&op);")
    with pytest.raises(mx.errors.ParamError, match="forward"):
        mx.library.load(compiled(source, tmp_path), verbose=False)
    assert not hasattr(nd, "good_one")


def test_other_files_are_refused_as_operator_libraries(tmp_path, example):
    with pytest.raises(mx.errors.FileError, match="cannot load"):
        mx.library.load(tmp_path / "missing.so")
    text = tmp_path / "text.so"
    text.write_text("no library")
    with pytest.raises(mx.errors.FileError, match="cannot load"):
        mx.library.load(text)
    other = compiled("int other(void) { return 0; }", tmp_path, "libother.so")
    with pytest.raises(mx.errors.FileError, match="neither hn_library_init nor hn_library_init_rules"):
        mx.library.load(other)
    with pytest.raises(TypeError, match="path"):
        mx.library.load(3)
    with pytest.raises(mx.errors.ParamError, match="'use_scaled_square'': its name is taken"):
        mx.library.load(example)


def test_programs_without_python_load_it_too(example):
    """A process without Python's package loads it through the C function hn_library_load."""
    code = f"""if True:
        import ctypes
        core = ctypes.CDLL({libinfo.find_lib_path()[0]!r})
        core.hn_last_error.restype = core.hn_last_error_kind.restype = ctypes.c_char_p
        assert core.hn_library_load({str(example)!r}.encode()) == 0, core.hn_last_error()
        assert core.hn_library_load({str(example)!r}.encode()) == -1
        assert b"name is taken" in core.hn_last_error(), core.hn_last_error()
        assert core.hn_library_load(b"missing.so") == -1
        assert core.hn_last_error_kind() == b"FileError", core.hn_last_error_kind()
        assert core.hn_library_load(None) == -1
        assert core.hn_operator_register(None) == -1
        assert b"NULL" in core.hn_last_error()
        nodes = ['{{"op": "null", "name": "x", "inputs": []}}',
                 '{{"op": "scaled_square", "name": "y", "attrs": {{"scale": "2"}}, "inputs": [[0, 0, 0]]}}']
        graph = ('{{"nodes": [' + ",".join(nodes) + '], "arg_nodes": [0], "heads": [[1, 0, 0]]}}').encode()
        model = ctypes.c_void_p()
        assert core.hn_model_load_from_memory(graph, ctypes.c_size_t(len(graph)), None, ctypes.c_size_t(0),
                                              ctypes.byref(model)) == 0, core.hn_last_error()
        x, y = ctypes.c_void_p(), ctypes.c_void_p()
        data, shape = (ctypes.c_float * 3)(1, 2, 3), (ctypes.c_int64 * 1)(3)
        assert core.hn_array_create(shape, 1, 0, data, ctypes.byref(x)) == 0
        assert core.hn_model_run(model, ctypes.c_size_t(1), ctypes.byref(x), ctypes.c_size_t(1), ctypes.byref(y)) == 0
        found = (ctypes.c_float * 3)()
        assert core.hn_array_copy_to(y, found, ctypes.c_size_t(12)) == 0, core.hn_last_error()
        assert list(found) == [2, 8, 18], list(found)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_load_prints_the_loaded_operators(tmp_path, capsys):
    mx.library.load(compiled(declaring('op.name = "printed_name"'), tmp_path))
    assert "operators printed_name" in capsys.readouterr().out


# ---- rules


class Squares(gluon.HybridBlock):
    """Computes 3 square(x), and squares in a loop and in a branch."""

    def hybrid_forward(self, F, x):
        rows, _ = F.contrib.foreach(lambda row, state: (F.square(row) * 2 + state, state), x, x[0] * 0)
        both = F.contrib.cond(F.sum(x) > -1e9, lambda: F.square(x) * 5, lambda: x)
        return F.square(x) * 3 + rows + both


def test_a_rule_of_a_library_rewrites_graphs_bodies_and_backward():
    assert any(row["name"] == "use_scaled_square" for row in mx.rewrite.rows())
    x = nd.array([[1.0, -2.0], [0.5, 3.0]])
    net = Squares()
    net.hybridize()
    x.attach_grad()
    with autograd.record():
        y = net(x)
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), 10 * x.asnumpy() ** 2, rtol=1e-6)
    np.testing.assert_allclose(x.grad.asnumpy(), 20 * x.asnumpy(), rtol=1e-6)
    assert "use_scaled_square" in net.pass_report()
    assert "scaled_square" in net.plan_text()
    plain = Squares()
    plain.hybridize(exclude=["use_scaled_square"])
    np.testing.assert_allclose(plain(x).asnumpy(), y.asnumpy(), rtol=1e-6)
    assert "scaled_square" not in plain.plan_text()


def test_a_rule_sees_parameters_shapes_constants_and_makes_nodes(tmp_path):
    rule = """
        HnTensorSpec spec;
        HnTensor array;
        const HnValue input = g->input(graph, value, 0);
        if (strcmp(g->op(graph, input), "sum") != 0) return NULL;
        if (!g->attribute(graph, input, "keepdims")) return "attribute";
        if (g->attribute(graph, input, "no_such") != NULL) return "no such attribute";
        if (g->num_inputs(graph, input) != 1 || g->num_outputs(graph, input) != 1) return "counts";
        if (g->output(graph, input, 0) != input || !*g->name(graph, input)) return "output or name";
        if (g->spec(graph, input, &spec) || spec.ndim != 1 || spec.shape[0] != 1) return "spec";
        if (g->constant(graph, input, &array) || g->train(graph)) return "constant or train";
        const HnValue two[2] = {g->input(graph, input, 0), g->input(graph, input, 0)};
        const char *names[2] = {"axis", "keepdims"}, *texts[2] = {"()", "False"};
        const HnValue all = g->add(graph, "mul", 2, two, 0, 0, 0);
        g->replace(graph, value, g->add(graph, "sum", 1, &all, 2, names, texts));
        return NULL;
    """
    with loaded(ruling(rule), tmp_path):
        x = mx.sym.var("x")
        f = mx.function([x], mx.sym.exp(mx.sym.sum(x)))
        assert f(nd.array([1.0, 2.0, 3.0])).asscalar() == 14
        assert "rule_in_c" in f.pass_report()
    assert not any(row["name"].startswith("rule_in_c") for row in mx.rewrite.rows())


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ('return "it has a headache";', "it has a headache"),
        ("g->input(graph, value, 9); return NULL;", "expected a number from 0 and below 1, got 9"),
        ("g->op(graph, 77); return NULL;", "expected a value that this graph has given, got 77"),
        ("g->name(graph, -1); return NULL;", "a value that this graph has given, got -1"),
        ('g->add(graph, "no_such_operator", 1, &value, 0, 0, 0); return NULL;', "no_such_operator"),
        ('g->add(graph, "sin", 0, 0, 0, 0, 0); return NULL;', "expected 1 inputs, got 0"),
        ('g->add(graph, "sum", 1, &value, 1, 0, 0); return NULL;', "names"),
        ("g->add(graph, 0, 1, &value, 0, 0, 0); return NULL;", "'op': expected text, got NULL"),
        ("g->spec(graph, value, 0); return NULL;", "out"),
        ("g->constant(graph, value, 0); return NULL;", "out"),
        (
            'const HnValue s = g->add(graph, "sum", 1, &value, 0, 0, 0); g->replace(graph, value, s); return NULL;',
            "shape|spec",
        ),
        (
            'const HnValue s = g->add(graph, "sin", 1, &value, 0, 0, 0);'
            "g->replace(graph, g->input(graph, value, 0), s); return NULL;",
            "cycle|before",
        ),
    ],
)
def test_a_rule_that_goes_wrong_is_named_and_undone(tmp_path, capfd, rule, says):
    x = mx.sym.var("x")
    with loaded(ruling(rule), tmp_path):
        result = mx.function([x], mx.sym.exp(mx.sym.sin(x)))(nd.array([1.0, 2.0]))
    assert re.search(f"rewrite 'rule_in_c'(?s:.)*({says})", capfd.readouterr().err)
    np.testing.assert_allclose(result.asnumpy(), np.exp(np.sin([1.0, 2.0])), rtol=1e-6)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ("rule.struct_size = 8;", "struct_size"),
        ("rule.name = 0;", "name"),
        ('rule.name = "use_scaled_square";', "use_scaled_square"),
        ("rule.rewrite = 0;", "rewrite': expected a function"),
        ("rule.exactness = 9;", "HnExactness"),
        ("rule.ops = 0;", "ops': expected 1 names"),
        ('static const char* const bad[] = {"expp"}; rule.ops = bad;', "expp"),
        ('rule.stage = "canonicalise";', "canonicalize"),
        ("rule.stage = 0; rule.position = 100;", "position"),
        ("rule.stage = 0; rule.position = 0.0 / 0.0;", "position"),
    ],
)
def test_a_wrong_declaration_of_a_rule_adds_nothing(tmp_path, fields, says):
    before = mx.rewrite.generation()
    with pytest.raises(mx.errors.HybridNetError, match=says):
        mx.library.load(compiled(ruling("return NULL;", fields), tmp_path), verbose=False)
    assert mx.rewrite.generation() == before


def test_rules_and_operators_of_a_library_come_together_or_not_at_all(tmp_path):
    bad_rule = ruling("return NULL;", "rule.rewrite = 0;")
    both = declaring('op.name = "comes_with_a_rule"') + bad_rule.replace("#include <hybridnet/c_api.h>", "")
    with pytest.raises(mx.errors.ParamError, match="hn_library_init_rules returned"):
        mx.library.load(compiled(both, tmp_path), verbose=False)
    assert not hasattr(nd, "comes_with_a_rule")
    bad_operator = declaring('op.name = "relu"') + ruling("return NULL;").replace("#include <hybridnet/c_api.h>", "")
    with pytest.raises(mx.errors.ParamError, match="relu"):
        mx.library.load(compiled(bad_operator, tmp_path, "libother.so"), verbose=False)
    assert not any(row["name"] == "rule_in_c" for row in mx.rewrite.rows())


def test_a_wrong_rule_in_c_is_named_by_debug(tmp_path, capfd):
    wrong = 'g->replace(graph, value, g->add(graph, "cos", 1, &value, 0, 0, 0)); return NULL;'
    once = 'if (strcmp(g->op(graph, g->input(graph, value, 0)), "sin")) return NULL;'
    with loaded(ruling(once + wrong.replace("&value", "&(HnValue){g->input(graph, value, 0)}")), tmp_path):
        x = mx.sym.var("x")
        result = mx.function([x], mx.sym.exp(mx.sym.sin(x)), passes="debug")(nd.array([1.0]))
    assert "rewrite 'rule_in_c' failed" in capfd.readouterr().err
    np.testing.assert_allclose(result.asnumpy(), np.exp(np.sin([1.0])), rtol=1e-6)


def test_programs_without_python_take_rules_out_again(tmp_path):
    path = compiled(ruling("return NULL;"), tmp_path)
    code = f"""if True:
        import ctypes
        core = ctypes.CDLL({libinfo.find_lib_path()[0]!r})
        core.hn_last_error.restype = ctypes.c_char_p
        assert core.hn_library_load({str(path)!r}.encode()) == 0, core.hn_last_error()
        assert core.hn_rule_unregister(b"rule_in_c") == 0, core.hn_last_error()
        assert core.hn_rule_unregister(b"rule_in_c") == -1
        assert b"rule_in_c" in core.hn_last_error()
        assert core.hn_rule_unregister(None) == -1 and core.hn_rule_register(None) == -1
        assert b"NULL" in core.hn_last_error()
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
