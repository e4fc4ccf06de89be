// reshape_like: takes sizes, or a range of them, from a second tensor.
#include "hybridnet/declare.h"
#include "ops/emit.h"
#include "ops/shape/reshape_codes.h"

namespace hybridnet::ops {
namespace {

struct ReshapeLikeParams {
  std::optional<int32_t> lhs_begin, lhs_end, rhs_begin, rhs_end;
  static void describe(ParamSchema<ReshapeLikeParams>& schema) {
    schema.field("lhs_begin", &ReshapeLikeParams::lhs_begin)
        .none_by_default()
        .doc("First axis of lhs that is replaced; None: 0.");
    schema.field("lhs_end", &ReshapeLikeParams::lhs_end)
        .none_by_default()
        .doc("End of the axes of lhs that are replaced; None: all.");
    schema.field("rhs_begin", &ReshapeLikeParams::rhs_begin)
        .none_by_default()
        .doc("First axis of rhs whose size is used; None: 0.");
    schema.field("rhs_end", &ReshapeLikeParams::rhs_end)
        .none_by_default()
        .doc("End of the axes of rhs whose sizes are used; None: all.");
  }
};

// A bound of an axis range; it may be ndim itself.
int bound(std::optional<int32_t> given, int otherwise, int ndim, const char* name) {
  if (!given) return otherwise;
  const int axis = *given < 0 ? *given + ndim : *given;
  if (axis < 0 || axis > ndim) {
    throw ParamError({.input = name,
                      .expected = "a bound in [" + std::to_string(-ndim) + ", " + std::to_string(ndim) + "]",
                      .given = std::to_string(*given)});
  }
  return axis;
}

void check_range(int begin, int end, const char* side) {
  if (begin <= end) return;
  throw ParamError({.input = std::string(side) + "_end",
                    .expected = "an end not before the begin",
                    .given = "axes " + std::to_string(begin) + " to " + std::to_string(end)});
}

void infer_reshape_like(const ReshapeLikeParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  const Shape& lhs = c.in_shape(0);
  const Shape& rhs = c.in_shape(1);
  if (!p.lhs_begin && !p.lhs_end && !p.rhs_begin && !p.rhs_end) {
    c.set_out_shape(0, rhs);
    c.set_in_shape(1, c.out_shape(0));
  } else if (lhs.rank_known() && rhs.rank_known()) {
    const int lhs_begin = bound(p.lhs_begin, 0, lhs.ndim(), "lhs_begin");
    const int lhs_end = bound(p.lhs_end, lhs.ndim(), lhs.ndim(), "lhs_end");
    const int rhs_begin = bound(p.rhs_begin, 0, rhs.ndim(), "rhs_begin");
    const int rhs_end = bound(p.rhs_end, rhs.ndim(), rhs.ndim(), "rhs_end");
    check_range(lhs_begin, lhs_end, "lhs");
    check_range(rhs_begin, rhs_end, "rhs");
    Shape out = Shape::scalar();
    for (int i = 0; i < lhs_begin; ++i) out.push_back(lhs[i]);
    for (int i = rhs_begin; i < rhs_end; ++i) out.push_back(rhs[i]);
    for (int i = lhs_end; i < lhs.ndim(); ++i) out.push_back(lhs[i]);
    c.set_out_shape(0, out);
  }
  const Shape& out = c.out_shape(0);
  if (lhs.known() && out.known() && lhs.size() != out.size()) {
    throw ShapeError({.input = "lhs",
                      .expected = std::to_string(out.size()) + " elements",
                      .given = lhs.str() + ", which has " + std::to_string(lhs.size()),
                      .because = "rhs has shape " + rhs.str() + ", so the output has shape " + out.str()});
  }
}

}  // namespace

void register_reshape_like(OpRegistry& ops) {
  ops.declare<ReshapeLikeParams>("reshape_like")
      .alias("_npx_reshape_like")
      .doc("lhs with the shape of rhs, or with some of its axes replaced by axes of rhs.")
      .input("lhs", "any shape, any dtype")
      .input("rhs", "defines sizes only; any dtype")
      .output("output", "dtype of lhs")
      .infer(infer_reshape_like)
      .any_device()
      .cpu([](const ReshapeLikeParams&, const KernelArgs& a) { copy_first_input(a); })
      .view()
      .inplace(0, 0)
      .gradient(
          [](const ReshapeLikeParams&, const GradientContext& g) {
            return Values{reshape(g.output_grad(0), g.input_spec(0).shape), Value{}};
          },
          Saves::nothing())
      .sample({{2, 6}, {3, 4}}, {})
      .sample({{30, 7}, {15, 2, 4}}, {{"lhs_begin", "0"}, {"lhs_end", "1"}, {"rhs_begin", "0"}, {"rhs_end", "2"}})
      .sample({{3, 12}, {4, 2, 2, 3}}, {{"lhs_begin", "-1"}, {"rhs_begin", "1"}});
}

}  // namespace hybridnet::ops
