"""The modules of the API pages: page, module, title, group, and a sentence where the module's docstring needs one."""

from __future__ import annotations

from typing import NamedTuple


class Module(NamedTuple):
    """One page of the API. names: the documented names if not all public ones; parts: modules documented below."""

    page: str
    name: str
    group: str
    note: str = ""
    names: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


ARRAYS, NETWORKS, TRAINING, DATA, GRAPHS, TOOLS = (
    "Arrays",
    "Networks",
    "Training",
    "Data",
    "Graphs and export",
    "Tools",
)

MODULES = [
    Module("nd", "nd", ARRAYS, parts=("nd.random", "nd.linalg", "nd.contrib", "nd.image", "nd.sparse")),
    Module("np", "np", ARRAYS, parts=("np.linalg", "np.random")),
    Module("npx", "npx", ARRAYS, parts=("npx.random", "npx.image")),
    Module(
        "sym",
        "sym",
        ARRAYS,
        "`mx.sym` has the same [operators](operators/index.md) as `mx.nd`, under the same names: given Symbols they "
        "make nodes of a graph instead of computing. Functions that make arrays from values (`nd.array`) do not exist "
        "here; `sym.var` makes an input of the graph.",
        parts=("sym.random", "sym.linalg", "sym.contrib"),
    ),
    Module("autograd", "autograd", ARRAYS),
    Module("context", "context", ARRAYS),
    Module("random", "random", ARRAYS),
    Module("gluon", "gluon", NETWORKS),
    Module("gluon-utils", "gluon.utils", NETWORKS),
    Module("gluon-nn", "gluon.nn", NETWORKS),
    Module("gluon-rnn", "gluon.rnn", NETWORKS),
    Module("gluon-loss", "gluon.loss", NETWORKS),
    Module("gluon-model-zoo", "gluon.model_zoo.vision", NETWORKS),
    Module("gluon-contrib", "gluon.contrib.nn", NETWORKS, parts=("gluon.contrib.rnn", "gluon.contrib.cnn")),
    Module("initializer", "init", NETWORKS, "`mx.init` and `mx.initializer` are one module."),
    Module("optimizer", "optimizer", TRAINING),
    Module("lr-scheduler", "lr_scheduler", TRAINING),
    Module("metric", "metric", TRAINING),
    Module("gluon-estimator", "gluon.contrib.estimator", TRAINING),
    Module("module", "mod", TRAINING, "`mx.mod` and `mx.module` are one module."),
    Module("callback", "callback", TRAINING),
    Module("kvstore", "kv", TRAINING, "`mx.kv` and `mx.kvstore` are one module."),
    Module("amp", "contrib.amp", TRAINING),
    Module("gluon-data", "gluon.data", DATA),
    Module("gluon-data-vision", "gluon.data.vision", DATA, parts=("gluon.data.vision.transforms",)),
    Module("gluon-data-batchify", "gluon.data.batchify", DATA),
    Module("io", "io", DATA),
    Module("recordio", "recordio", DATA),
    Module("image", "image", DATA),
    Module("text", "contrib.text", DATA, parts=("contrib.text.vocab", "contrib.text.embedding", "contrib.text.utils")),
    Module("function", "", GRAPHS, names=("function", "shared", "In", "Out", "Function", "SharedVariable")),
    Module("jit", "jit", GRAPHS),
    Module("control-flow", "contrib", GRAPHS),
    Module(
        "autograph",
        "autograph",
        GRAPHS,
        names=("check", "range", "max_iterations", "shape_invariants", "skip", "to_code", "set_verbosity"),
    ),
    Module("rewrite", "rewrite", GRAPHS),
    Module("onnx", "onnx", GRAPHS),
    Module("quantization", "contrib.quantization", GRAPHS),
    Module("operator", "operator", GRAPHS),
    Module("library", "library", GRAPHS),
    Module("serving", "serving", GRAPHS),
    Module("profiler", "profiler", TOOLS),
    Module("visualization", "viz", TOOLS, "`mx.viz` and `mx.visualization` are one module."),
    Module("test-utils", "test_utils", TOOLS),
    Module("runtime", "runtime", TOOLS),
    Module("errors", "errors", TOOLS, "[Errors](../errors/README.md) has a page for each class."),
]
