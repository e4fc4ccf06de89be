// Parts of graphs that backends run: mx.rewrite.partition.
#include <pybind11/numpy.h>

#include <memory>

#include "graph_handles.h"
#include "hybridnet/c_api.h"
#include "passes/partition.h"

namespace hybridnet::python {
namespace {

using Callable = std::shared_ptr<const KeptCallable>;

// ---- arrays
py::array numpy_over(const TensorRef& ref, const py::object& owner) {
  const std::vector<py::ssize_t> shape(ref.shape->begin(), ref.shape->end());
  const py::dtype dtype = py::dtype::from_args(py::reinterpret_borrow<py::object>(numpy_type(ref.dtype)));
  if (ref.size() == 0) return py::array(dtype, shape);
  if (owner) {
    py::array view(dtype, shape, {}, ref.data, owner);
    view.attr("setflags")(py::arg("write") = false);
    return view;
  }
  return py::array(dtype, shape, {}, ref.data);  // a copy
}

std::string spec_text(const py::array& array) {
  return py::str(array.attr("shape")).cast<std::string>() + " " + py::str(array.attr("dtype")).cast<std::string>();
}

// Copies the result of a function to the outputs of the instruction.
void copy_results(const py::object& given, std::span<const TensorRef> out, const char* what) {
  py::list results;
  if (py::isinstance<py::list>(given) || py::isinstance<py::tuple>(given))
    results = py::list(given);
  else
    results.append(given);
  if (results.size() != out.size())
    raise(ErrorKind::kValue, {.expected = std::to_string(out.size()) + " " + what,
                              .given = std::to_string(results.size()),
                              .message = "the backend returned another number of arrays"});
  const py::object as_array = py::module_::import("numpy").attr("ascontiguousarray");
  for (size_t i = 0; i < out.size(); ++i) {
    const py::object wanted = py::reinterpret_borrow<py::object>(numpy_type(out[i].dtype));
    const py::array array = py::array::ensure(as_array(results[i]));
    // ascontiguousarray converts a scalar to a vector
    const bool scalar = out[i].shape->ndim() == 0 && array && array.size() == 1;
    bool fits =
        array && (scalar || array.ndim() == out[i].shape->ndim()) && array.dtype().equal(py::dtype::from_args(wanted));
    for (int axis = 0; fits && axis < out[i].shape->ndim(); ++axis) fits = array.shape(axis) == (*out[i].shape)[axis];
    if (!fits)
      raise(ErrorKind::kValue, {.input = std::string(what) + " " + std::to_string(i),
                                .expected = TensorSpec{*out[i].shape, out[i].dtype}.str(),
                                .given = array ? spec_text(array) : short_repr(results[i].ptr()),
                                .message = "the backend returned an array of another shape or dtype"});
    if (out[i].data && array.nbytes() > 0) std::memcpy(out[i].data, array.data(), static_cast<size_t>(array.nbytes()));
  }
}

// ---- parts
[[noreturn]] void fail(const BackendPart::Facts& facts, const std::string& message) {
  throw Error(ErrorKind::kError, {.message = "backend '" + facts.backend + "': " + message});
}

// A part computed by Python functions: forward(*inputs), backward(output gradients, inputs, outputs).
class PythonPart final : public BackendPart {
 public:
  PythonPart(Facts facts, Callable forward, Callable backward, bool views)
      : BackendPart(std::move(facts)), forward_(std::move(forward)), backward_(std::move(backward)), views_(views) {}

  void run(std::span<const TensorRef> in, std::span<const TensorRef> out, bool) override {
    call(
        [&](const py::object& owner) { copy_results(forward_->get()(*py::tuple(arrays(in, owner))), out, "outputs"); });
  }

  void run_gradient(std::span<const TensorRef> in, std::span<const TensorRef> out, bool) override {
    const size_t inputs = facts().in.size(), outputs = facts().out.size();
    call([&](const py::object& owner) {
      copy_results(backward_->get()(arrays(in.first(outputs), owner), arrays(in.subspan(outputs, inputs), owner),
                                    arrays(in.subspan(outputs + inputs), owner)),
                   out, "gradients");
    });
  }

 private:
  static py::list arrays(std::span<const TensorRef> refs, const py::object& owner) {
    py::list list;
    for (const TensorRef& ref : refs) list.append(numpy_over(ref, owner));
    return list;
  }

