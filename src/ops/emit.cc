#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

const OpRef kBroadcastAdd{"broadcast_add"}, kBroadcastSub{"broadcast_sub"}, kBroadcastMul{"broadcast_mul"},
    kBroadcastDiv{"broadcast_div"}, kAdd{"elemwise_add"}, kSub{"elemwise_sub"}, kMul{"elemwise_mul"},
    kDiv{"elemwise_div"}, kNegative{"negative"}, kPlusScalar{"_plus_scalar"}, kMinusScalar{"_minus_scalar"},
    kMulScalar{"_mul_scalar"}, kDivScalar{"_div_scalar"}, kRMinusScalar{"_rminus_scalar"}, kRDivScalar{"_rdiv_scalar"},
    kAddN{"add_n"}, kGreaterScalar{"_greater_scalar"}, kLesserScalar{"_lesser_scalar"}, kWhere{"where"},
    kZerosLike{"zeros_like"}, kOnesLike{"ones_like"}, kZeros{"_zeros"}, kEmptyZeros{"_npi_zeros"}, kFull{"_full"},
    kCast{"Cast"}, kBlockGrad{"BlockGrad"}, kReshape{"Reshape"}, kExpandDims{"expand_dims"}, kTranspose{"transpose"},
    kBroadcastTo{"broadcast_to"}, kSum{"sum"}, kDot{"dot"}, kBatchDot{"batch_dot"}, kSliceAxis{"slice_axis"},
    kConcat{"Concat"}, kCopy{"_copy"};

ParamsPtr make_params(const Op& op, Attrs attrs, size_t num_inputs) {
  if (attrs.size() == 0 && op.default_params) return op.default_params;
  Ref<Params> params = op.schema->create();
  uint64_t given = 0;
  auto set = [&](const char* name, const AttrValue& value) {
    const int field = op.schema->find(name);
    if (field < 0)
      throw ParamError({.op = op.name, .input = name, .message = "a gradient rule uses an unknown parameter"});
    op.schema->set(params->data(), field, value, op.name);
    given |= uint64_t{1} << field;
  };
  for (const auto& [name, value] : attrs) set(name, value);
  if (op.variadic && !op.count_param.empty()) set(op.count_param.c_str(), static_cast<int64_t>(num_inputs));
  op.schema->finish(params->data(), given, op.name);
  return ParamsPtr(params.get());
}

Values emit(const OpRef& ref, std::span<const Value> inputs, ParamsPtr params) {
  return Emitter::current().emit(ref.op(), std::move(params), inputs);
}

Value binary(const OpRef& same, const OpRef& broadcast, const Value& a, const Value& b) {
  return call(spec_of(a).shape == spec_of(b).shape ? same : broadcast, {a, b});
}

}  // namespace

Value call(const OpRef& op, std::initializer_list<Value> inputs, Attrs attrs) {
  std::span<const Value> in(inputs.begin(), inputs.size());
  return emit(op, in, make_params(op.op(), attrs, in.size()))[0];
}
Value call(const OpRef& op, const Values& inputs, Attrs attrs) { return call_all(op, inputs, attrs)[0]; }
Values call_all(const OpRef& op, const Values& inputs, Attrs attrs) {
  return emit(op, inputs, make_params(op.op(), attrs, inputs.size()));
}
Value call(const OpRef& op, std::initializer_list<Value> inputs, ParamsPtr params) {
  return emit(op, std::span<const Value>(inputs.begin(), inputs.size()), std::move(params))[0];
}
Values call_all(const OpRef& op, const Values& inputs, ParamsPtr params) { return emit(op, inputs, std::move(params)); }

const TensorSpec spec_of(const Value& v) { return Emitter::current().spec(v); }

Value operator+(const Value& a, const Value& b) {
  if (!a) return b;
  if (!b) return a;
  return binary(kAdd, kBroadcastAdd, a, b);
}
Value operator-(const Value& a, const Value& b) {
  if (!b) return a;
  if (!a) return -b;
  return binary(kSub, kBroadcastSub, a, b);
}
Value operator*(const Value& a, const Value& b) { return a && b ? binary(kMul, kBroadcastMul, a, b) : Value{}; }
Value operator/(const Value& a, const Value& b) { return a ? binary(kDiv, kBroadcastDiv, a, b) : Value{}; }
Value operator-(const Value& a) { return a ? call(kNegative, {a}) : a; }
Value operator+(const Value& a, double s) { return call(kPlusScalar, {a}, {{"scalar", s}}); }
Value operator-(const Value& a, double s) { return call(kMinusScalar, {a}, {{"scalar", s}}); }
Value operator*(const Value& a, double s) { return a ? call(kMulScalar, {a}, {{"scalar", s}}) : a; }
Value operator/(const Value& a, double s) { return a ? call(kDivScalar, {a}, {{"scalar", s}}) : a; }
Value operator-(double s, const Value& a) { return call(kRMinusScalar, {a}, {{"scalar", s}}); }
Value operator/(double s, const Value& a) { return call(kRDivScalar, {a}, {{"scalar", s}}); }

