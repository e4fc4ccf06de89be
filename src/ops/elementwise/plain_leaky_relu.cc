// leaky, elu, selu and gelu: LeakyReLU without randomness and without a second input, for plans.
#include "hybridnet/declare.h"
#include "ops/elementwise/declare.h"
#include "ops/elementwise/leaky_relu.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

// Klambauer et al.: Self-normalizing neural networks, NIPS 2017.
constexpr double kSeluAlpha = 1.6732632423543772848170429916717, kSeluScale = 1.0507009873554804934193349852946;
constexpr double kInverseRootTwoPi = 0.39894228040143267794;

const OpRef kLeakyGrad{"_backward_leaky"}, kEluGrad{"_backward_elu"}, kGeluGrad{"_backward_gelu"}, kExp{"exp"},
    kSquare{"square"};

// out_grad * scale above 0; out_grad * scale * slope at and below 0, for elu times e^x.
struct SlopeParams {
  double slope, scale;
  static void describe(ParamSchema<SlopeParams>& schema) {
    schema.field("slope", &SlopeParams::slope).default_value(0.25).doc("Slope at and below 0.");
    schema.field("scale", &SlopeParams::scale).default_value(1.0).doc("Factor of the function.");
  }
  void scalars(double* s) const { s[0] = slope, s[1] = scale; }
};

void plain_span(const void* params, DType dtype, const void* const* in, void* out, int64_t n) {
  const auto& p = *static_cast<const LeakyReluParams*>(params);
  double scalars[2];
  p.scalars(scalars);
  kernels::apply(plain_leaky_loops(p), dtype, in, out, n, scalars);
}

void register_leaky_helper(OpRegistry& ops) {
  auto op = ops.declare<SlopeParams>("_backward_leaky");
  op.doc("out_grad where data is above 0, otherwise out_grad * slope.")
      .input("out_grad", "output gradient")
      .input("data", "input");
  elementwise_with_scalars<Pointwise::kLeakyGrad>(op.internal(), kFloating)
      .gradient(
          [](const SlopeParams& p, const GradientContext& g) -> Values {
            return {call(kLeakyGrad, {g.output_grad(0), g.input(1)}, ParamSchema<SlopeParams>::box(p)), {}};
          },
          Saves::of({1}))
      .sample({{3, 4}, {3, 4}});
}

void register_elu_helper(OpRegistry& ops) {
  auto op = ops.declare<SlopeParams>("_backward_elu");
  op.doc("out_grad * scale where data is above 0, otherwise out_grad * scale * slope * e^data.")
      .input("out_grad", "output gradient")
      .input("data", "input");
  elementwise_with_scalars<Pointwise::kEluGrad>(op.internal(), kFloating)
      .gradient(
          [](const SlopeParams& p, const GradientContext& g) -> Values {
            const Value dy = g.output_grad(0), x = g.input(1);
            const auto slope_times = [&](const Value& v) {
              return call(kEluGrad, {v, x}, ParamSchema<SlopeParams>::box(p));
            };
            // Below 0 the slope is its own derivative; above 0 it is constant.
            return {g.wants(0) ? slope_times(dy) : Value{},
                    g.wants(1) ? slope_times(dy * g.input(0)) * (1.0 - greater(x, 0)) : Value{}};
          },
          Saves::all_inputs())
      .sample({{3, 4}, {3, 4}});
}

void register_gelu_helper(OpRegistry& ops) {
  gradient_helper<Pointwise::kGeluGrad>(ops, "_backward_gelu", "out_grad * (Phi(data) + data * phi(data)).", "data")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            const Value dy = g.output_grad(0), x = g.input(1);
            Value to_x;
            if (g.wants(1)) {
              const Value square = call(kSquare, {x});
              const Value density = call(kExp, {square * -0.5}) * kInverseRootTwoPi;
              to_x = dy * g.input(0) * (density * (2.0 - square));
            }
            return {g.wants(0) ? call(kGeluGrad, {dy, x}) : Value{}, to_x};
          },
          Saves::all_inputs())
      .sample({{3, 4}, {3, 4}});
}

}  // namespace

