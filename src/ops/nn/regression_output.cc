// LinearRegressionOutput, LogisticRegressionOutput, MAERegressionOutput: output layers whose gradient is the gradient
// of a loss.
#include "hybridnet/declare.h"
#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/pointwise.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

const OpRef kSigmoid{"sigmoid"}, kSign{"sign"};

struct RegressionParams {
  float grad_scale;
  static void describe(ParamSchema<RegressionParams>& schema) {
    schema.field("grad_scale", &RegressionParams::grad_scale).default_value(1.0).doc("Factor of the gradient.");
  }
};

void infer_regression(const RegressionParams&, InferContext& c) {
  c.unify_dtypes();
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  const Shape &data = c.in_shape(0), &label = c.in_shape(1);
  if (!data.known()) return;
  if (!label.rank_known()) return c.set_in_shape(1, data.ndim() == 2 && data[1] == 1 ? Shape{data[0]} : data);
  if (!label.known()) return;
  const bool same_batch = data.ndim() == 0 || label.ndim() == 0 || data[0] == label[0];
  if (same_batch && data.size() == label.size()) return;
  throw ShapeError({.input = "label",
                    .expected = "the batch and the number of elements of data, shape " + data.str(),
                    .given = label.str()});
}

// (prediction - label) * grad_scale / number of outputs per example. `difference` computes the difference from data and
// label.
template <typename F>
Values regression_gradient(const RegressionParams& p, const GradientContext& g, F difference) {
  if (!g.output_grad(0) || g.input_spec(0).shape.size() == 0) return Values(2);
  const Shape &data = g.input_spec(0).shape, &label = g.input_spec(1).shape;
  const double outputs = label.ndim() > 0 ? static_cast<double>(label.size(1, label.ndim())) : 1.0;
  const Value target = label == data ? g.input(1) : reshape(g.input(1), data);
  return {difference(g.input(0), target) * (p.grad_scale / outputs), Value{}};
}

OpBuilder<RegressionParams> regression(OpRegistry& ops, const std::string& name, std::string doc) {
  const auto sample = [](Shape data, Shape label, std::vector<std::pair<std::string, std::string>> attrs = {}) {
    return Sample{.inputs = {std::move(data), std::move(label)},
                  .attrs = std::move(attrs),
                  .check_gradient = false,
                  .note = "the gradient is that of the loss"};
  };
  auto op = ops.declare<RegressionParams>(name);
  op.alias("_sparse_" + name)
      .doc(std::move(doc))
      .input("data", "floating tensor (batch, ...)")
      .input("label", "as many elements as data, same batch; no gradient")
      .output("output", "shape and dtype of data")
      .infer(infer_regression)
      .inplace(0, 0)
      .predicts()
      .amp(AmpType::kFloat)
      .sample(sample({3, 4}, {3, 4}))
      .sample(sample({3, 1}, Shape{3}, {{"grad_scale", "0.5"}}))
      .sample(sample({2, 3, 2}, {2, 6}))
      .sample(sample({0, 3}, {0, 3}));
  return op;
}

void run_copy(const RegressionParams&, const KernelArgs& a) {
  if (a.out[0].data == a.in[0].data) return;
  kernels::convert_parallel(a.in[0].dtype, a.in[0].data, a.out[0].dtype, a.out[0].data, a.out[0].size());
}

void run_sigmoid(const RegressionParams&, const KernelArgs& a) {
  static const kernels::SpanLoops& loops = kernels::loops(kernels::Pointwise::kSigmoid);
  const void* in = a.in[0].data;
  kernels::apply_parallel(loops, a.in[0].dtype, &in, a.out[0].data, a.out[0].size());
}

}  // namespace

void register_regression_output(OpRegistry& ops) {
  regression(ops, "LinearRegressionOutput",
             "The data itself. Its gradient is that of half the squared distance to the label, divided by the number "
             "of outputs per example, independent of the output gradient.")
      .any_device()
      .cpu(run_copy, kFloating)
      .gradient(
          [](const RegressionParams& p, const GradientContext& g) {
            return regression_gradient(p, g, [](const Value& x, const Value& label) { return x - label; });
          },
          Saves::all_inputs());
  regression(ops, "MAERegressionOutput",
             "The data itself. Its gradient is that of the absolute distance to the label, divided by the number of "
             "outputs per example, independent of the output gradient.")
      .any_device()
      .cpu(run_copy, kFloating)
      .gradient(
          [](const RegressionParams& p, const GradientContext& g) {
            return regression_gradient(p, g,
                                       [](const Value& x, const Value& label) { return call(kSign, {x - label}); });
          },
          Saves::all_inputs());
  regression(ops, "LogisticRegressionOutput",
             "sigmoid(data). Its gradient is that of the cross entropy with the label, divided by the number of "
             "outputs per example, independent of the output gradient.")
      .any_device()
      .cpu(run_sigmoid, kFloating)
      .gradient(
          [](const RegressionParams& p, const GradientContext& g) {
            return regression_gradient(p, g,
                                       [](const Value& x, const Value& label) { return call(kSigmoid, {x}) - label; });
          },
          Saves::all_inputs());
}

}  // namespace hybridnet::ops
