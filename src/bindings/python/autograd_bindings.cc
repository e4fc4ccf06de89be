// Recording, gradients, and functions whose backward is Python code.
#include "casters.h"
#include "hybridnet/imperative.h"

namespace hybridnet::python {
namespace {

std::vector<NDArray> arrays_from(const py::object& list, const char* what, bool allow_none) {
  std::vector<NDArray> arrays;
  if (list.is_none()) return arrays;
  for (const py::handle item : py::iter(list)) {
    if (item.is_none() && allow_none) arrays.emplace_back();
    else arrays.push_back(expect_array(item.ptr(), what));
  }
  return arrays;
}

// backward(out_grads: list, create_graph: bool) -> list of arrays or None, one per input.
class PythonFunction final : public RecordedFunction {
 public:
  PythonFunction(std::string name, py::object backward, py::object like)
      : name_(std::move(name)), backward_(std::move(backward)), like_(std::move(like)) {}

  ~PythonFunction() override {
    if (!Py_IsInitialized()) {
      backward_.release();
      like_.release();
      return;
    }
    AcquireGil gil;
    backward_ = py::object();
    like_ = py::object();
  }

  std::string name() const override { return name_; }

  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool create_graph) override {
    AcquireGil gil;
    py::list grads;
    for (const NDArray& grad : out_grads) grads.append(wrap_like(grad, like_));
    const py::object result = backward_(grads, create_graph);
    return arrays_from(result, "gradient", true);
  }

 private:
  std::string name_;
  py::object backward_, like_;
};

void bind_state(py::module_& m) {
  m.def("is_recording", [] { return autograd_state().recording; });
  m.def("is_training", [] {
    if (TraceState& trace = trace_state(); trace.active) trace.reads |= kReadTraining;
    return autograd_state().training;
  });
  m.def("set_recording", [](bool on) { return std::exchange(autograd_state().recording, on); }, "Returns what it was.");
  m.def("set_training", [](bool on) { return std::exchange(autograd_state().training, on); }, "Returns what it was.");
}

void bind_gradients(py::module_& m) {
  m.def("mark_variable", [](const py::object& a, const NDArray& grad, const std::string& req) {
    mark_variable(expect_array(a.ptr(), "array"), grad, grad_req_from_name(req));
  });
  m.def("drop_grad", [](const py::object& a) { drop_grad(expect_array(a.ptr(), "array")); });
  m.def("grad_req", [](const py::object& a) { return static_cast<int>(grad_req_of(expect_array(a.ptr(), "array"))); });
  m.def("needs_gradient", [](const py::object& a) { return needs_gradient(expect_array(a.ptr(), "array")); });
  m.def("backward", [](const py::object& heads, const py::object& head_grads, bool retain_graph, bool train_mode) {
    const auto h = arrays_from(heads, "heads", false), g = arrays_from(head_grads, "head_grads", true);
    ReleaseGil release(true);
    backward(h, g, retain_graph, train_mode);
  });
  m.def("grad", [](const py::object& heads, const py::object& head_grads, const py::object& variables, bool retain_graph,
                   bool create_graph, bool train_mode) {
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
  m.def("record_function", [](const std::string& name, const py::object& backward, const py::object& inputs, const py::object& outputs) {
    const auto in = arrays_from(inputs, "inputs", false), out = arrays_from(outputs, "outputs", false);
    if (out.empty()) raise(ErrorKind::kValue, {.op = name, .expected = "at least one output", .given = "none"});
    const auto like = py::reinterpret_borrow<py::object>(*py::iter(outputs));
    record(Ref<RecordedFunction>(new PythonFunction(name, backward, like)), in, out);
  }, "Makes outputs stem from inputs through a step whose gradient is backward(out_grads, create_graph).");
}

}  // namespace

void bind_autograd(py::module_& m) {
  bind_state(m);
  bind_gradients(m);
}

}  // namespace hybridnet::python
