#include "kernels/product/gemm.h"
#include "ops/op_samples.h"

namespace hybridnet {
namespace {

using namespace hybridnet::testing;

class ProductOps : public ::testing::TestWithParam<const char*> {};

TEST_P(ProductOps, GradientsEqualCentralDifferencesToSecondOrder) { check_gradients(GetParam()); }
TEST_P(ProductOps, Float32AgreesWithFloat64) { check_dtype(GetParam(), DType::kFloat32, 1e-5); }
TEST_P(ProductOps, HalvesAgreeWithFloat64) {
  check_dtype(GetParam(), DType::kFloat16, 5e-3);
  check_dtype(GetParam(), DType::kBFloat16, 3e-2);
}
INSTANTIATE_TEST_SUITE_P(Samples, ProductOps,
                         ::testing::Values("dot", "batch_dot", "_linalg_gemm", "_linalg_gemm2", "FullyConnected"));

template <typename T>
void check_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, T beta) {
  const std::vector<double> a = random_values(m * k, -1, 1, 1), b = random_values(k * n, -1, 1, 2),
                            c = random_values(m * n, -1, 1, 3);
  std::vector<T> fa(a.begin(), a.end()), fb(b.begin(), b.end()), fc(c.begin(), c.end());
  if (beta == 0) std::fill(fc.begin(), fc.end(), std::numeric_limits<T>::quiet_NaN());
  kernels::gemm(kernels::GemmShape::dense(ta, tb, m, n, k), alpha, fa.data(), fb.data(), beta, fc.data());
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t x = 0; x < k; ++x)
        sum += a[static_cast<size_t>(ta ? x * m + i : i * k + x)] * b[static_cast<size_t>(tb ? j * k + x : x * n + j)];
      const double expected = alpha * sum + (beta == 0 ? 0 : beta * c[static_cast<size_t>(i * n + j)]);
      ASSERT_NEAR(fc[static_cast<size_t>(i * n + j)], expected, (sizeof(T) == 4 ? 1e-4 : 1e-12) * (1 + std::sqrt(k)))
          << m << "x" << n << "x" << k << " ta " << ta << " tb " << tb << " at " << i << ", " << j;
    }
  }
}

TEST(Gemm, EverySizeTranspositionAndBeta) {
  const int64_t sizes[][3] = {{1, 1, 1},    {3, 5, 7},    {8, 24, 16}, {9, 25, 17}, {97, 241, 300},
                              {1, 300, 40}, {130, 1, 70}, {5, 6, 0},   {64, 64, 64}};
  for (const auto& s : sizes) {
    for (bool ta : {false, true}) {
      for (bool tb : {false, true}) {
        for (double beta : {0.0, 1.0, 0.5}) {
          check_gemm<double>(ta, tb, s[0], s[1], s[2], 1.5, beta);
          check_gemm<float>(ta, tb, s[0], s[1], s[2], 1.5f, static_cast<float>(beta));
        }
      }
    }
  }
}

TEST(Gemm, Float64GivesTheSameBitsForAnyNumberOfCores) {
  const int64_t m = 200, n = 500, k = 300;
  const std::vector<double> a = random_values(m * k, -1, 1, 1), b = random_values(k * n, -1, 1, 2);
  std::vector<double> first(static_cast<size_t>(m * n)), other(first.size());
  for (int cores : {1, 2, 4}) {
    const CoreScope scope(cores);
    auto& out = cores == 1 ? first : other;
    kernels::gemm(kernels::GemmShape::dense(false, true, m, n, k), 1.0, a.data(), b.data(), 0.0, out.data());
    if (cores == 1) continue;
    EXPECT_EQ(first, other) << cores << " cores";
  }
}

TEST(FullyConnected, NamesTheWeightWhenItDoesNotFit) {
  const NDArray data = random_array({2, 5}, 1), weight = random_array({4, 3}, 2);
  try {
    call_op("FullyConnected", {data, weight}, {{"num_hidden", "4"}, {"no_bias", "True"}});
    FAIL() << "no error";
  } catch (const ShapeError& e) {
    EXPECT_EQ(e.fields().input, "weight");
    EXPECT_NE(std::string(e.what()).find("(4, 5)"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("(4, 3)"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace hybridnet
