// SoftmaxActivation: softmax over the last axis or over the channels.
#include "hybridnet/declare.h"
#include "kernels/norm/softmax.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

const OpRef kBackward{"_softmax_backward"};

enum class SoftmaxMode : int32_t { kInstance, kChannel };

struct SoftmaxActivationParams {
  SoftmaxMode mode;
  int axis(int ndim) const { return mode == SoftmaxMode::kChannel ? 1 : ndim - 1; }
  static void describe(ParamSchema<SoftmaxActivationParams>& schema) {
    schema.field("mode", &SoftmaxActivationParams::mode)
        .default_value("instance")
        .choice("instance", SoftmaxMode::kInstance)
        .choice("channel", SoftmaxMode::kChannel)
        .doc("The axis along which the outputs sum to 1. instance: the last axis; channel: the second.");
  }
};

void infer_softmax_activation(const SoftmaxActivationParams& p, InferContext& c) {
  c.unify_dtypes();
  c.unify_shapes();
  const Shape& data = c.in_shape(0);
  const int at_least = p.mode == SoftmaxMode::kChannel ? 3 : 1;
  if (data.rank_known() && data.ndim() < at_least) {
    throw ShapeError({.input = "data",
                      .expected = "at least " + std::to_string(at_least) + " axes",
                      .given = "shape " + data.str(),
                      .because = at_least == 3 ? "mode is channel" : "the last axis is normalized"});
  }
}

template <typename T>
void run(const SoftmaxActivationParams& p, const KernelArgs& a) {
  const Shape& shape = *a.in[0].shape;
  kernels::softmax<T>(kernels::RowShape::along(shape, p.axis(shape.ndim())), a.in[0].as<T>(), 1, false, nullptr,
                      a.out[0].as<T>());
}

void run_softmax_activation(const SoftmaxActivationParams& p, const KernelArgs& a) {
  a.in[0].dtype == DType::kFloat64 ? run<double>(p, a) : run<float>(p, a);
}

Values softmax_activation_gradient(const SoftmaxActivationParams& p, const GradientContext& g) {
  if (!g.output_grad(0)) return {};
  const int axis = p.axis(g.input_spec(0).shape.ndim());
  return {call(kBackward, {g.output_grad(0), g.output(0)}, {{"axis", axis}})};
}

}  // namespace

void register_softmax_activation(OpRegistry& ops) {
  ops.declare<SoftmaxActivationParams>("SoftmaxActivation")
      .doc("Softmax over the last axis, or, with mode channel, over the second. The operator softmax is equivalent.")
      .input("data", "floating tensor; mode channel: at least 3 axes")
      .output("output", "shape and dtype of data")
      .infer(infer_softmax_activation)
      .any_device()
      .cpu(run_softmax_activation, kFloating)
      .halves_through_float()
      .gradient(softmax_activation_gradient, Saves::of({}, {0}))
      .inplace(0, 0)
      .cost([](const SoftmaxActivationParams&, auto in, auto) { return in[0].shape.size() + 300; })
      .amp(AmpType::kFloat)
      .sample({{3, 4}})
      .sample({{2, 3, 2, 2}}, {{"mode", "channel"}})
      .sample({{2, 3, 4}})
      .sample({{0, 3}});
}

}  // namespace hybridnet::ops