  template <typename Function>
  void call(const Function& function) const {
    AcquireGil gil;
    try {
      run_rule_code([&] {
        const py::object owner = views_ ? py::object(py::capsule(this, [](void*) {})) : py::object();
        function(owner);
        if (owner && owner.ref_count() > 1)
          raise(ErrorKind::kValue, {.message = "an array that shows the memory of an input was kept beyond the call",
                                    .fix = "copy the array before you keep it, or leave out views=True"});
      });
    } catch (const Error& error) {
      fail(facts(), error.what());
    }
  }

  const Callable forward_, backward_;
  const bool views_;
};

// A part computed by machine code: const char* function(const HnOperatorCall*).
class NativePart final : public BackendPart {
 public:
  using Function = const char* (*)(const HnOperatorCall*);
  NativePart(Facts facts, uintptr_t forward, uintptr_t backward, Callable keep)
      : BackendPart(std::move(facts)),
        forward_(reinterpret_cast<Function>(forward)),    // NOLINT(performance-no-int-to-ptr): Python passes a number
        backward_(reinterpret_cast<Function>(backward)),  // NOLINT(performance-no-int-to-ptr)
        keep_(std::move(keep)) {}

  void run(std::span<const TensorRef> in, std::span<const TensorRef> out, bool train) override {
    call(forward_, in, out, train);
  }
  void run_gradient(std::span<const TensorRef> in, std::span<const TensorRef> out, bool train) override {
    call(backward_, in, out, train);
  }

 private:
  static std::vector<HnTensor> tensors(std::span<const TensorRef> refs) {
    std::vector<HnTensor> list;
    list.reserve(refs.size());
    for (const TensorRef& ref : refs)
      list.push_back({ref.data, ref.shape->begin(), ref.shape->ndim(), static_cast<int>(ref.dtype)});
    return list;
  }

  void call(Function function, std::span<const TensorRef> in, std::span<const TensorRef> out, bool train) const {
    const std::vector<HnTensor> inputs = tensors(in), outputs = tensors(out);
    const HnOperatorCall arguments{nullptr,        inputs.size(),  inputs.data(),
                                   outputs.size(), outputs.data(), train ? 1 : 0};
    if (const char* wrong = function(&arguments)) fail(facts(), wrong);
  }

  const Function forward_, backward_;
  const Callable keep_;  // the owner of the code
};

// ---- the rewrite
Partition::Supports supports_of(const Callable& function, const AccessPtr& access) {
  return [function, access](Graph&, Node& node) {
    return run_rule_code([&] {
      const py::object answer = function->get()(NodeHandle{access, NodePtr(&node)});
      const int truth = PyObject_IsTrue(answer.ptr());
      if (truth < 0) throw py::error_already_set();
      return truth != 0;
    });
  };
}

// make(graph) -> None | ("python", forward, backward or None, views) | ("native", address, address or 0, owner of both)
Partition::Make make_of(const Callable& function) {
  return [function](Graph part, BackendPart::Facts facts) {
    return run_rule_code([&]() -> Ref<BackendPart> {
      const py::object made = function->get()(owned_handle(std::move(part)));
      if (made.is_none()) return {};
      const auto parts = py::reinterpret_borrow<py::tuple>(made);
      facts.native = parts[0].cast<std::string>() == "native";
      if (facts.native) {
        const auto forward = parts[1].cast<uintptr_t>(), backward = parts[2].cast<uintptr_t>();
        facts.has_gradient = backward != 0;
        return Ref<BackendPart>(new NativePart(std::move(facts), forward, backward, kept_callable(parts[3])));
      }
      facts.has_gradient = !parts[2].is_none();
      return Ref<BackendPart>(
          new PythonPart(std::move(facts), kept_callable(parts[1]), kept_callable(parts[2]), parts[3].cast<bool>()));
    });
  };
}

}  // namespace

GraphPass partition_pass(const std::string& name, const py::object& supports, const py::object& make,
                         size_t min_nodes) {
  const Callable wants = kept_callable(supports), compiles = kept_callable(make);
  return [name, wants, compiles, min_nodes](Graph& graph) {
    AcquireGil gil;
    const AccessScope scope(graph, "partition '" + name + "'");
    return partition(graph, {name, min_nodes, supports_of(wants, scope.access()), make_of(compiles)});
  };
}

py::list convex_sets_of(const GraphHandle& handle, const py::object& supports) {
  Graph& graph = handle.access->get("convex_sets");
  py::list sets;
  for (const std::vector<NodePtr>& set : convex_sets(graph, supports_of(kept_callable(supports), handle.access))) {
    py::list nodes;
    for (const NodePtr& node : set) nodes.append(NodeHandle{handle.access, node});
    sets.append(nodes);
  }
  return sets;
}

}  // namespace hybridnet::python
