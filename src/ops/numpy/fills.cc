// Arrays of one value and of repeated values, in NumPy's interface.
#include "hybridnet/declare.h"
#include "ops/numpy/promote.h"
#include "ops/shape_param.h"

namespace hybridnet::ops {
namespace {

struct FullLikeParams {
  double fill_value;
  std::string ctx;
  std::optional<DType> dtype;
  static void describe(ParamSchema<FullLikeParams>& schema) {
    schema.field("fill_value", &FullLikeParams::fill_value).doc("Value of every element.");
    describe_ctx<FullLikeParams>(schema);
    schema.field("dtype", &FullLikeParams::dtype).none_by_default().doc("Dtype of the output; None: dtype of a.");
  }
};

Values full_like_rule(const FullLikeParams& p, const Values& in) {
  const DType dtype = p.dtype.value_or(dtype_of(in[0]));
  const Value zero = zeros_like(cast(in[0], arithmetic(dtype)));
  return {cast(p.fill_value == 0 ? zero : zero + p.fill_value, dtype)};
}

struct BroadcastParams {
  Tuple shape;
  static void describe(ParamSchema<BroadcastParams>& schema) {
    schema.field("shape", &BroadcastParams::shape)
        .default_value(AttrValue(Tuple::scalar()))
        .doc("Shape of the output; -1 and -2 copy the input's size.");
  }
};

[[noreturn]] void cannot_broadcast(const Shape& from, const Shape& to) {
  throw ShapeError({.input = "array",
                    .expected = "a shape that broadcasts to " + to.str(),
                    .given = from.str(),
                    .because = "sizes, aligned at the last axis, are equal or 1"});
}

Values broadcast_rule(const BroadcastParams& p, const Values& in) {
  const Shape from = spec_of(in[0]).shape;
  Shape to = p.shape;
  const int lead = to.ndim() - from.ndim();
  if (lead < 0) cannot_broadcast(from, to);
  for (int i = 0; i < to.ndim(); ++i) {
    const int64_t own = i < lead ? 1 : from[i - lead];
    if ((to[i] == -1 || to[i] == -2) && i >= lead) to[i] = own;
    if (to[i] < 0 || (own != 1 && own != to[i])) cannot_broadcast(from, to);
  }
  return {repeated(in[0], to)};
}

}  // namespace

void register_numpy_fills(OpRegistry& ops) {
  ops.declare<FullLikeParams>("_npi_full_like")
      .doc("An array of one value with the shape of another array.")
      .input("a", "array of any shape")
      .output("out", "shape of a")
      .compose(full_like_rule)
      .sample({{2, 3}}, {{"fill_value", "1.5"}})
      .sample({{2, 3}}, {{"fill_value", "0"}})
      .sample({Shape{0, 3}}, {{"fill_value", "2"}});
  ops.declare<BroadcastParams>("_npi_broadcast_to")
      .doc("Repeats an array along axes of size 1 and along new leading axes.")
      .input("array", "a shape that broadcasts to the parameter's")
      .output("out", "dtype of array")
      .compose(broadcast_rule)
      .sample({{3, 1}}, {{"shape", "(2, 3, 4)"}})
      .sample({{3, 1}}, {{"shape", "(-1, 4)"}})
      .sample({{3, 1}}, {{"shape", "(2, -2, 4)"}})
      .sample({Shape::scalar()}, {{"shape", "(2, 2)"}})
      .sample({{1, 3}}, {{"shape", "(0, 3)"}});
}

}  // namespace hybridnet::ops
