#include "ops/op_samples.h"

namespace hybridnet {
namespace {

using namespace hybridnet::testing;

class NormOps : public ::testing::TestWithParam<const char*> {};

TEST_P(NormOps, GradientsEqualCentralDifferencesToSecondOrder) { check_gradients(GetParam()); }
TEST_P(NormOps, Float32AgreesWithFloat64) { check_dtype(GetParam(), DType::kFloat32, 2e-5); }
TEST_P(NormOps, HalvesAgreeWithFloat64) {
  check_dtype(GetParam(), DType::kFloat16, 2e-2);
  check_dtype(GetParam(), DType::kBFloat16, 1e-1);
}
INSTANTIATE_TEST_SUITE_P(Samples, NormOps,
                         ::testing::Values("GroupNorm", "InstanceNorm", "_backward_GroupNorm", "L2Normalization",
                                           "_lrn_window_sum"));

TEST(GroupNorm, NamesTheChannelsThatDoNotDivide) {
  const NDArray data = random_array({2, 5, 3}, 1), scale = random_array({2}, 2);
  EXPECT_THROW(call_op("GroupNorm", {data, scale, scale}, {{"num_groups", "2"}}), ShapeError);
}

TEST(GroupNorm, GivesGroupsOfMeanZeroAndVarianceOne) {
  const NDArray data = random_array({3, 4, 50}, 1), one = array_of({2}, {1, 1}), zero = array_of({2}, {0, 0});
  const std::vector<double> out =
      values_of(call_op("GroupNorm", {data, one, zero}, {{"num_groups", "2"}, {"eps", "0"}})[0]);
  for (size_t row = 0; row < 6; ++row) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < 100; ++i) {
      sum += out[row * 100 + i];
      squares += out[row * 100 + i] * out[row * 100 + i];
    }
    EXPECT_NEAR(sum, 0, 1e-10);
    EXPECT_NEAR(squares, 100, 1e-9);
  }
}

}  // namespace
}  // namespace hybridnet
