#include "hybridnet/op.h"

namespace hybridnet {
namespace {

// Merges the known sizes of `known` into `target`; returns false if they contradict.
bool merge_shape(Shape* target, const Shape& known) {
  if (!known.rank_known()) return true;
  if (!target->rank_known()) return *target = known, true;
  if (target->ndim() != known.ndim()) return false;
  for (int i = 0; i < known.ndim(); ++i) {
    if (known[i] == kUnknownDim) continue;
    if ((*target)[i] == kUnknownDim) (*target)[i] = known[i];
    if ((*target)[i] != known[i]) return false;
  }
  return true;
}

// Proposes no cast that loses digits: integers become floating numbers, and of two floating types the user chooses.
std::string cast_for(DType known, DType given) {
  const auto by = [](DType type) { return ".astype('" + std::string(dtype_name(type)) + "')"; };
  if (is_floating(known) && is_floating(given)) return "cast one side, by " + by(known) + " or " + by(given);
  if (is_floating(known) || is_floating(given)) return "cast the integers: " + by(is_floating(known) ? known : given);
  return "cast one side with " + by(known);
}

[[noreturn]] void dtype_conflict(std::string tensor, DType known, DType given) {
  ErrorFields e;
  e.input = std::move(tensor);
  e.expected = std::string("dtype ") + dtype_name(known);
  e.given = dtype_name(given);
  e.fix = cast_for(known, given);
  throw DTypeError(std::move(e));
}

}  // namespace

std::string InferContext::input_name(int i) const {
  return op_.variadic ? "arg" + std::to_string(i) : op_.input_name(nullptr, i);
}
std::string InferContext::output_name(int i) const {
  return i < static_cast<int>(op_.outputs.size()) ? op_.outputs[i].name : "output" + std::to_string(i);
}

void InferContext::set_in_shape(int i, const Shape& known) {
  Shape before = in_[i].shape;
  if (merge_shape(&in_[i].shape, known)) return;
  in_[i].shape = before;
  ErrorFields e;
  e.input = input_name(i);
  e.expected = "shape " + known.str();
  e.given = before.str();
  throw ShapeError(std::move(e));
}

void InferContext::set_out_shape(int i, const Shape& known) {
  Shape before = out_[i].shape;
  if (merge_shape(&out_[i].shape, known)) return;
  out_[i].shape = before;
  ErrorFields e;
  e.input = output_name(i);
  e.message = "the operator gives shape " + known.str() + ", but its output is used or bound as " + before.str();
  throw ShapeError(std::move(e));
}

void InferContext::set_in_dtype(int i, DType known) {
  if (known == DType::kUnknown) return;
  DType& d = in_[i].dtype;
  if (d == DType::kUnknown) d = known;
  if (d != known) dtype_conflict(input_name(i), known, d);
}

void InferContext::set_out_dtype(int i, DType known) {
  if (known == DType::kUnknown) return;
  DType& d = out_[i].dtype;
  if (d == DType::kUnknown) d = known;
  if (d != known) dtype_conflict(output_name(i), known, d);
}

void InferContext::unify_dtypes() {
  DType known = DType::kUnknown;
  for (const TensorSpec& s : in_)
    if (s.dtype != DType::kUnknown && known == DType::kUnknown) known = s.dtype;
  for (const TensorSpec& s : out_)
    if (s.dtype != DType::kUnknown && known == DType::kUnknown) known = s.dtype;
  for (int i = 0; i < num_in(); ++i) set_in_dtype(i, known);
  for (int i = 0; i < num_out(); ++i) set_out_dtype(i, known);
}

void InferContext::unify_dtypes(std::initializer_list<int> inputs, std::initializer_list<int> outputs) {
  DType known = DType::kUnknown;
  for (int i : inputs)
    if (i < num_in() && known == DType::kUnknown) known = in_[i].dtype;
  for (int i : outputs)
    if (i < num_out() && known == DType::kUnknown) known = out_[i].dtype;
  for (int i : inputs)
    if (i < num_in()) set_in_dtype(i, known);
  for (int i : outputs)
    if (i < num_out()) set_out_dtype(i, known);
}

void InferContext::unify_shapes() {
  Shape known;
  auto learn = [&](const Shape& s, const std::string& name) {
    if (merge_shape(&known, s)) return;
    ErrorFields e;
    e.input = name;
    e.expected = "shape " + known.str();
    e.given = s.str();
    e.because = "all inputs and outputs of the operator have one shape";
    throw ShapeError(std::move(e));
  };
  for (int i = 0; i < num_in(); ++i) learn(in_[i].shape, input_name(i));
  for (int i = 0; i < num_out(); ++i) learn(out_[i].shape, output_name(i));
  if (!known.rank_known()) return;
  for (int i = 0; i < num_in(); ++i) in_[i].shape = known;
  for (int i = 0; i < num_out(); ++i) out_[i].shape = known;
}

void InferContext::require_dtype(int i, DTypeSet allowed) const {
  if (in_[i].dtype == DType::kUnknown || allowed.has(in_[i].dtype)) return;
  ErrorFields e;
  e.input = input_name(i);
  e.expected = "one of " + allowed.str();
  e.given = dtype_name(in_[i].dtype);
  throw DTypeError(std::move(e));
}

int normalize_axis(int64_t axis, int ndim, const char* param) {
  if (axis >= -ndim && axis < ndim) return static_cast<int>(axis < 0 ? axis + ndim : axis);
  ErrorFields e;
  e.input = param;
  e.expected = ndim == 0 ? "no axis, for the data is a scalar"
                         : "an axis in [" + std::to_string(-ndim) + ", " + std::to_string(ndim - 1) + "]";
  e.given = std::to_string(axis);
  e.because = "the data has " + std::to_string(ndim) + " dimensions";
  throw ParamError(std::move(e));
}

}  // namespace hybridnet
