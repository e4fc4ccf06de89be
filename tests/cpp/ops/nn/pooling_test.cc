#include <limits>

#include "ops/op_samples.h"

namespace hybridnet {
namespace {

using namespace hybridnet::testing;

class PoolingOps : public ::testing::TestWithParam<const char*> {};

TEST_P(PoolingOps, GradientsEqualCentralDifferencesToSecondOrder) { check_gradients(GetParam()); }
TEST_P(PoolingOps, Float32AgreesWithFloat64) { check_dtype(GetParam(), DType::kFloat32, 1e-5); }
TEST_P(PoolingOps, HalvesAgreeWithFloat64) {
  check_dtype(GetParam(), DType::kFloat16, 5e-3);
  check_dtype(GetParam(), DType::kBFloat16, 3e-2);
}
INSTANTIATE_TEST_SUITE_P(Samples, PoolingOps, ::testing::Values("Pooling", "_sum_pooling_backward"));

TEST(Pooling, TheGradientOfAMaximumGoesToTheFirstOfEqualElements) {
  for (const char* layout : {"NCHW", "NHWC"}) {
    Recording on;
    const bool last = std::string(layout) == "NHWC";
    NDArray x = array_of(last ? Shape{1, 2, 2, 1} : Shape{1, 1, 2, 2}, {1, 3, 3, 2});
    mark_variable(x, NDArray::empty(x.spec()), GradReq::kWrite);
    const auto y = call_op("Pooling", {x}, {{"kernel", "(2, 2)"}, {"layout", layout}});
    const auto dx = grad(y, {}, std::vector<NDArray>{x}, false, false, true);
    EXPECT_EQ(values_of(dx[0]), (std::vector<double>{0, 1, 0, 0})) << layout;
  }
}

TEST(Pooling, MaximaOfInfinitiesAreInfinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const char* layout : {"NCHW", "NHWC"}) {
    const Shape one = std::string(layout) == "NHWC" ? Shape{1, 2, 2, 1} : Shape{1, 1, 2, 2};
    const auto maximum = [&](double last) {
      const NDArray x = array_of(one, {-kInfinity, -kInfinity, -kInfinity, last}, DType::kFloat32);
      return values_of(call_op("Pooling", {x}, {{"kernel", "(2, 2)"}, {"layout", layout}})[0])[0];
    };
    EXPECT_EQ(maximum(-kInfinity), -kInfinity) << layout;
    EXPECT_EQ(maximum(-3), -3) << layout;
    EXPECT_EQ(maximum(kInfinity), kInfinity) << layout;
  }
}

}  // namespace
}  // namespace hybridnet
