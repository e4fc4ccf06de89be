"""Entries of the gallery: example programs and the scripts that draw their pictures."""

from __future__ import annotations

from typing import Any, NamedTuple


class Entry(NamedTuple):
    """One page of the gallery."""

    page: str
    group: str
    sources: tuple[str, ...]  # paths from the root; the docstring of the first is the text
    drawing: str = ""  # module of tools/docs/pictures
    pictures: tuple[str, ...] = ()
    title: str = ""  # title and text: only if the source is not in Python
    text: str = ""
    command: str = ""
    guides: tuple[str, ...] = ()


FIRST, LOOPS, GRAPHS, OUTSIDE, PICTURES = (
    "Training",
    "Loops and branches",
    "Graphs and rewriting",
    "Other languages and formats",
    "Arrays, gradients, data",
)


def pictured(name: str) -> dict[str, Any]:
    """The fields of an entry with one picture, which the module of this name draws."""
    return {"drawing": name, "pictures": (f"{name}.svg",)}


def example(name: str, group: str, **parts: object) -> Entry:
    page = name.removesuffix(".py").replace("_", "-")
    return Entry(page, group, (f"examples/{name}",), command=f"python examples/{name}", **parts)  # type: ignore[arg-type]


def drawn(name: str, **parts: object) -> Entry:
    """An entry whose program is the script of its picture."""
    source = f"tools/docs/pictures/{name}.py"
    return Entry(name.replace("_", "-"), PICTURES, (source, "tools/docs/pictures/plot.py"), name, (f"{name}.svg",),
                 command=f"python {source}", **parts)  # type: ignore[arg-type]  # fmt: skip


ENTRIES = [
    example(
        "demo.py", FIRST, drawing="digits_training", pictures=("digits_training.svg", "digits_answers.svg"),
        guides=("course/02-a-net-and-its-training.md", "deploy-cpp.md"),
    ),
    example(
        "train_step.py", FIRST, drawing="step_memory", pictures=("step_losses.svg", "step_memory.svg"),
        guides=("functions.md",),
    ),
    example("train_distributed.py", FIRST, guides=("distributed.md",), **pictured("group_bytes"))._replace(
        sources=("examples/train_distributed.py", "examples/ray_train.py")
    ),
    example("amp_training.py", FIRST, guides=("precision.md",), **pictured("precision_losses")),
    example("lstm_foreach.py", LOOPS, guides=("control-flow.md",), **pictured("language_model")),
    example("lstm_plain.py", LOOPS, guides=("python-control-flow.md",), **pictured("plain_losses")),
    example("beam_search_while.py", LOOPS, guides=("control-flow.md",), **pictured("beam_words")),
    example("beam_search_plain.py", LOOPS, guides=("python-control-flow.md",), **pictured("beam_width")),
    example("ode_while.py", LOOPS, guides=("control-flow.md",), **pictured("ode_steps")),
    example("ode_plain.py", LOOPS, guides=("python-control-flow.md",), **pictured("ode_tries")),
    example("early_exit_cond.py", LOOPS, guides=("control-flow.md",), **pictured("early_exit_cost")),
    example("early_exit_plain.py", LOOPS, guides=("python-control-flow.md",), **pictured("early_exit_images")),
    example("scan_programs.py", LOOPS, guides=("scan.md",), **pictured("gibbs_sampler")),
    example("rewrite_cancel.py", GRAPHS, guides=("rewriting.md",), **pictured("cancel_graphs")),
    example("rewrite_loop_body.py", GRAPHS, guides=("rewriting.md",), **pictured("loop_body_graphs")),
    example("rewrite_partition_gcc.py", GRAPHS, guides=("rewriting.md",), **pictured("partition_graphs")),
    example("onnx_roundtrip.py", OUTSIDE, guides=("onnx.md",), **pictured("onnx_scores")),
    example("tune_onnx.py", OUTSIDE, guides=("onnx.md",), **pictured("onnx_tuning")),
    Entry(
        "export-to-cpp", OUTSIDE, ("examples/export_to_cpp/main.cc", "examples/export_to_cpp/CMakeLists.txt"),
        title="An exported net in C++",
        text="Loads `digits-symbol.json` and `digits-0000.params`, which `examples/demo.py` writes, classifies the "
        "test images and compares the scores with Python's. The program links `libhybridnet.so` and needs no Python.",
        command="tools/dev demo", guides=("deploy-cpp.md",), **pictured("cpp_answers"),
    ),
    Entry(
        "cpp-superbuild", OUTSIDE, ("examples/cpp_superbuild/CMakeLists.txt", "examples/cpp_superbuild/app/main.cc",
                                    "examples/cpp_superbuild/app/CMakeLists.txt"),
        title="A CMake project with HybridNet inside",
        text="Builds a program together with the archive that `tools/dev package` makes: CMake unpacks HybridNet into "
        "the build folder, and the program finds it by `find_package(hybridnet)`. No step needs Python.",
        command="tools/dev package\ncmake -S examples/cpp_superbuild -B build/superbuild "
        "-DHYBRIDNET_ARCHIVE=$(echo $PWD/dist/hybridnet-*.tar.gz)\ncmake --build build/superbuild && "
        "build/superbuild/app/fit_line",
        guides=("deploy-cpp.md",), **pictured("cpp_line"),
    ),
    Entry(
        "export-to-java", OUTSIDE,
        ("examples/export_to_java/export.py", "examples/export_to_java/Classify.java",
         "examples/export_to_java/Decode.java", "examples/export_to_java/Serve.java"),
        title="Exported models in Java",
        text="A classifier of digits, a beam search in one graph, and a server of predictions over HTTP: three "
        "programs in Java that run models exported from Python, and need no Python.",
        command="tools/dev jar  # then as examples/export_to_java/README.md says", guides=("deploy-java.md",),
        **pictured("java_words"),
    ),
    Entry(
        "operator-library", OUTSIDE, ("examples/operator_library/operators.c",),
        title="Operators and a rewrite rule in C",
        text="A library with two operators, their gradients and a rule of the graph compiler, built outside of the "
        "tree and loaded by `mx.library.load`.",
        command='cc -O2 -shared -fPIC -I "$(python -m hybridnet.libinfo --include)" '
        "examples/operator_library/operators.c -o liboperators.so",
        drawing="c_operators", pictures=("c_operators.svg", "c_rule.svg"), guides=("operator-libraries.md",),
    ),
    drawn("graph_drawing", guides=("rewriting.md", "debugging.md")),
    drawn("activations", guides=("api/autograd.md",)),
    drawn("initializers", guides=("api/initializer.md",)),
    drawn("schedules", guides=("api/lr-scheduler.md",)),
    drawn("optimizer_paths", guides=("api/optimizer.md",)),
    drawn("quantization", guides=("quantization.md",)),
    drawn("augmentation", guides=("api/gluon-data-vision.md",)),
]  # fmt: skip
