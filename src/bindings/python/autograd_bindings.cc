// Recording, gradients, and functions whose backward is Python code.
#include "casters.h"
#include "hybridnet/imperative.h"
#include "imperative/tape.h"
#include "imperative/tape_symbol.h"
#include "traced_modes.h"

namespace hybridnet::python {
namespace {

std::vector<NDArray> arrays_from(const py::object& list, const char* what, bool allow_none) {
  std::vector<NDArray> arrays;
  if (list.is_none()) return arrays;
  for (const py::handle item : py::iter(list)) {
    if (item.is_none() && allow_none)
      arrays.emplace_back();
    else
      arrays.push_back(expect_array(item.ptr(), what));
  }
  return arrays;
}

// backward(out_grads: list, create_graph: bool, recorded) -> list of arrays or None, one per input. recorded(array, i)
// returns the array as output i of this step, so that gradients of gradients pass through saved outputs; `recorded` is
// None unless create_graph.
class PythonFunction final : public RecordedFunction {
 public:
  PythonFunction(std::string name, py::object backward, ArrayClass& array_class)
      : name_(std::move(name)), backward_(std::move(backward)), array_class_(array_class) {}

  ~PythonFunction() override {
    if (!Py_IsInitialized()) {
      backward_.release();
      return;
    }
    AcquireGil gil;
    backward_ = py::object();
  }

  std::string name() const override { return name_; }

  // Sets the step on the tape that owns this function.
  void set_node(TapeNode* node) { node_ = node; }

  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool create_graph) override {
    AcquireGil gil;
    py::list grads;
    for (const NDArray& grad : out_grads) grads.append(wrapped(grad));
    py::object recorded = py::none();
    if (create_graph && node_ != nullptr)
      recorded = py::cpp_function([this, node = Ref<TapeNode>(node_)](const NDArray& array, uint32_t index) {
        NDArray output = array.detached();
        output.impl()->tape = Ref<TapeInfo>(make_mark(node, index).get());
        return wrapped(output);
      });
    const py::object result = backward_(grads, create_graph, recorded);
    return arrays_from(result, "gradient", true);
  }

 private:
  py::object wrapped(const NDArray& array) const {
    if (!array) return py::none();
    PyObject* object = wrap_array(array, array_class_);
    if (object == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(object);
  }

  std::string name_;
  py::object backward_;
  ArrayClass& array_class_;
  TapeNode* node_ = nullptr;
};

void bind_state(py::module_& m) {
  m.def("is_recording", [] { return autograd_state().recording; });
  m.def(
      "asked_recording",
      [] {
        TraceState& trace = trace_state();
        if (!trace.active) return autograd_state().recording;
        trace.reads |= kReadRecording;
        return autograd_state().recording || (trace.recording && !trace.scopes.paused);
      },
      "Whether the thread records; inside a traced block, whether the caller of the block records.");
  m.def("is_training", [] {
    if (TraceState& trace = trace_state(); trace.active) trace.reads |= kReadTraining;
    return autograd_state().training;
  });
  m.def("enter_mode", &enter_mode,
        "Sets recording and training (0, 1, or -1: as it is). Returns the modes from before, for leave_mode.");
  m.def("leave_mode", &leave_mode, "Restores the modes that enter_mode returned.");
  m.def(
      "set_recording", [](bool on) { return std::exchange(autograd_state().recording, on); },
      "Returns the previous value.");
  m.def(
      "set_training", [](bool on) { return std::exchange(autograd_state().training, on); },
      "Returns the previous value.");
}

void bind_gradients(py::module_& m) {
  m.def("mark_variable", [](const py::object& a, const NDArray& grad, const std::string& req) {
    mark_variable(expect_array(a.ptr(), "array"), grad, grad_req_from_name(req));
  });
  m.def("recorded_graph", [](const py::object& a) { return recorded_graph(expect_array(a.ptr(), "x")); });
  m.def("grad_req", [](const py::object& a) { return static_cast<int>(grad_req_of(expect_array(a.ptr(), "array"))); });
  m.def("needs_gradient", [](const py::object& a) { return needs_gradient(expect_array(a.ptr(), "array")); });
  m.def("backward", [](const py::object& heads, const py::object& head_grads, bool retain_graph, bool train_mode) {
    const auto h = arrays_from(heads, "heads", false), g = arrays_from(head_grads, "head_grads", true);
    ReleaseGil release(true);
    backward(h, g, retain_graph, train_mode);
  });
  m.def("grad", [](const py::object& heads, const py::object& head_grads, const py::object& variables,
                   bool retain_graph, bool create_graph, bool train_mode) {
    const auto h = arrays_from(heads, "heads", false), g = arrays_from(head_grads, "head_grads", true),
               v = arrays_from(variables, "variables", false);
    std::vector<NDArray> found;
    {
      ReleaseGil release(true);
      found = grad(h, g, v, retain_graph, create_graph, train_mode);
    }
    py::list result;
    size_t i = 0;
    for (const py::handle variable : py::iter(variables)) result.append(wrap_like(found[i++], variable));
    return result;
  });
  m.def(
      "record_function",
      [](const std::string& name, const py::object& backward, const py::object& inputs, const py::object& outputs) {
        const auto in = arrays_from(inputs, "inputs", false), out = arrays_from(outputs, "outputs", false);
        if (out.empty()) raise(ErrorKind::kValue, {.op = name, .expected = "at least one output", .given = "none"});
        ArrayClass& array_class = result_class((*py::iter(outputs)).ptr());
        Ref<PythonFunction> function(new PythonFunction(name, backward, array_class));
        record(Ref<RecordedFunction>(function.get()), in, out);
        if (TapeMark* mark = mark_of(out[0]);
            mark != nullptr && mark->node && mark->node->function.get() == function.get())
          function->set_node(mark->node.get());
      },
      "Makes outputs stem from inputs through a step whose gradient is backward(out_grads, create_graph, recorded).");
}

}  // namespace

void bind_autograd(py::module_& m) {
  bind_state(m);
  bind_gradients(m);
}

}  // namespace hybridnet::python
