// The checks of a graph function on its graph and its inputs.
#include "plan/graph_callable.h"

namespace hybridnet {
void GraphCallable::check_in_one_piece(std::span<const NDArray> inputs) const {
  if (is_cut_) throw_in_parts("the shape of some value in it depends on data");
  if (has_sparse(inputs)) throw_in_parts("some value in it is sparse");
}

void GraphCallable::throw_in_parts(std::string because) const {
  throw UnsupportedError({.op = options_.name,
                          .message = "a graph with gradients in it runs in one piece only",
                          .because = std::move(because),
                          .fix = "differentiate by autograd.record() and backward() instead"});
}

void GraphCallable::check_inputs(std::span<const NDArray> inputs) const {
  if (inputs.size() != definition_.inputs.size()) {
    throw TypeError({.op = options_.name,
                     .expected = std::to_string(definition_.inputs.size()) + " inputs",
                     .given = std::to_string(inputs.size())});
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]) continue;
    throw TypeError(
        {.op = options_.name, .input = definition_.inputs[i]->name, .expected = "an array", .given = "none"});
  }
  if (!definition_.checked) return;
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].device() == inputs[0].device()) continue;
    throw ValueError(
        {.op = options_.name,
         .input = definition_.inputs[i]->name,
         .expected = "an array on " + inputs[0].device().str() + ", where '" + definition_.inputs[0]->name + "' is",
         .given = "one on " + inputs[i].device().str(),
         .fix = "copy it there: x.as_in_context(...)"});
  }
}

// Returns the GPU that holds the inputs and the arrays that the graph captured; else a CPU. Throws ValueError if they
// are on different devices.
Device GraphCallable::common_device(std::span<const NDArray> inputs) const {
  const auto on_gpu = [](const NDArray& array) { return array.is_on_gpu(); };
  const std::vector<NDArray> none;
  const std::vector<NDArray>& captured = constants_.arrays() ? *constants_.arrays() : none;
  auto gpu = std::find_if(inputs.begin(), inputs.end(), on_gpu);
  if (gpu == inputs.end() && std::none_of(captured.begin(), captured.end(), on_gpu)) return {};
  const Device device = inputs.empty() ? captured[0].device() : inputs[0].device();
  const auto is_elsewhere = [&](const NDArray& array) { return !(array.device() == device); };
  const auto other = std::find_if(inputs.begin(), inputs.end(), is_elsewhere);
  const auto constant = std::find_if(captured.begin(), captured.end(), is_elsewhere);
  if (other == inputs.end() && constant == captured.end()) return device;
  const bool is_input = other != inputs.end();
  throw ValueError({.op = options_.name,
                    .input = is_input ? definition_.inputs[static_cast<size_t>(other - inputs.begin())]->name
                                      : "an array that the graph has captured",
                    .expected = "arrays on one device, " + device.str(),
                    .given = "one on " + (is_input ? *other : *constant).device().str(),
                    .fix = "copy it there: x.as_in_context(mx." + device.str() + ")"});
}

// Compares the inputs with the declarations of the variables. Called for signatures that have not been seen.
void GraphCallable::check_declared(std::span<const NDArray> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_pending()) continue;
    const Node& variable = *definition_.inputs[i];
    const TensorSpec want = declared_spec(variable);
    const TensorSpec& given = inputs[i].spec();
    const ErrorFields subject{.op = options_.name, .input = variable.name};
    if (want.dtype != DType::kUnknown && want.dtype != given.dtype) {
      ErrorFields fields = subject;
      fields.expected = std::string("elements of type ") + dtype_name(want.dtype);
      fields.given = dtype_name(given.dtype);
      fields.fix = "convert the array: x.astype('" + std::string(dtype_name(want.dtype)) + "')";
      throw DTypeError(std::move(fields));
    }
    if (!want.shape.rank_known()) continue;
    ErrorFields fields = subject;
    fields.given = given.shape.str();
    if (want.shape.ndim() != given.shape.ndim()) {
      fields.expected = "an array of " + std::to_string(want.shape.ndim()) + " dimensions, " + want.shape.str();
      fields.given = std::to_string(given.shape.ndim()) + ", " + given.shape.str();
      fields.fix = "reshape the array, or declare another shape of the variable";
      throw ShapeError(std::move(fields));
    }
    for (int axis = 0; axis < want.shape.ndim(); ++axis) {
      if (want.shape[axis] == kUnknownDim || want.shape[axis] == given.shape[axis]) continue;
      fields.expected = "shape " + want.shape.str();
      fields.because = "axis " + std::to_string(axis) + " has size " + std::to_string(want.shape[axis]) + " there";
      fields.fix = "pass an array of that size, or declare the variable with 0 where any size may come";
      throw ShapeError(std::move(fields));
    }
  }
}

}  // namespace hybridnet
