#include "ops/op_samples.h"

namespace hybridnet {
namespace {

using namespace hybridnet::testing;

TEST(CtcLoss, GradientsEqualCentralDifferencesToSecondOrder) { check_gradients("CTCLoss"); }
TEST(CtcLoss, Float32AgreesWithFloat64) { check_dtype("CTCLoss", DType::kFloat32, 1e-5); }
TEST(CtcLoss, HalvesAgreeWithFloat64) {
  check_dtype("CTCLoss", DType::kFloat16, 2e-2);
  check_dtype("CTCLoss", DType::kBFloat16, 1e-1);
}

double loss_of(const Shape& shape, const std::vector<double>& data, const std::vector<double>& label,
               const TextAttrs& attrs = {}) {
  return values_of(call_op("CTCLoss", {array_of(shape, data), array_of({1, static_cast<int64_t>(label.size())}, label)},
                           attrs)[0])[0];
}

TEST(CtcLoss, CountsAlignments) {
  // Two steps, two symbols of equal probability: the label "1" has three of the four alignments: 11, 01 and 10.
  EXPECT_NEAR(loss_of({2, 1, 2}, {0, 0, 0, 0}, {1}), -std::log(0.75), 1e-12);
  EXPECT_NEAR(loss_of({2, 1, 2}, {0, 0, 0, 0}, {0}, {{"blank_label", "last"}}), -std::log(0.75), 1e-12);
  EXPECT_NEAR(loss_of({2, 1, 2}, {0, 0, 0, 0}, {0}), -std::log(0.25), 1e-12);  // no symbols: only blanks
  // Three steps, "11" needs the blank between: one alignment of eight.
  EXPECT_NEAR(loss_of({3, 1, 2}, {0, 0, 0, 0, 0, 0}, {1, 1}), -std::log(0.125), 1e-12);
}

TEST(CtcLoss, ALabelThatDoesNotFitCostsNothing) {
  NDArray data = array_of({2, 1, 2}, {0.3, 0.1, -1, 2});
  Recording on;
  mark_variable(data, NDArray::empty(data.spec()), GradReq::kWrite);
  const std::vector<NDArray> outputs{call_op("CTCLoss", {data, array_of({1, 2}, {1, 1})})[0]}, variables{data};
  EXPECT_EQ(values_of(outputs[0])[0], 0);
  const std::vector<NDArray> heads{array_of({1}, {1})};
  for (double d : values_of(grad(outputs, heads, variables, true, false, true)[0])) EXPECT_EQ(d, 0);
}

TEST(CtcLoss, SurvivesImprobableAlignments) {
  std::vector<double> data;
  for (int t = 0; t < 400; ++t) data.insert(data.end(), {0.0, -1000.0, -900.0});
  EXPECT_NEAR(loss_of({400, 1, 3}, data, {1, 2, 1}), 2900 - std::log(400.0 * 399 * 398 / 6), 1e-9);
}

TEST(CtcLoss, NamesTheSymbolThatDoesNotExist) {
  const NDArray data = random_array({4, 1, 3}, 1), label = array_of({1, 2}, {1, 7});
  EXPECT_THROW(values_of(call_op("CTCLoss", {data, label})[0]), ParamError);
  EXPECT_THROW(call_op("CTCLoss", {random_array({2, 1, 3}, 1), array_of({1, 3}, {1, 2, 1})}), ShapeError);
}

}  // namespace
}  // namespace hybridnet
