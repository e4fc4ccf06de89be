#include "op/composed.h"

#include <algorithm>

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"};

// The specs of all outputs of one op, as far as they are known.
class Specs final : public Object {
 public:
  explicit Specs(size_t size) : of(size) {}
  std::vector<TensorSpec> of;
};

TensorSpec& spec_in(const Value& v) { return static_cast<Specs*>(v.object.get())->of[v.index]; }

struct SpecIsUnknown {};

// Infers the specs of emitted ops. Specs of inputs that follow from an op are kept as well.
class SpecEmitter final : public Emitter {
 public:
  explicit SpecEmitter(bool train) : train_(train) {}

  Values emit(const Op& op, ParamsPtr params, std::span<const Value> inputs) override {
    std::vector<TensorSpec> in;
    for (const Value& input : inputs) in.push_back(spec_in(input));
    const auto outputs = static_cast<size_t>(op.num_outputs(params->data()));
    const Ref<Specs> made(new Specs(outputs));
    InferContext context(op, in, made->of, train_);
    op.infer(params->data(), context);
    for (size_t i = 0; i < in.size(); ++i) spec_in(inputs[i]) = in[i];
    Values values;
    for (uint32_t i = 0; i < outputs; ++i) values.push_back({Ref<Object>(made.get()), i});
    return values;
  }

  TensorSpec spec(const Value& v) const override {
    const TensorSpec& known = spec_in(v);
    if (!known.known()) throw SpecIsUnknown();
    return known;
  }

 private:
  const bool train_;
};

// Returns the specs of the rule's results for inputs of these specs; empty if the rule asks for an unknown spec. Adds
// the input specs that follow from the ops to `in`.
std::vector<TensorSpec> results_for(const Op& op, const void* params, std::vector<TensorSpec>& in, bool train) {
  const Ref<Specs> leaves(new Specs(in.size()));
  leaves->of = in;
  Values values;
  for (uint32_t i = 0; i < in.size(); ++i) values.push_back({Ref<Object>(leaves.get()), i});
  SpecEmitter emitter(train);
  const Emitter::Scope scope(emitter);
  std::vector<TensorSpec> results;
  try {
    for (const Value& result : op.compose(params, values)) results.push_back(spec_in(result));
  } catch (const SpecIsUnknown&) {
    return {};
  }
  in = leaves->of;
  return results;
}

bool shapes_known(const InferContext& c) {
  for (int i = 0; i < c.num_in(); ++i)
    if (!c.in_shape(i).known()) return false;
  return true;
}

bool dtypes_known(const InferContext& c) {
  for (int i = 0; i < c.num_in(); ++i)
    if (c.in_dtype(i) == DType::kUnknown) return false;
  return true;
}

// Shapes do not depend on dtypes: missing dtypes are assumed to be float32, or int32 if the op has no float32.
void infer_shapes(const Op& op, const void* params, InferContext& c) {
  const DType assumed = op.dtypes.has(DType::kFloat32) ? DType::kFloat32 : DType::kInt32;
  std::vector<TensorSpec> in;
  for (int i = 0; i < c.num_in(); ++i) {
    in.push_back(c.in(i));
    if (in.back().dtype == DType::kUnknown) in.back().dtype = assumed;
  }
  const std::vector<TensorSpec> results = results_for(op, params, in, c.train());
  if (results.empty()) return;
  for (int i = 0; i < c.num_in(); ++i) c.set_in_shape(i, in[static_cast<size_t>(i)].shape);
  for (int i = 0; i < c.num_out(); ++i) c.set_out_shape(i, results[static_cast<size_t>(i)].shape);
  if (!dtypes_known(c)) return;
  for (int i = 0; i < c.num_out(); ++i) c.set_out_dtype(i, results[static_cast<size_t>(i)].dtype);
}

// Sets the dtypes of the outputs, assuming this rank and size for missing shapes; false if the rule rejects them.
bool infer_dtypes_for(const Op& op, const void* params, InferContext& c, int ndim, int64_t size) {
  std::vector<TensorSpec> in;
  for (int i = 0; i < c.num_in(); ++i) {
    in.push_back(c.in(i));
    if (in.back().shape.known()) continue;
    in.back().shape = Shape::scalar();
    for (int axis = 0; axis < ndim; ++axis) in.back().shape.push_back(size);
  }
  try {
    const std::vector<TensorSpec> results = results_for(op, params, in, c.train());
    for (size_t i = 0; i < results.size(); ++i) c.set_out_dtype(static_cast<int>(i), results[i].dtype);
    return true;
  } catch (const Error&) {  // the assumed shapes do not fit
    return false;
  }
}

// Dtypes do not depend on shapes: for missing shapes it tries the ranks of existing rules, and sizes of 1, 2, and 60,
// which is large enough for indices and divisible by small numbers of parts.
void infer_dtypes(const Op& op, const void* params, InferContext& c) {
  for (const int64_t size : {1, 2, 60})
    for (const int ndim : {2, 1, 3, 4, 5, 6, 0})
      if (infer_dtypes_for(op, params, c, ndim, size)) return;
}

bool same_value(const Value& a, const Value& b) { return a.object.get() == b.object.get() && a.index == b.index; }

}  // namespace

Values Op::compose(const void* params, std::span<const Value> inputs) const {
  Values results = compose_(params, {inputs.begin(), inputs.end()});
  const auto outputs = static_cast<size_t>(num_outputs(params));
  if (results.size() != outputs) {
    throw Error(ErrorKind::kError, {.op = name,
                                    .expected = std::to_string(outputs) + " values",
                                    .given = std::to_string(results.size()),
                                    .message = "the rule that composes the operator"});
  }
  for (size_t i = 0; i < outputs; ++i) {
    const auto is_result = [&](const Value& other) { return same_value(results[i], other); };
    const auto before = results.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(inputs.begin(), inputs.end(), is_result) || std::any_of(results.begin(), before, is_result))
      results[i] = Emitter::current().emit(kCopy.op(), kCopy.op().default_params, {&results[i], 1})[0];
  }
  return results;
}

void infer_composed(const Op& op, const void* params, InferContext& c) {
  if (dtypes_known(c)) {
    std::vector<DType> dtypes;
    for (int i = 0; i < c.num_in(); ++i) dtypes.push_back(c.in_dtype(i));
    if (const Op* same = op.same_op(params, dtypes)) return same->infer(params, c);
  }
  if (op.data_dependent_shape) return;
  infer_shapes(op, params, c);
  if (dtypes_known(c) && !shapes_known(c)) infer_dtypes(op, params, c);
}

}  // namespace hybridnet
