#include "hybridnet/threads.h"
#include "ops/op_samples.h"

namespace hybridnet {
namespace {

using namespace hybridnet::testing;

TEST(Rnn, GradientsEqualCentralDifferencesToSecondOrder) { check_gradients("RNN"); }
TEST(Rnn, Float32AgreesWithFloat64) { check_dtype("RNN", DType::kFloat32, 2e-5); }
TEST(Rnn, HalvesAgreeWithFloat64) {
  check_dtype("RNN", DType::kFloat16, 2e-2);
  check_dtype("RNN", DType::kBFloat16, 1e-1);
}

const TextAttrs kLstm = {{"mode", "lstm"}, {"state_size", "2"}, {"num_layers", "1"}, {"state_outputs", "True"}};
constexpr int64_t kLstmParameters = 8 * (3 + 2 + 2);

TextAttrs with(TextAttrs attrs, const std::string& name, const std::string& value) {
  attrs.emplace_back(name, value);
  return attrs;
}

// In both directions, an example of length 2 among 4 steps has the same results as a sequence of 2 steps.
TEST(Rnn, StepsBehindAnExamplesLengthChangeNothing) {
  const NDArray data = random_array({4, 2, 3}, 1), parameters = random_array({2 * kLstmParameters}, 2);
  const NDArray state = random_array({2, 2, 2}, 3), cell = random_array({2, 2, 2}, 4), lengths = array_of({2}, {2, 2});
  const TextAttrs attrs = with(kLstm, "bidirectional", "True");
  const auto masked =
      call_op("RNN", {data, parameters, state, cell, lengths}, with(attrs, "use_sequence_length", "True"));
  const auto cut = call_op("RNN", {data.sliced(0, 2), parameters, state, cell}, attrs);
  const std::vector<double> all = values_of(masked[0]), first = values_of(cut[0]);
  for (size_t i = 0; i < all.size(); ++i) ASSERT_NEAR(all[i], i < first.size() ? first[i] : 0.0, 1e-12) << i;
  for (size_t k = 1; k < 3; ++k) {
    const std::vector<double> a = values_of(masked[k]), b = values_of(cut[k]);
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-12) << k << ", " << i;
  }
}

TEST(Rnn, LimitsTurnNanCellsIntoTheLowerOne) {
  std::vector<double> values(static_cast<size_t>(kLstmParameters), 0.0);
  const NDArray data = array_of({1, 1, 3}, {NAN, 0, 0}), parameters = array_of({kLstmParameters}, values);
  const NDArray state = array_of({1, 1, 2}, {0, 0}), cell = array_of({1, 1, 2}, {NAN, 1});
  TextAttrs attrs = with(with(kLstm, "lstm_state_clip_min", "-0.25"), "lstm_state_clip_max", "0.3");
  EXPECT_TRUE(std::isnan(values_of(call_op("RNN", {data, parameters, state, cell}, attrs)[2])[0]));
  const auto out = call_op("RNN", {data, parameters, state, cell}, with(attrs, "lstm_state_clip_nan", "True"));
  EXPECT_DOUBLE_EQ(values_of(out[2])[0], -0.25);
}

TEST(Rnn, DropsOutputsBetweenLayersInTrainingOnly) {
  const TextAttrs plain = {{"mode", "rnn_tanh"}, {"state_size", "8"}, {"num_layers", "2"}};
  const NDArray data = random_array({5, 4, 3}, 1),
                parameters = random_array({8 * (3 + 8 + 2) + 8 * (8 + 8 + 2)}, 2, DType::kFloat64, -0.3, 0.3);
  const NDArray state = random_array({2, 4, 8}, 3);
  const auto run = [&](const TextAttrs& attrs, bool training) {
    Recording on(training);
    autograd_state().recording = false;
    return values_of(call_op("RNN", {data, parameters, state}, attrs)[0]);
  };
  const std::vector<double> expected = run(plain, false);
  EXPECT_EQ(run(with(plain, "p", "0.5"), false), expected);
  EXPECT_NE(run(with(plain, "p", "0.5"), true), expected);
  EXPECT_EQ(run(plain, true), expected);
}

// If all values between the layers are dropped, the result depends only on the second layer's parameters and state.
TEST(Rnn, DroppedInputsPassNoGradient) {
  const TextAttrs attrs = {{"mode", "gru"}, {"state_size", "2"}, {"num_layers", "2"}, {"p", "1"}};
  NDArray data = random_array({3, 2, 3}, 1);
  const NDArray parameters = random_array({6 * (3 + 2 + 2) + 6 * (2 + 2 + 2)}, 2), state = random_array({2, 2, 2}, 3);
  mark_variable(data, NDArray::empty(data.spec()), GradReq::kWrite);
  Recording on;
  const auto out = call_op("RNN", {data, parameters, state}, attrs);
  const std::vector<NDArray> outputs{out[0]}, heads{random_array(out[0].shape(), 5)}, variables{data};
  for (double d : values_of(grad(outputs, heads, variables, true, false, true)[0])) EXPECT_EQ(d, 0.0);
}

TEST(Rnn, SameBitsForAnyNumberOfCores) {
  const TextAttrs attrs = {{"mode", "lstm"}, {"state_size", "64"}, {"num_layers", "2"}, {"bidirectional", "True"}};
  const NDArray data = random_array({7, 9, 33}, 1, DType::kFloat64);
  const NDArray parameters =
      random_array({2 * 256 * (33 + 64 + 2) + 2 * 256 * (128 + 64 + 2)}, 2, DType::kFloat64, -0.1, 0.1);
  const NDArray state = random_array({4, 9, 64}, 3), cell = random_array({4, 9, 64}, 4);
  std::vector<double> one, two;
  {
    CoreScope cores(1);
    one = values_of(call_op("RNN", {data, parameters, state, cell}, attrs)[0]);
  }
  {
    CoreScope cores(2);
    two = values_of(call_op("RNN", {data, parameters, state, cell}, attrs)[0]);
  }
  EXPECT_EQ(one, two);
}

TEST(Rnn, SaysWhatItNeeds) {
  const NDArray data = random_array({4, 2, 3}, 1), parameters = random_array({kLstmParameters}, 2);
  const NDArray state = random_array({1, 2, 2}, 3);
  EXPECT_THROW(call_op("RNN", {data, random_array({5}, 2), state, state}, kLstm), ShapeError);
  EXPECT_THROW(call_op("RNN", {data, parameters, random_array({1, 3, 2}, 3), state}, kLstm), ShapeError);
  EXPECT_THROW(call_op("RNN", {random_array({4, 2}, 1), parameters, state, state}, kLstm), ShapeError);
  EXPECT_THROW(call_op("RNN", {data, parameters, state, state}, with(kLstm, "lstm_state_clip_max", "1")), ParamError);
  EXPECT_THROW(call_op("RNN", {data, parameters, state},
                       {{"mode", "gru"}, {"state_size", "2"}, {"num_layers", "1"}, {"projection_size", "1"}}),
               ParamError);
}

}  // namespace
}  // namespace hybridnet
