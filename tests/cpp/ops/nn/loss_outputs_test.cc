// Tests of operators whose gradient is the gradient of a loss, independent of the output gradient.
#include "ops/op_samples.h"

namespace hybridnet {
namespace {

using namespace hybridnet::testing;

// Returns the gradient of data for the output gradient `head`.
std::vector<double> data_gradient(const std::string& op, NDArray data, const NDArray& label, const TextAttrs& attrs,
                                  double head = 1.0) {
  Recording on;
  mark_variable(data, NDArray::empty(data.spec()), GradReq::kWrite);
  const std::vector<NDArray> outputs =
      label ? call_op(op, {data, label}, attrs) : call_op(op, std::vector<NDArray>{data}, attrs);
  const std::vector<NDArray> heads{
      array_of(outputs[0].shape(), std::vector<double>(static_cast<size_t>(outputs[0].size()), head), data.dtype())};
  const std::vector<NDArray> variables{data};
  return values_of(grad(outputs, heads, variables, true, false, true)[0]);
}

// Compares the derivative of sum(head2 * gradient) by central differences and by the tape.
void expect_second_order(const std::string& op, const Shape& shape, const std::vector<double>& labels,
                         const Shape& label_shape, const TextAttrs& attrs) {
  const std::vector<double> at = random_values(shape.size(), -1, 1, 3), weights = random_values(shape.size(), -1, 1, 4);
  const NDArray label = array_of(label_shape, labels);
  NDArray data = array_of(shape, at);
  Recording on;
  mark_variable(data, NDArray::empty(data.spec()), GradReq::kWrite);
  const std::vector<NDArray> outputs = call_op(op, {data, label}, attrs), variables{data};
  const std::vector<NDArray> heads{array_of(shape, std::vector<double>(at.size(), 0.75))};
  const std::vector<NDArray> first = grad(outputs, heads, variables, true, true, true);
  const std::vector<NDArray> second_heads{array_of(shape, weights)};
  const std::vector<double> second = values_of(grad(first, second_heads, variables, true, false, true)[0]);
  for (size_t i = 0; i < at.size(); ++i) {
    const auto weighted = [&](double step) {
      std::vector<double> moved = at;
      moved[i] += step;
      const std::vector<double> g = data_gradient(op, array_of(shape, moved), label, attrs, 0.75);
      double total = 0;
      for (size_t j = 0; j < g.size(); ++j) total += weights[j] * g[j];
      return total;
    };
    ASSERT_NEAR(second[i], (weighted(1e-5) - weighted(-1e-5)) / 2e-5, 1e-7) << op << " element " << i;
  }
}

void expect_values(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-7) << i;
}

const NDArray two_by_two() { return array_of({2, 2}, {0, 0, 0, std::log(3.0)}); }  // softmax: 1/2 1/2, 1/4 3/4

TEST(SoftmaxOutput, GradientIsOutputMinusLabel) {
  const NDArray label = array_of({2}, {0, 1});
  expect_values(data_gradient("SoftmaxOutput", two_by_two(), label, {}, 5.0), {-0.5, 0.5, 0.25, -0.25});
  expect_values(data_gradient("SoftmaxOutput", two_by_two(), label, {{"grad_scale", "2"}, {"normalization", "batch"}}),
                {-0.5, 0.5, 0.25, -0.25});
  expect_values(data_gradient("SoftmaxOutput", two_by_two(), label, {{"smooth_alpha", "0.25"}}), {-0.25, 0.25, 0, 0});
  expect_values(data_gradient("SoftmaxOutput", two_by_two(), label, {{"out_grad", "True"}}, 5.0),
                {-2.5, 2.5, 1.25, -1.25});
}

TEST(SoftmaxOutput, IgnoredLabelsHaveNoGradientAndDoNotCount) {
  const NDArray label = array_of({2}, {0, 1});
  const TextAttrs ignore = {{"use_ignore", "True"}, {"ignore_label", "0"}, {"normalization", "valid"}};
  expect_values(data_gradient("SoftmaxOutput", two_by_two(), label, ignore), {0, 0, 0.25, -0.25});
  // Without use_ignore the label is still not counted, but has its gradient.
  expect_values(
      data_gradient("SoftmaxOutput", two_by_two(), label, {{"ignore_label", "0"}, {"normalization", "valid"}}),
      {-0.5, 0.5, 0.25, -0.25});
}

TEST(SoftmaxOutput, TakesProbabilitiesAsLabel) {
  const NDArray label = array_of({2, 2}, {0.5, 0.5, 0, 1});
  expect_values(data_gradient("SoftmaxOutput", two_by_two(), label, {{"grad_scale", "2"}}), {0, 0, 0.5, -0.5});
}

TEST(SoftmaxOutput, OneLabelForEachPositionOfMultiOutput) {
  const NDArray data = array_of({1, 2, 2}, {0, 0, 0, std::log(3.0)});  // along axis 1: 1/2 1/2 and 1/4 3/4
  const NDArray label = array_of({1, 2}, {1, 0});
  expect_values(data_gradient("SoftmaxOutput", data, label, {{"multi_output", "True"}}), {0.25, -0.375, -0.25, 0.375});
  expect_values(data_gradient("SoftmaxOutput", data, label, {{"multi_output", "True"}, {"normalization", "valid"}}),
                {0.25, -0.375, -0.25, 0.375});
}

TEST(SoftmaxOutput, LabelsThatAreNoClassMatchNothing) {
  const NDArray label = array_of({2}, {NAN, 7});
  expect_values(data_gradient("SoftmaxOutput", two_by_two(), label, {}), {0.5, 0.5, 0.25, 0.75});
}

TEST(SoftmaxOutput, NamesTheLabelThatDoesNotFit) {
  EXPECT_THROW(call_op("SoftmaxOutput", {two_by_two(), array_of({3}, {0, 1, 1})}), ShapeError);
  EXPECT_THROW(
      call_op("SoftmaxOutput", {random_array({2, 3, 4}, 1), random_array({2, 3}, 2)}, {{"multi_output", "True"}}),
      ShapeError);
}

TEST(LossOutputs, AreDifferentiableAgain) {
  expect_second_order("SoftmaxOutput", {3, 4}, {0, 2, 1}, {3}, {{"smooth_alpha", "0.2"}, {"grad_scale", "1.5"}});
  expect_second_order(
      "SoftmaxOutput", {3, 4}, {0, 2, 1}, {3},
      {{"use_ignore", "True"}, {"ignore_label", "2"}, {"normalization", "valid"}, {"out_grad", "True"}});
  expect_second_order("SoftmaxOutput", {2, 3, 2}, {0, 2, 1, 1}, {2, 2}, {{"multi_output", "True"}});
  expect_second_order("LinearRegressionOutput", {2, 3}, {0, 1, 0, 1, 1, 0}, {2, 3}, {});
  expect_second_order("LogisticRegressionOutput", {2, 3}, {0, 1, 0, 1, 1, 0}, {2, 3}, {});
  expect_second_order("SVMOutput", {2, 3}, {0, 2}, {2}, {});
}

TEST(RegressionOutputs, GradientsAreThoseOfTheirLosses) {
  const NDArray data = array_of({2, 2}, {1, -1, 0, 2}), label = array_of({2, 2}, {0, 0, 1, 2});
  expect_values(data_gradient("LinearRegressionOutput", data, label, {{"grad_scale", "4"}}, 9.0), {2, -2, -2, 0});
  expect_values(data_gradient("MAERegressionOutput", data, label, {}), {0.5, -0.5, -0.5, 0});
  const double s = 1 / (1 + std::exp(-1.0));
  expect_values(data_gradient("LogisticRegressionOutput", array_of({1, 2}, {1, 0}), array_of({1, 2}, {1, 0}), {}),
                {(s - 1) / 2, 0.25});
}

TEST(RegressionOutputs, LabelOfOneOutputMayLackTheAxis) {
  expect_values(data_gradient("LinearRegressionOutput", array_of({2, 1}, {1, 2}), array_of({2}, {0, 4}), {}), {1, -2});
  EXPECT_THROW(call_op("LinearRegressionOutput", {random_array({2, 3}, 1), random_array({3, 2}, 2)}), ShapeError);
}

TEST(SvmOutput, HingeAndSquaredHinge) {
  const NDArray data = array_of({1, 3}, {0.5, -2, 0.25}), label = array_of({1}, {0});
  expect_values(data_gradient("SVMOutput", data, label, {{"use_linear", "True"}, {"regularization_coefficient", "2"}}),
                {-2, 0, 2});
  expect_values(data_gradient("SVMOutput", data, label, {}), {-1, 0, 2.5});
}

TEST(MakeLoss, GradientBeginsHere) {
  const NDArray data = array_of({2, 2}, {1, -1, 0, 2});
  expect_values(data_gradient("make_loss", data, {}, {}, 7.0), {1, 1, 1, 1});
  expect_values(data_gradient("MakeLoss", data, {}, {{"grad_scale", "3"}}, 7.0), {3, 3, 3, 3});
  expect_values(data_gradient("MakeLoss", data, {}, {{"grad_scale", "3"}, {"normalization", "batch"}}),
                {1.5, 1.5, 1.5, 1.5});
  expect_values(data_gradient("MakeLoss", data, {}, {{"normalization", "valid"}}), {0.5, 0.5, 0.5, 0.5});
  expect_values(data_gradient("MakeLoss", data, {}, {{"normalization", "valid"}, {"valid_thresh", "5"}}), {1, 1, 1, 1});
}

TEST(SoftmaxCrossEntropy, SumsTheBatch) {
  const NDArray label = array_of({2}, {0, 1});
  EXPECT_NEAR(values_of(call_op("softmax_cross_entropy", {two_by_two(), label})[0])[0],
              std::log(2.0) + std::log(4.0 / 3), 1e-12);
  expect_values(data_gradient("softmax_cross_entropy", two_by_two(), label, {}, 2.0), {-1, 1, 0.5, -0.5});
}

TEST(SoftmaxActivation, GradientsEqualCentralDifferencesToSecondOrder) {
  check_gradients("SoftmaxActivation");
  check_gradients("softmin");
}

}  // namespace
}  // namespace hybridnet
