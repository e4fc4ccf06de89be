// SVMOutput: an output layer whose gradient is the gradient of a support vector machine's loss.
#include "hybridnet/declare.h"
#include "kernels/elementwise/convert.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

const OpRef kOneHot{"one_hot"}, kRelu{"relu"};

struct SvmOutputParams {
  float margin, regularization_coefficient;
  bool use_linear;
  static void describe(ParamSchema<SvmOutputParams>& schema) {
    schema.field("margin", &SvmOutputParams::margin)
        .default_value(1.0)
        .doc("Margin of the loss: the label's score should be above it, the other scores below its negative.");
    schema.field("regularization_coefficient", &SvmOutputParams::regularization_coefficient)
        .default_value(1.0)
        .doc("Factor of the gradient.");
    schema.field("use_linear", &SvmOutputParams::use_linear)
        .default_value(false)
        .doc("Whether the loss is the hinge loss; otherwise its square.");
  }
};

void infer_svm_output(const SvmOutputParams&, InferContext& c) {
  c.unify_dtypes();
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) return;
  if (data.ndim() == 0) throw ShapeError({.input = "data", .expected = "at least 1 axis", .given = "shape ()"});
  c.set_in_shape(1, Shape(data.dims().first(static_cast<size_t>(data.ndim() - 1))));
}

void run_copy(const SvmOutputParams&, const KernelArgs& a) {
  if (a.out[0].data == a.in[0].data) return;
  kernels::convert_parallel(a.in[0].dtype, a.in[0].data, a.out[0].dtype, a.out[0].data, a.out[0].size());
}

// With side = 1 for the label's score and -1 for the others, the loss is max(0, margin - side * score), or its square.
Values svm_output_gradient(const SvmOutputParams& p, const GradientContext& g) {
  if (!g.output_grad(0) || g.input_spec(0).shape.size() == 0) return Values(2);
  const TensorSpec& data = g.input_spec(0);
  const Value hot =
      call(kOneHot, {g.input(1)}, {{"depth", data.shape[data.shape.ndim() - 1]}, {"dtype", dtype_name(data.dtype)}});
  const Value side = hot * 2.0 - 1.0, missing = p.margin - side * g.input(0);
  const Value slope = p.use_linear ? greater(missing, 0.0) : call(kRelu, {missing}) * 2.0;
  return {side * slope * -static_cast<double>(p.regularization_coefficient), Value{}};
}

}  // namespace

void register_svm_output(OpRegistry& ops) {
  const auto sample = [](std::vector<Shape> inputs, std::vector<std::pair<std::string, std::string>> attrs) {
    return Sample{.inputs = std::move(inputs),
                  .attrs = std::move(attrs),
                  .low = 0,
                  .high = 3,
                  .integer_valued = true,
                  .check_gradient = false,
                  .note = "the gradient is that of the loss"};
  };
  ops.declare<SvmOutputParams>("SVMOutput")
      .doc(
          "The data itself. Its gradient is that of the hinge loss of every score, or of its square, independent of "
          "the output gradient.")
      .input("data", "scores (..., classes), floating")
      .input("label", "class numbers, shape of data without the last axis; no gradient")
      .output("output", "shape and dtype of data")
      .infer(infer_svm_output)
      .any_device()
      .cpu(run_copy, kFloating)
      .gradient(svm_output_gradient, Saves::all_inputs())
      .inplace(0, 0)
      .predicts()
      .amp(AmpType::kFloat)
      .sample(sample({{3, 4}, {3}}, {}))
      .sample(sample({{3, 4}, {3}}, {{"use_linear", "True"}, {"margin", "0.5"}, {"regularization_coefficient", "2.0"}}))
      .sample(sample({{2, 3, 4}, {2, 3}}, {}))
      .sample(sample({{0, 4}, Shape{0}}, {}));
}

}  // namespace hybridnet::ops
