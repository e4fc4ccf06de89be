// Operators written in Python: the operator `Custom` calls a Python object (hybridnet.operator).
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "casters.h"
#include "hybridnet/custom.h"
#include "plan/graph_position.h"

namespace hybridnet::python {
namespace {

py::object as_object(const Shape& shape) {
  return shape.rank_known() ? py::reinterpret_steal<py::object>(shape_to_tuple(shape).release()) : py::none();
}

// hybridnet.operator.LibraryHooks, imported at the first custom operator, has
//   num_outputs(type, attributes), num_arguments(type, attributes) -> int
//   infer(type, attributes, shapes, dtypes) -> (in shapes, in dtypes, out shapes, out dtypes), None if unknown
//   is_lazy(type, attributes) -> bool
//   link(type, attributes, shapes, dtypes) -> object with forward(inputs, states, outputs, train, keep) -> kept object
//   backward(kept object, output gradients, inputs, outputs, input gradients), which fills the input gradients
//   call(type, attributes, inputs) -> list of arrays
//   call_lazy(type, attributes, shapes, dtypes, input) -> list of arrays; input(i) returns an array
py::list list_of(std::span<const NDArray> arrays) {
  py::list list;
  for (const NDArray& array : arrays) list.append(array);
  return list;
}

// Holds a Python object and releases it under the GIL, on any thread.
class HeldObject {
 public:
  explicit HeldObject(py::object object) : object_(std::move(object)) {}
  ~HeldObject() {
    AcquireGil gil;
    object_ = py::object();
  }
  HeldObject(const HeldObject&) = delete;
  const py::object& get() const { return object_; }

 private:
  py::object object_;
};

struct KeptObject final : Object {
  explicit KeptObject(py::object object) : held(std::move(object)) {}
  const HeldObject held;
};

class LinkedOperator final : public LinkedCustom {
 public:
  explicit LinkedOperator(py::object linked) : held_(std::move(linked)) {}
  Ref<Object> forward(std::span<const NDArray> inputs, std::span<const NDArray> states,
                      std::span<const NDArray> outputs, bool train, bool keep) override {
    AcquireGil gil;
    py::object kept = held_.get().attr("forward")(list_of(inputs), list_of(states), list_of(outputs), train, keep);
    return keep ? Ref<Object>(new KeptObject(std::move(kept))) : Ref<Object>();
  }

 private:
  const HeldObject held_;
};

class PythonOperators final : public CustomOperators {
 public:
  int num_outputs(const CustomParams& use) override { return known(use).num_outputs; }
  int num_arguments(const CustomParams& use) override { return known(use).num_arguments; }
  bool is_lazy(const CustomParams& use) override { return known(use).lazy; }

  void infer(const CustomParams& use, InferContext& c) override {
    AcquireGil gil;
    py::list shapes, dtypes;
    for (int i = 0; i < c.num_in(); ++i) {
      shapes.append(c.in_shape(i).known() ? as_object(c.in_shape(i)) : py::object(py::none()));
      dtypes.append(c.in_dtype(i) == DType::kUnknown ? py::object(py::none())
                                                     : py::reinterpret_borrow<py::object>(numpy_type(c.in_dtype(i))));
    }
    const py::tuple found = hooks().attr("infer")(use.op_type, use.open_attributes, shapes, dtypes);
    for (int i = 0; i < c.num_in(); ++i) {
      c.set_in_shape(i, item<Shape>(found[0], i, Shape()));
      c.set_in_dtype(i, item<DType>(found[1], i, DType::kUnknown));
    }
    for (int i = 0; i < known(use).num_outputs; ++i) {
      c.set_out_shape(i, item<Shape>(found[2], i, Shape()));
      c.set_out_dtype(i, item<DType>(found[3], i, DType::kUnknown));
    }
  }

  Ref<LinkedCustom> link(const CustomParams& use, std::span<const TensorSpec> inputs) override {
    AcquireGil gil;
    const auto [shapes, dtypes] = known_specs(inputs);
    return Ref<LinkedCustom>(
        new LinkedOperator(hooks().attr("link")(use.op_type, use.open_attributes, shapes, dtypes)));
  }

