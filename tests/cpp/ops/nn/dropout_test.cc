#include "hybridnet/threads.h"
#include "ops/op_samples.h"

namespace hybridnet {
namespace {

using namespace hybridnet::testing;

NDArray ones(const Shape& shape, DType dtype = DType::kFloat32) {
  return array_of(shape, std::vector<double>(static_cast<size_t>(shape.size()), 1.0), dtype);
}

NDArray input_gradient(const NDArray& out, const NDArray& head, const NDArray& variable, bool train) {
  const std::vector<NDArray> outputs{out}, heads{head}, variables{variable};
  return grad(outputs, heads, variables, true, false, train)[0];
}

TEST(Dropout, DropsTheAskedFractionAndKeepsTheMean) {
  Recording on;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    const std::vector<double> out = values_of(call_op("Dropout", {ones({100001}, dtype)}, {{"p", "0.2"}})[0]);
    double dropped = 0;
    for (double v : out) {
      ASSERT_TRUE(v == 0 || std::abs(v - 1.25) < 1e-6) << v;
      dropped += v == 0;
    }
    EXPECT_NEAR(dropped / 100001, 0.2, 0.006) << dtype_name(dtype);  // about five standard deviations
  }
}

TEST(Dropout, IsTheIdentityOutsideOfTrainingUnlessAlways) {
  const NDArray data = random_array({7, 9}, 3);
  EXPECT_EQ(values_of(call_op("Dropout", {data}, {{"p", "0.5"}})[0]), values_of(data));
  EXPECT_NE(values_of(call_op("Dropout", {data}, {{"p", "0.5"}, {"mode", "always"}})[0]), values_of(data));
}

TEST(Dropout, SharesDecisionsAlongAxes) {
  Recording on;
  const std::vector<double> out =
      values_of(call_op("Dropout", {ones({40, 6, 5})}, {{"p", "0.5"}, {"axes", "(1,)"}})[0]);
  double kept = 0;
  for (size_t n = 0; n < 40; ++n) {
    for (size_t i = 0; i < 5; ++i) {
      for (size_t c = 1; c < 6; ++c) ASSERT_EQ(out[n * 30 + c * 5 + i], out[n * 30 + i]);
      kept += out[n * 30 + i] != 0;
    }
  }
  EXPECT_NEAR(kept, 100, 40);
  const std::vector<double> rows =
      values_of(call_op("Dropout", {ones({40, 6, 5})}, {{"p", "0.5"}, {"axes", "(-1,)"}})[0]);
  for (size_t row = 0; row < 240; ++row)
    for (size_t i = 1; i < 5; ++i) ASSERT_EQ(rows[row * 5 + i], rows[row * 5]);
}

TEST(Dropout, DropsEverythingAtOne) {
  Recording on;
  for (double v : values_of(call_op("Dropout", {ones({1000})}, {{"p", "1"}})[0])) ASSERT_EQ(v, 0);
}

TEST(Dropout, GradientIsThatOfTheDrawnMask) {
  for (const char* axes : {"()", "(0,)"}) {
    Recording on;
    NDArray data = ones({50, 8}, DType::kFloat64);
    mark_variable(data, NDArray::empty(data.spec()), GradReq::kWrite);
    const NDArray out = call_op("Dropout", {data}, {{"p", "0.25"}, {"axes", axes}})[0];
    EXPECT_EQ(values_of(input_gradient(out, ones({50, 8}, DType::kFloat64), data, true)), values_of(out)) << axes;
  }
}

TEST(Dropout, GradientIsTheIdentityOutsideOfTraining) {
  Recording on(false);
  NDArray data = random_array({5, 8}, 1);
  mark_variable(data, NDArray::empty(data.spec()), GradReq::kWrite);
  const NDArray out = call_op("Dropout", {data}, {{"p", "0.25"}})[0], head = random_array({5, 8}, 2);
  EXPECT_EQ(values_of(input_gradient(out, head, data, false)), values_of(head));
}

TEST(Dropout, SameBitsForAnyNumberOfCores) {
  const Op& op = Runtime::get().ops().at("Dropout");
  const ParamsPtr params = op.schema->parse(TextAttrs{{"p", "0.4"}}, "Dropout", false);
  const int64_t n = 300001;
  const std::vector<float> in(static_cast<size_t>(n), 1.0f);
  const Shape shape{n};
  std::vector<float> first(static_cast<size_t>(n)), other(first.size());
  for (int cores : {1, 4}) {
    const CoreScope scope(cores);
    const TensorRef inputs[] = {{const_cast<float*>(in.data()), &shape, DType::kFloat32}};
    const TensorRef outputs[] = {{(cores == 1 ? first : other).data(), &shape, DType::kFloat32},
                                 {nullptr, &shape, DType::kUInt8}};
    KernelArgs args;
    args.params = params->data();
    args.in = inputs;
    args.out = outputs;
    args.rng = {5, 6};
    args.train = true;
    op.stateless->run(args);
  }
  EXPECT_EQ(first, other);
}

TEST(BackwardDropout, IsLinear) { check_gradients("_backward_Dropout"); }

}  // namespace
}  // namespace hybridnet
