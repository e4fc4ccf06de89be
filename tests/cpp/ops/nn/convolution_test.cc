#include "ops/op_samples.h"

namespace hybridnet {
namespace {

using namespace hybridnet::testing;

class ConvolutionOps : public ::testing::TestWithParam<const char*> {};

TEST_P(ConvolutionOps, GradientsEqualCentralDifferencesToSecondOrder) { check_gradients(GetParam()); }
TEST_P(ConvolutionOps, Float32AgreesWithFloat64) { check_dtype(GetParam(), DType::kFloat32, 1e-5); }
TEST_P(ConvolutionOps, HalvesAgreeWithFloat64) {
  check_dtype(GetParam(), DType::kFloat16, 5e-3);
  check_dtype(GetParam(), DType::kBFloat16, 3e-2);
}
INSTANTIATE_TEST_SUITE_P(Samples, ConvolutionOps,
                         ::testing::Values("Convolution", "_conv_backward_data", "_conv_backward_weights"));

}  // namespace
}  // namespace hybridnet