  void backward(const CustomGradient& g) override {
    AcquireGil gil;
    hooks().attr("backward")(static_cast<KeptObject&>(g.kept).held.get(), list_of(g.output_grads), list_of(g.inputs),
                             list_of(g.outputs), list_of(g.input_grads));
  }

  std::vector<NDArray> call(const CustomParams& use, std::span<const NDArray> inputs) override {
    AcquireGil gil;
    return arrays_of(hooks().attr("call")(use.op_type, use.open_attributes, list_of(inputs)));
  }

  std::vector<NDArray> call_lazy(const CustomParams& use, std::span<const TensorSpec> inputs,
                                 const std::function<NDArray(size_t)>& input) override {
    AcquireGil gil;
    const auto [shapes, dtypes] = known_specs(inputs);
    // Python may keep the function after the call.
    auto alive = std::make_shared<const std::function<NDArray(size_t)>*>(&input);
    const py::cpp_function get([alive](size_t i) {
      if (*alive == nullptr) throw Error(ErrorKind::kError, {.op = "Custom", .message = "the call is over"});
      return (**alive)(i);
    });
    const struct End {
      std::shared_ptr<const std::function<NDArray(size_t)>*> alive;
      ~End() { *alive = nullptr; }
    } end{alive};
    return arrays_of(hooks().attr("call_lazy")(use.op_type, use.open_attributes, shapes, dtypes, get));
  }

  void forget() {
    const std::lock_guard lock(mutex_);
    known_.clear();
  }

 private:
  struct Known {
    int num_outputs, num_arguments;
    bool lazy;
  };
  Known known(const CustomParams& use) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = known_.find({use.op_type, use.open_attributes}); it != known_.end()) return it->second;
    }
    AcquireGil gil;
    const Known found{py::cast<int>(hooks().attr("num_outputs")(use.op_type, use.open_attributes)),
                      py::cast<int>(hooks().attr("num_arguments")(use.op_type, use.open_attributes)),
                      py::cast<bool>(hooks().attr("is_lazy")(use.op_type, use.open_attributes))};
    const std::lock_guard lock(mutex_);
    known_[{use.op_type, use.open_attributes}] = found;
    return found;
  }

  // Returns shapes and dtypes, None if unknown.
  static std::pair<py::list, py::list> known_specs(std::span<const TensorSpec> specs) {
    py::list shapes, dtypes;
    for (const TensorSpec& spec : specs) {
      shapes.append(spec.shape.known() ? as_object(spec.shape) : py::object(py::none()));
      dtypes.append(spec.dtype == DType::kUnknown ? py::object(py::none())
                                                  : py::reinterpret_borrow<py::object>(numpy_type(spec.dtype)));
    }
    return {std::move(shapes), std::move(dtypes)};
  }

  static std::vector<NDArray> arrays_of(const py::object& list) {
    std::vector<NDArray> arrays;
    for (const py::handle array : py::list(list)) arrays.push_back(expect_array(array.ptr(), "output"));
    return arrays;
  }

  template <typename T>
  static T item(const py::handle& values, int i, T unknown) {
    const py::object value = py::list(py::reinterpret_borrow<py::object>(values))[static_cast<size_t>(i)];
    return value.is_none() ? unknown : py::cast<T>(value);
  }

  static py::object hooks() { return py::module_::import("hybridnet.operator").attr("LibraryHooks"); }

  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, Known> known_;
};

}  // namespace

void bind_custom(py::module_& m) {
  auto* operators = new PythonOperators;  // never destroyed: graphs may use it until the process ends
  install_custom_operators(operators);
  m.def(
      "current_graph_position", [] { return current_graph_position(); },
      "Where the thread is in a graph: loops, iterations, branches, operator; '' outside.");
  m.def(
      "forget_custom_operators", [operators] { operators->forget(); }, "A name has a new meaning.");
}

}  // namespace hybridnet::python