void LeakyReluParams::describe(ParamSchema<LeakyReluParams>& schema) {
  schema.field("act_type", &LeakyReluParams::act_type)
      .choice("elu", LeakyType::kElu)
      .choice("gelu", LeakyType::kGelu)
      .choice("leaky", LeakyType::kLeaky)
      .choice("prelu", LeakyType::kPrelu)
      .choice("rrelu", LeakyType::kRrelu)
      .choice("selu", LeakyType::kSelu)
      .default_value("leaky")
      .doc("The activation function.");
  schema.field("slope", &LeakyReluParams::slope)
      .default_value(0.25)
      .doc("Slope below 0 (leaky), limit -slope at -inf (elu).");
  schema.field("lower_bound", &LeakyReluParams::lower_bound).default_value(0.125).doc("Smallest random slope (rrelu).");
  schema.field("upper_bound", &LeakyReluParams::upper_bound).default_value(0.334).doc("Largest random slope (rrelu).");
}

const kernels::SpanLoops& plain_leaky_loops(const LeakyReluParams& p) {
  switch (p.act_type) {
    case LeakyType::kElu:
      return span_loops<Pointwise::kElu>();
    case LeakyType::kSelu:
      return span_loops<Pointwise::kSelu>();
    case LeakyType::kGelu:
      return span_loops<Pointwise::kGelu>();
    default:
      return span_loops<Pointwise::kLeaky>();
  }
}

std::optional<LayerActivation> leaky_layer_form(const LeakyReluParams& p) {
  switch (p.act_type) {
    case LeakyType::kGelu:
      return LayerActivation{"gelu"};
    case LeakyType::kElu:
      return LayerActivation{"elu", p.slope};
    case LeakyType::kLeaky:
      return LayerActivation{"leaky", p.slope};
    default:
      return std::nullopt;
  }
}

void run_plain_leaky(const LeakyReluParams& p, const KernelArgs& a) {
  double scalars[2];
  p.scalars(scalars);
  const void* in[] = {a.in[0].data};
  kernels::apply_parallel(plain_leaky_loops(p), a.in[0].dtype, in, a.out[0].data, a.out[0].size(), scalars);
}

Value plain_leaky_gradient(const LeakyReluParams& p, const Value& dy, const Value& x) {
  const auto with = [&](const OpRef& helper, double slope, double scale) {
    return call(helper, {dy, x}, ParamSchema<SlopeParams>::box({slope, scale}));
  };
  switch (p.act_type) {
    case LeakyType::kElu:
      return with(kEluGrad, p.slope, 1);
    case LeakyType::kSelu:
      return with(kEluGrad, kSeluAlpha, kSeluScale);
    case LeakyType::kGelu:
      return call(kGeluGrad, {dy, x});
    default:
      return with(kLeakyGrad, p.slope, 1);
  }
}

void register_plain_leaky_relu(OpRegistry& ops) {
  auto op = ops.declare<LeakyReluParams>("_plain_leaky_relu");
  op.internal()
      .doc("LeakyReLU with act_type leaky, elu, selu or gelu.")
      .input("data", "floating array of any shape")
      .output("output", "shape and dtype of data")
      .infer([](const LeakyReluParams&, InferContext& c) { infer_elementwise(c); })
      .any_device()
      .cpu(run_plain_leaky, kFloating)
      .pointwise(&plain_span)
      .inplace(0, 0)
      .cost([](const LeakyReluParams& p, auto in, auto out) { return elementwise_cost(plain_leaky_loops(p), in, out); })
      .gradient(
          [](const LeakyReluParams& p, const GradientContext& g) -> Values {
            return {plain_leaky_gradient(p, g.output_grad(0), g.input(0))};
          },
          Saves::all_inputs())
      .layer_activation(leaky_layer_form);
  for (const char* type : {"leaky", "elu", "selu", "gelu"}) op.sample({{3, 4}}, {{"act_type", type}});
  register_leaky_helper(ops);
  register_elu_helper(ops);
  register_gelu_helper(ops);
}

}  // namespace hybridnet::ops