Value add_all(const Values& terms) {
  Values present;
  for (const Value& t : terms)
    if (t) present.push_back(t);
  if (present.empty()) return {};
  if (present.size() == 1) return present[0];
  if (present.size() == 2) return present[0] + present[1];
  return call(kAddN, present);
}

Value greater(const Value& a, double s) { return call(kGreaterScalar, {a}, {{"scalar", s}}); }
Value lesser(const Value& a, double s) { return call(kLesserScalar, {a}, {{"scalar", s}}); }
Value where(const Value& condition, const Value& x, const Value& y) { return call(kWhere, {condition, x, y}); }
Value zeros_like(const Value& a) { return call(kZerosLike, {a}); }
Value ones_like(const Value& a) { return call(kOnesLike, {a}); }
Value zeros(const Shape& shape, DType dtype) {
  const OpRef& op = shape.size() == 0 ? kEmptyZeros : kZeros;  // a size of 0 means "not known yet" to _zeros
  return call(op, std::initializer_list<Value>{}, {{"shape", AttrValue(shape)}, {"dtype", dtype_name(dtype)}});
}
Value full(const Shape& shape, DType dtype, double value) {
  return call(kFull, std::initializer_list<Value>{},
              {{"shape", AttrValue(shape)}, {"dtype", dtype_name(dtype)}, {"value", value}});
}
Value cast(const Value& a, DType dtype) {
  if (!a || spec_of(a).dtype == dtype) return a;
  return call(kCast, {a}, {{"dtype", dtype_name(dtype)}});
}
Value stop_gradient(const Value& a) { return a ? call(kBlockGrad, {a}) : a; }

Value reshape(const Value& a, const Shape& shape) {
  if (!a || spec_of(a).shape == shape) return a;
  // A size of 0 means "copy" in Reshape's own code, so an empty target goes through zeros.
  for (int64_t d : shape)
    if (d == 0) return zeros(shape, spec_of(a).dtype);
  return call(kReshape, {a}, {{"shape", AttrValue(shape)}});
}
Value expand_dims(const Value& a, int axis) { return a ? call(kExpandDims, {a}, {{"axis", axis}}) : a; }
Value transpose(const Value& a, const Tuple& axes) {
  return a ? call(kTranspose, {a}, {{"axes", AttrValue(axes)}}) : a;
}
Value broadcast_to(const Value& a, const Shape& shape) {
  if (!a || spec_of(a).shape == shape) return a;
  for (int64_t d : shape)
    if (d == 0) return zeros(shape, spec_of(a).dtype);
  return call(kBroadcastTo, {a}, {{"shape", AttrValue(shape)}});
}
Value sum(const Value& a, const Tuple& axes, bool keepdims) {
  return a ? call(kSum, {a}, {{"axis", AttrValue(axes)}, {"keepdims", keepdims}}) : a;
}
Value sum_to(const Value& a, const Shape& shape) {
  if (!a) return a;
  const Shape from = spec_of(a).shape;
  if (from == shape) return a;
  if (shape.size() == 0) return zeros(shape, spec_of(a).dtype);
  const int lead = from.ndim() - shape.ndim();
  Tuple axes = Tuple::scalar();
  for (int i = 0; i < from.ndim(); ++i)
    if (i < lead || (shape[i - lead] == 1 && from[i] != 1)) axes.push_back(i);
  Value summed = axes.ndim() ? sum(a, axes, true) : a;
  return reshape(summed, shape);
}
Value dot(const Value& a, const Value& b, bool transpose_a, bool transpose_b) {
  return a && b ? call(kDot, {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}) : Value{};
}
Value batch_dot(const Value& a, const Value& b, bool transpose_a, bool transpose_b) {
  return a && b ? call(kBatchDot, {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}) : Value{};
}
Value slice_axis(const Value& a, int axis, int64_t begin, int64_t end) {
  return a ? call(kSliceAxis, {a}, {{"axis", axis}, {"begin", begin}, {"end", end}}) : a;
}
Value concat(const Values& parts, int axis) { return call(kConcat, parts, {{"dim", axis}}); }

}  // namespace hybridnet::ops
