#include "kernels/rnn/recurrent_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hybridnet/threads.h"
#include "kernels/product/gemm.h"
#include "kernels/random_values.h"

namespace hybridnet::kernels {
namespace {

template <typename T>
struct Layer {
  int64_t gates, rows, hidden, recurrent;
  std::vector<T> weights, state, inputs, before, bias;
  Layer(int64_t g, int64_t n, int64_t h, int64_t r)
      : gates(g),
        rows(n),
        hidden(h),
        recurrent(r),
        weights(random_values<T>(g * h * r, 1)),
        state(random_values<T>(n * r, 2)),
        inputs(random_values<T>(n * g * h, 3)),
        before(random_values<T>(n * h, 4)),
        bias(random_values<T>(g * h, 5)) {}
  std::vector<T> packed() const {
    std::vector<T> p(static_cast<size_t>(packed_recurrent_size(gates, hidden, recurrent)));
    pack_recurrent(static_cast<int>(gates), hidden, recurrent, weights.data(), p.data());
    return p;
  }
  size_t states() const { return static_cast<size_t>(rows * hidden); }
};

template <typename T>
void expect_near(const std::vector<T>& a, const std::vector<T>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << i;
}

// Sizes around the vector lengths and the tiles' rows; the state may be narrower than the hidden units (projection).
const int64_t kSizes[][3] = {{1, 1, 1},     {7, 37, 5},   {8, 64, 64},  {13, 95, 33}, {2, 16, 16},
                             {3, 100, 100}, {5, 9, 9},    {6, 16, 3},   {9, 20, 20},  {10, 33, 33},
                             {11, 8, 8},    {23, 17, 17}, {64, 12, 12}, {71, 24, 24}};

template <typename T>
void expect_unpacked_weights() {
  for (const auto& [rows, hidden, recurrent] : kSizes) {
    for (const int64_t gates : {3, 4}) {
      const Layer<T> l(gates, rows, hidden, recurrent);
      std::vector<T> weights(l.weights.size());
      unpack_recurrent(static_cast<int>(gates), hidden, recurrent, l.packed().data(), weights.data());
      EXPECT_EQ(weights, l.weights);
    }
  }
}

TEST(RecurrentStep, PackedWeightsTellTheWeights) {
  expect_unpacked_weights<float>();
  expect_unpacked_weights<double>();
}

template <typename T>
void compare_lstm(double tolerance) {
  for (const auto& [rows, hidden, recurrent] : kSizes) {
    const Layer<T> l(4, rows, hidden, recurrent);
    std::vector<T> gates = l.inputs, plain = l.inputs, c(l.states()), h(l.states()), plain_c(c), plain_h(h);
    for (size_t i = 0; i < plain.size(); ++i) plain[i] += l.bias[i % l.bias.size()];
    gemm(GemmShape::dense(false, true, rows, 4 * hidden, recurrent), T(1), l.state.data(), l.weights.data(), T(1),
         plain.data());
    lstm_step(LstmStep<T>{
        rows, hidden, plain.data(), l.before.data(), plain_c.data(), plain_h.data(), {true, false, -0.5, 0.5}});
    lstm_step(
        l.packed().data(), recurrent, l.state.data(),
        LstmStep<T>{
            rows, hidden, gates.data(), l.before.data(), c.data(), h.data(), {true, false, -0.5, 0.5}, l.bias.data()});
    expect_near(gates, plain, tolerance);
    expect_near(c, plain_c, tolerance);
    expect_near(h, plain_h, tolerance);
  }
}

template <typename T>
void compare_gru(double tolerance) {
  for (const auto& [rows, hidden, recurrent] : kSizes) {
    if (hidden != recurrent) continue;  // GRU has no projection
    const Layer<T> l(3, rows, hidden, recurrent);
    std::vector<T> gates = l.inputs, plain = l.inputs, product(l.inputs.size()), n(l.states()), h(n), plain_n(n),
                   plain_h(n);
    gemm(GemmShape::dense(false, true, rows, 3 * hidden, recurrent), T(1), l.state.data(), l.weights.data(), T(0),
         product.data());
    gru_step(GruStep<T>{rows, hidden, plain.data(), product.data(), l.bias.data(), plain_n.data(), l.state.data(),
                        plain_h.data()});
    gru_step(l.packed().data(), recurrent, l.state.data(),
             GruStep<T>{rows, hidden, gates.data(), nullptr, l.bias.data(), n.data(), l.state.data(), h.data()});
    expect_near(gates, plain, tolerance);
    expect_near(n, plain_n, tolerance);
    expect_near(h, plain_h, tolerance);
  }
}

TEST(RecurrentStep, AgreesWithAProductAndAPassOverIt) {
  compare_lstm<float>(1e-5);
  compare_lstm<double>(1e-13);
  compare_gru<float>(1e-5);
  compare_gru<double>(1e-13);
}

// Compares a step that multiplies its input itself with one whose gates already contain the input's product.
template <typename T>
void compare_with_input(double tolerance) {
  for (const int64_t gates : {4, 3}) {
    for (const auto& [rows, hidden, inputs] : kSizes) {
      const Layer<T> l(gates, rows, hidden, hidden), of_input(gates, rows, hidden, inputs);
      const std::vector<T> packed = l.packed(), packed_input = of_input.packed();
      const StepInput<T> input{packed_input.data(), inputs, of_input.state.data()};
      std::vector<T> given(l.inputs.size()), taken(given), c(l.states()), h(c), given_c(c), given_h(h);
      for (size_t i = 0; i < given.size(); ++i) given[i] = gates == 3 ? l.bias[i % l.bias.size()] : T(0);
      gemm(GemmShape::dense(false, true, rows, gates * hidden, inputs), T(1), of_input.state.data(),
           of_input.weights.data(), T(1), given.data());
      if (gates == 4) {
        LstmStep<T> s{rows, hidden, given.data(), l.before.data(), given_c.data(), given_h.data(), {}, l.bias.data()};
        lstm_step(packed.data(), hidden, l.state.data(), s);
        s.gates = taken.data();
        s.c = c.data();
        s.h = h.data();
        lstm_step(packed.data(), hidden, l.state.data(), s, input);
      } else {
        GruStep<T> s{rows,           hidden,         given.data(),   nullptr,      l.before.data(),
                     given_c.data(), l.state.data(), given_h.data(), l.bias.data()};
        gru_step(packed.data(), hidden, l.state.data(), s);
        s.gates = taken.data();
        s.recurrent_n = c.data();
        s.h = h.data();
        gru_step(packed.data(), hidden, l.state.data(), s, input);
      }
      expect_near(taken, given, tolerance);
      expect_near(c, given_c, tolerance);
      expect_near(h, given_h, tolerance);
    }
  }
}

TEST(RecurrentStep, MultipliesItsInputToo) {
  compare_with_input<float>(1e-5);
  compare_with_input<double>(1e-13);
}

TEST(RecurrentStep, SameBitsForAnyNumberOfCores) {
  const Layer<float> l(4, 33, 200, 200);
  std::vector<float> h[3];
  for (int cores : {1, 2, 3}) {
    const CoreScope scope(cores);
    std::vector<float> gates = l.inputs, c(l.states());
    std::vector<float>& out = h[cores - 1];
    out.resize(l.states());
    lstm_step(l.packed().data(), 200, l.state.data(),
              LstmStep<float>{33, 200, gates.data(), l.before.data(), c.data(), out.data(), {}, l.bias.data()});
  }
  EXPECT_EQ(h[0], h[1]);
  EXPECT_EQ(h[0], h[2]);
}

}  // namespace
}  // namespace hybridnet::kernels
