// Operators that start a backward pass: the identity forward; the gradient is a constant, independent of the output
// gradient.
#include "hybridnet/declare.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

const OpRef kGreaterScalar{"_greater_scalar"}, kMaximumScalar{"_maximum_scalar"};

enum class Normalization : int32_t { kNull, kBatch, kValid };

struct MakeLossParams {
  double grad_scale;
  Normalization normalization;
  double valid_thresh;
  static void describe(ParamSchema<MakeLossParams>& schema) {
    schema.field("grad_scale", &MakeLossParams::grad_scale).default_value(1.0).doc("The gradient of every element.");
    schema.field("valid_thresh", &MakeLossParams::valid_thresh)
        .default_value(0.0)
        .doc("Elements greater than this are valid (normalization='valid').");
    schema.field("normalization", &MakeLossParams::normalization)
        .choice("batch", Normalization::kBatch)
        .choice("null", Normalization::kNull)
        .choice("valid", Normalization::kValid)
        .default_value("null")
        .doc("batch: the gradient is divided by the size of the first axis; valid: by the number of valid elements.");
  }
};

Values make_loss_gradient(const MakeLossParams& p, const GradientContext& g) {
  const TensorSpec& spec = g.input_spec(0);
  double scale = p.grad_scale;
  if (p.normalization == Normalization::kBatch && spec.shape.ndim() > 0 && spec.shape[0] > 0) {
    scale /= static_cast<double>(spec.shape[0]);
  }
  const Value ones = full(spec.shape, spec.dtype, scale);
  if (p.normalization != Normalization::kValid || spec.shape.size() == 0) return {ones};
  const Value valid = call(kGreaterScalar, {g.input(0)}, {{"scalar", p.valid_thresh}});
  const Value count = call(kMaximumScalar, {sum(valid, Tuple::scalar(), true)}, {{"scalar", 1.0}});
  return {ones / count};
}

template <class P>
OpBuilder<P>& identity(OpBuilder<P>& op) {
  return op.input("data", "array of any shape")
      .output("out", "shape and dtype of data")
      .infer([](const P&, InferContext& c) { infer_elementwise(c); })
      .any_device()
      .cpu([](const P&, const KernelArgs& a) {
        if (a.out[0].data != a.in[0].data) run_elementwise<Pointwise::kCopy>(a);
      })
      .pointwise(&pointwise_span<Pointwise::kCopy>)
      .inplace(0, 0)
      .amp(AmpType::kFloat);
}

}  // namespace

void register_losses(OpRegistry& ops) {
  auto make_loss_op = ops.declare<MakeLossParams>("MakeLoss");
  make_loss_op.doc("Copies the input and starts a backward pass with a constant gradient.");
  identity(make_loss_op)
      .names_its_input()
      .gradient(make_loss_gradient, Saves::all_inputs())
      .sample({.inputs = {{3, 4}}, .check_gradient = false, .note = "the gradient is a constant by definition"})
      .sample({.inputs = {{3, 4}}, .attrs = {{"normalization", "valid"}}, .check_gradient = false, .note = "as above"});
  auto make_loss = ops.declare("make_loss");
  make_loss.alias("_sparse_make_loss").doc("Copies the input and starts a backward pass with a gradient of ones.");
  identity(make_loss)
      .mxnet_name("loss")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            return {full(g.input_spec(0).shape, g.input_spec(0).dtype, 1.0)};
          },
          Saves::nothing())
      .sample({.inputs = {{3, 4}}, .check_gradient = false, .note = "the gradient is a constant by definition"});
}

}  // namespace hybridnet::ops
