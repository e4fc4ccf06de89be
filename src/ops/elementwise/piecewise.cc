// Clipping, hard sigmoid, smooth L1: piecewise functions with parameters.
#include "hybridnet/declare.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

const OpRef kClipGrad{"_backward_clip"}, kHardSigmoidGrad{"_backward_hard_sigmoid"},
    kSmoothL1Grad{"_backward_smooth_l1"}, kAbs{"abs"}, kLesserScalar{"_lesser_scalar"};

struct ClipParams {
  double a_min, a_max;
  static void describe(ParamSchema<ClipParams>& schema) {
    schema.field("a_min", &ClipParams::a_min).doc("Smallest value of the output.");
    schema.field("a_max", &ClipParams::a_max).doc("Largest value of the output.");
  }
  void scalars(double* s) const { s[0] = a_min, s[1] = a_max; }
};

struct HardSigmoidParams {
  double alpha, beta;
  static void describe(ParamSchema<HardSigmoidParams>& schema) {
    schema.field("alpha", &HardSigmoidParams::alpha).default_value(0.2).doc("Slope.");
    schema.field("beta", &HardSigmoidParams::beta).default_value(0.5).doc("Value at 0.");
  }
  void scalars(double* s) const { s[0] = alpha, s[1] = beta; }
};

struct SmoothL1Params {
  double scalar;
  static void describe(ParamSchema<SmoothL1Params>& schema) {
    schema.field("scalar", &SmoothL1Params::scalar)
        .default_value(1.0)
        .doc("The function is quadratic for |x| < 1 / sigma^2.");
  }
  void scalars(double* s) const { s[0] = scalar, s[1] = 0; }
};

template <class P>
ParamsPtr same(const P& p) {
  return ParamSchema<P>::box(p);
}

// (out_grad, saved) -> out_grad * slope(saved); the slope is piecewise constant, so only out_grad has a gradient.
template <Pointwise F, class P>
OpBuilder<P> stepwise_helper(OpRegistry& ops, const char* name, const char* doc, const char* saved, const OpRef& self) {
  auto op = ops.declare<P>(name);
  op.doc(doc).input("out_grad", "output gradient").input(saved, "saved value").internal();
  elementwise_with_scalars<F>(op, kNumeric)
      .gradient(
          [&self](const P& p, const GradientContext& g) -> Values {
            return {call(self, {g.output_grad(0), g.input(1)}, same(p)), {}};
          },
          Saves::of({1}));
  return op;
}

void register_clip(OpRegistry& ops) {
  auto clip = ops.declare<ClipParams>("clip");
  clip.alias("_sparse_clip")
      .alias("_npi_clip")
      .doc("Limits values to [a_min, a_max]; NaN is kept.")
      .input("data", "array of any shape");
  elementwise_with_scalars<Pointwise::kClip>(clip, kNumeric)
      .gradient(
          [](const ClipParams& p, const GradientContext& g) -> Values {
            return {call(kClipGrad, {g.output_grad(0), g.input(0)}, same(p))};
          },
          Saves::all_inputs())
      .clamps([](const ClipParams& p) {
        return std::optional(Interval{p.a_min, p.a_max});
      })
      .layer_activation([](const ClipParams& p) {
        return std::optional(LayerActivation{"clip", p.a_min, p.a_max});
      })
      .sample({{3, 4}}, {{"a_min", "-0.5"}, {"a_max", "1"}})
      .sample(std::vector<Shape>{{0}}, {{"a_min", "-0.5"}, {"a_max", "1"}});
  stepwise_helper<Pointwise::kClipGrad, ClipParams>(
      ops, "_backward_clip", "out_grad where data lies within the bounds, else 0.", "data", kClipGrad)
      .sample({{3, 4}, {3, 4}}, {{"a_min", "-0.5"}, {"a_max", "1"}});
}

void register_hard_sigmoid(OpRegistry& ops) {
  auto op = ops.declare<HardSigmoidParams>("hard_sigmoid");
  op.doc("alpha * x + beta, limited to [0, 1].").input("data", "array of any shape");
  elementwise_with_scalars<Pointwise::kHardSigmoid>(op, kFloating)
      .gradient(
          [](const HardSigmoidParams& p, const GradientContext& g) -> Values {
            return {call(kHardSigmoidGrad, {g.output_grad(0), g.output(0)}, same(p))};
          },
          Saves::all_outputs())
      .sample({{3, 4}}, {}, -4, 4);
  stepwise_helper<Pointwise::kHardSigmoidGrad, HardSigmoidParams>(
      ops, "_backward_hard_sigmoid", "out_grad * alpha where the output lies inside (0, 1), else 0.", "output",
      kHardSigmoidGrad)
      .sample({{3, 4}, {3, 4}});
}

void register_smooth_l1(OpRegistry& ops) {
  auto op = ops.declare<SmoothL1Params>("smooth_l1");
  op.alias("_npx_smooth_l1")
      .doc("0.5 (sigma x)^2 where |x| < 1 / sigma^2, otherwise |x| - 0.5 / sigma^2.")
      .input("data", "array of any shape");
  elementwise_with_scalars<Pointwise::kSmoothL1>(op, kFloating)
      .gradient(
          [](const SmoothL1Params& p, const GradientContext& g) -> Values {
            return {call(kSmoothL1Grad, {g.output_grad(0), g.input(0)}, same(p))};
          },
          Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {{"scalar", "1"}})
      .sample({{3, 4}}, {{"scalar", "0.8"}});
  auto helper = ops.declare<SmoothL1Params>("_backward_smooth_l1");
  helper.doc("out_grad times the slope of smooth_l1.")
      .input("out_grad", "output gradient")
      .input("data", "input")
      .internal();
  elementwise_with_scalars<Pointwise::kSmoothL1Grad>(helper, kNumeric)
      .gradient(
          [](const SmoothL1Params& p, const GradientContext& g) -> Values {
            const Value dy = g.output_grad(0), x = g.input(1);
            const double square = p.scalar * p.scalar;
            Value dx;
            if (g.wants(1)) {
              const Value inside = call(kLesserScalar, {call(kAbs, {x})}, {{"scalar", 1 / square}});
              dx = dy * g.input(0) * inside * square;
            }
            return {g.wants(0) ? call(kSmoothL1Grad, {dy, x}, same(p)) : Value{}, dx};
          },
          Saves::all_inputs())
      .sample({{3, 4}, {3, 4}}, {{"scalar", "1"}});
}

}  // namespace

void register_piecewise(OpRegistry& ops) {
  register_clip(ops);
  register_hard_sigmoid(ops);
  register_smooth_l1(ops);
}

}  // namespace hybridnet::ops
