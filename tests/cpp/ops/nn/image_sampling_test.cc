// Tests of operators that resample images or read them at points and regions.
#include "hybridnet/threads.h"
#include "ops/op_samples.h"

namespace hybridnet {
namespace {

using namespace hybridnet::testing;

class ImageSampling : public ::testing::TestWithParam<const char*> {};

TEST_P(ImageSampling, GradientsEqualCentralDifferencesToSecondOrder) { check_gradients(GetParam()); }
TEST_P(ImageSampling, Float32AgreesWithFloat64) { check_dtype(GetParam(), DType::kFloat32, 1e-4); }
TEST_P(ImageSampling, HalvesAgreeWithFloat64) {
  check_dtype(GetParam(), DType::kFloat16, 2e-2);
  check_dtype(GetParam(), DType::kBFloat16, 1e-1);
}
INSTANTIATE_TEST_SUITE_P(Samples, ImageSampling,
                         ::testing::Values("UpSampling", "_contrib_BilinearResize2D", "_contrib_AdaptiveAvgPooling2D",
                                           "_resample2d", "BilinearSampler", "_sample_points", "_spread_points",
                                           "GridGenerator", "SpatialTransformer", "_roi_scatter", "_roi_gather"));

TEST(RegionOps, Float32AgreesWithFloat64) {
  for (const char* op : {"ROIPooling", "_contrib_ROIAlign", "_backward_ROIAlign"})
    check_dtype(op, DType::kFloat32, 1e-4);
}

// Checks gradients of data only, to second order: regions have none.
void expect_linear_gradient(const std::string& op, const Shape& data_shape, const NDArray& rois,
                            const TextAttrs& attrs) {
  NDArray data = random_array(data_shape, 1);
  Recording on;
  mark_variable(data, NDArray::empty(data.spec()), GradReq::kWrite);
  const std::vector<NDArray> outputs{call_op(op, {data, rois}, attrs)[0]}, variables{data};
  const std::vector<NDArray> heads{random_array(outputs[0].shape(), 2)};
  const std::vector<double> gradient = values_of(grad(outputs, heads, variables, true, false, true)[0]);
  const std::vector<double> at = values_of(data);
  const auto value = [&](const std::vector<double>& x) {
    return inner({call_op(op, {array_of(data_shape, x), rois}, attrs)[0]}, heads);
  };
  for (size_t i = 0; i < at.size(); ++i) {
    std::vector<double> up = at, down = at;
    up[i] += 1e-5;
    down[i] -= 1e-5;
    ASSERT_NEAR(gradient[i], (value(up) - value(down)) / 2e-5, 1e-6) << op << " element " << i;
  }
}

const NDArray regions() {  // inside, across the border, no such image, smaller than a pixel
  return array_of({5, 5},
                  {0, 0.4, 0.7, 3.2, 4.1, 1, -1, 2, 9, 9, 2, 0, 0, 2, 2, -1, 0, 0, 2, 2, 1, 1.2, 1.1, 1.4, 1.3});
}

TEST(RegionOps, GradientsEqualCentralDifferences) {
  expect_linear_gradient("ROIPooling", {2, 2, 5, 4}, regions(), {{"pooled_size", "(2, 3)"}, {"spatial_scale", "1"}});
  expect_linear_gradient("_contrib_ROIAlign", {2, 2, 5, 4}, regions(),
                         {{"pooled_size", "(2, 3)"}, {"spatial_scale", "0.7"}});
  expect_linear_gradient(
      "_contrib_ROIAlign", {2, 12, 5, 4}, regions(),
      {{"pooled_size", "(2, 3)"}, {"spatial_scale", "1"}, {"position_sensitive", "True"}, {"aligned", "True"}});
}

TEST(RoiPooling, PoolsTheExampleOfItsPaper) {
  std::vector<double> values(48);
  for (size_t i = 0; i < 48; ++i) values[i] = static_cast<double>(i);
  const NDArray data = array_of({1, 1, 8, 6}, values), roi = array_of({1, 5}, {0, 0, 0, 4, 4});
  EXPECT_EQ(values_of(call_op("ROIPooling", {data, roi}, {{"pooled_size", "(2, 2)"}, {"spatial_scale", "1"}})[0]),
            (std::vector<double>{14, 16, 26, 28}));
  EXPECT_EQ(values_of(call_op("ROIPooling", {data, roi}, {{"pooled_size", "(2, 2)"}, {"spatial_scale", "0.7"}})[0]),
            (std::vector<double>{7, 9, 19, 21}));
}

TEST(RegionOps, HostileRegionsGiveZeros) {
  const NDArray data = random_array({1, 1, 4, 4}, 1);
  const NDArray rois = array_of({3, 5}, {NAN, 0, 0, 2, 2, 5, 0, 0, 2, 2, 0, NAN, INFINITY, -INFINITY, 1e30});
  for (const char* op : {"ROIPooling", "_contrib_ROIAlign"}) {
    const auto out = values_of(call_op(op, {data, rois}, {{"pooled_size", "(2, 2)"}, {"spatial_scale", "1"}})[0]);
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(out[i], 0) << op;
  }
  const NDArray points = array_of({1, 2, 1, 3}, {NAN, INFINITY, 1e30, 0, 0, 0});
  for (double v : values_of(call_op("BilinearSampler", {data, points})[0])) EXPECT_EQ(v, 0);
}

TEST(SpatialTransformer, TheIdentityGivesTheImage) {
  const NDArray data = random_array({2, 3, 4, 5}, 1), loc = array_of({2, 6}, {1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0});
  const TextAttrs attrs = {{"transform_type", "affine"}, {"sampler_type", "bilinear"}, {"target_shape", "(4, 5)"}};
  const std::vector<double> in = values_of(data), out = values_of(call_op("SpatialTransformer", {data, loc}, attrs)[0]);
  for (size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(out[i], in[i], 1e-12);
}

TEST(UpSampling, SaysWhatDoesNotFit) {
  const TextAttrs nearest = {{"scale", "2"}, {"sample_type", "nearest"}, {"num_args", "2"}};
  EXPECT_THROW(call_op("UpSampling", {random_array({1, 1, 2, 2}, 1), random_array({1, 1, 3, 3}, 2)}, nearest),
               ShapeError);
  EXPECT_THROW(call_op("UpSampling", {random_array({1, 2, 2}, 1)},
                       {{"scale", "2"}, {"sample_type", "nearest"}, {"num_args", "1"}}),
               ShapeError);
  EXPECT_THROW(call_op("_contrib_BilinearResize2D", {random_array({1, 1, 0, 2}, 1)}), ShapeError);
  EXPECT_THROW(call_op("_contrib_BilinearResize2D", {random_array({1, 1, 1, 2}, 1)}, {{"mode", "to_even_down"}}),
               ShapeError);
}

TEST(ImageSampling, SameBitsForAnyNumberOfCores) {
  const NDArray data = random_array({2, 3, 40, 50}, 1),
                grid = random_array({2, 2, 40, 40}, 2, DType::kFloat64, -1.1, 1.1);
  std::vector<double> results[2];
  for (int cores : {1, 2}) {
    CoreScope scope(cores);
    NDArray image = data, at = grid;
    Recording on;
    mark_variable(image, NDArray::empty(data.spec()), GradReq::kWrite);
    const std::vector<NDArray> outputs{call_op("BilinearSampler", {image, at})[0]}, variables{image};
    const std::vector<NDArray> heads{random_array(outputs[0].shape(), 3)};
    results[cores - 1] = values_of(grad(outputs, heads, variables, true, false, true)[0]);
  }
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace hybridnet
