#include "hybridnet/threads.h"
#include "ops/op_samples.h"

namespace hybridnet {
namespace {

using namespace hybridnet::testing;

class BatchNormOps : public ::testing::TestWithParam<const char*> {};

TEST_P(BatchNormOps, GradientsEqualCentralDifferencesToSecondOrder) {
  check_gradients(GetParam(), true, true);
  check_gradients(GetParam(), true, false);
}
TEST_P(BatchNormOps, Float32AgreesWithFloat64) { check_dtype(GetParam(), DType::kFloat32, 3e-5); }
TEST_P(BatchNormOps, HalvesAgreeWithFloat64) {
  for (DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const NDArray x = random_array({4, 3, 5, 5}, 1, dtype);
    std::vector<NDArray> in{x, random_array(Shape{3}, 2, DType::kFloat32), random_array(Shape{3}, 3, DType::kFloat32),
                            random_array(Shape{3}, 4, DType::kFloat32),
                            random_array(Shape{3}, 5, DType::kFloat32, 0.5, 1)};
    std::vector<NDArray> wide{array_of(x.shape(), values_of(x))};
    for (size_t i = 1; i < 5; ++i) wide.push_back(array_of(in[i].shape(), values_of(in[i])));
    std::vector<std::pair<std::string, std::string>> attrs{{"fix_gamma", "False"}};
    if (std::string(GetParam()) == "_contrib_SyncBatchNorm") attrs.push_back({"key", "k"});
    const auto a = values_of(call_op(GetParam(), in, attrs)[0]), b = values_of(call_op(GetParam(), wide, attrs)[0]);
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], dtype == DType::kFloat16 ? 5e-3 : 5e-2);
  }
}
INSTANTIATE_TEST_SUITE_P(Samples, BatchNormOps,
                         ::testing::Values("BatchNorm", "_contrib_BatchNormWithReLU", "_contrib_SyncBatchNorm"));

TEST(BatchNorm, TrainingMovesTheStatisticsAndInferenceUsesThem) {
  const NDArray x = random_array({6, 2, 3}, 1), gamma = random_array(Shape{2}, 2), beta = random_array(Shape{2}, 3);
  const NDArray mean = array_of(Shape{2}, {1, 2}), variance = array_of(Shape{2}, {3, 4});
  const std::vector<double> data = values_of(x);
  double batch_mean[2] = {}, batch_variance[2] = {};
  for (size_t i = 0; i < data.size(); ++i) batch_mean[i / 3 % 2] += data[i] / 18;
  for (size_t i = 0; i < data.size(); ++i)
    batch_variance[i / 3 % 2] += std::pow(data[i] - batch_mean[i / 3 % 2], 2) / 18;
  {
    Recording on;
    call_op("BatchNorm", {x, gamma, beta, mean, variance}, {{"momentum", "0.75"}});
  }
  for (size_t c = 0; c < 2; ++c) {
    EXPECT_NEAR(values_of(mean)[c], 0.75 * static_cast<double>(c + 1) + 0.25 * batch_mean[c], 1e-12);
    EXPECT_NEAR(values_of(variance)[c], 0.75 * static_cast<double>(c + 3) + 0.25 * batch_variance[c], 1e-12);
  }
  const auto before = values_of(mean);
  const auto y = values_of(call_op("BatchNorm", {x, gamma, beta, mean, variance})[0]);
  EXPECT_EQ(values_of(mean), before) << "inference moved the statistics";
  for (size_t i = 0; i < data.size(); ++i) {
    const size_t c = i / 3 % 2;
    EXPECT_NEAR(y[i], (data[i] - before[c]) / std::sqrt(values_of(variance)[c] + 1e-3f) + values_of(beta)[c], 1e-9);
  }
}

TEST(BatchNorm, TheSameBitsForAnyNumberOfCores) {
  for (const Shape& shape : {Shape{8, 16, 40, 40}, Shape{2000, 48}}) {
    std::vector<std::vector<double>> results;
    for (int cores : {1, 2, 4}) {
      const CoreScope scope(cores);
      Recording on;
      NDArray x = random_array(shape, 1, DType::kFloat32);
      mark_variable(x, NDArray::empty(x.spec()), GradReq::kWrite);
      const Shape c{shape[1]};
      const auto y =
          call_op("BatchNorm", {x, random_array(c, 2, DType::kFloat32), random_array(c, 3, DType::kFloat32),
                                random_array(c, 4, DType::kFloat32), random_array(c, 5, DType::kFloat32, 1, 2)});
      const auto dx = grad(std::vector<NDArray>{y[0]}, std::vector<NDArray>{random_array(shape, 6, DType::kFloat32)},
                           std::vector<NDArray>{x}, false, false, true);
      results.push_back(values_of(y[0]));
      const auto d = values_of(dx[0]);
      results.back().insert(results.back().end(), d.begin(), d.end());
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

}  // namespace
}  // namespace hybridnet
