// Runs the samples of an operator: compares gradients with central differences in float64, other dtypes with float64.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "hybridnet/imperative.h"
#include "hybridnet/runtime.h"
#include "kernels/elementwise/integers.h"

namespace hybridnet::testing {

inline NDArray array_of(const Shape& shape, const std::vector<double>& values, DType dtype = DType::kFloat64) {
  Runtime::get();  // owns the storage
  NDArray a = NDArray::empty(shape, dtype);
  dispatch_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < values.size(); ++i)
      static_cast<T*>(a.data())[i] = kernels::saturated_element<T>(static_cast<float>(values[i]));
    if constexpr (std::is_same_v<T, double>)
      for (size_t i = 0; i < values.size(); ++i) static_cast<T*>(a.data())[i] = values[i];
  });
  return a;
}

inline std::vector<double> values_of(const NDArray& a) {
  a.wait_to_read();
  std::vector<double> values(static_cast<size_t>(a.size()));
  dispatch_dtype(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(static_cast<const T*>(a.data())[i]);
  });
  return values;
}

inline std::vector<double> random_values(int64_t count, double low, double high, unsigned seed, bool whole = false) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& v : values) v = whole ? std::floor(uniform(engine)) : uniform(engine);
  return values;
}
inline NDArray random_array(const Shape& shape, unsigned seed, DType dtype = DType::kFloat64, double low = -2,
                            double high = 2) {
  return array_of(shape, random_values(shape.size(), low, high, seed), dtype);
}

using TextAttrs = std::vector<std::pair<std::string, std::string>>;

inline std::vector<NDArray> call_op(const std::string& name, const std::vector<NDArray>& inputs,
                                    const TextAttrs& attrs = {}) {
  const Op& op = Runtime::get().ops().at(name);
  return invoke(op, op.schema->parse(attrs, name, false), inputs);
}

// Turns autograd on for a scope.
struct Recording {
  explicit Recording(bool training = true) : before(autograd_state()) { autograd_state() = {true, training}; }
  ~Recording() { autograd_state() = before; }
  AutogradState before;
};

struct SampleRun {
  const Op* op;
  const Sample* sample;
  bool training;
  std::vector<std::vector<double>> inputs;

  SampleRun(const Op& o, const Sample& s, bool train, unsigned seed = 11) : op(&o), sample(&s), training(train) {
    for (size_t i = 0; i < s.inputs.size(); ++i)
      inputs.push_back(random_values(s.inputs[i].size(), s.low, s.integer_valued ? s.high + 1 : s.high,
                                     seed + static_cast<unsigned>(i), s.integer_valued));
  }
  std::vector<NDArray> arrays(DType dtype) const {
    std::vector<NDArray> result;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const DType own = i < sample->dtypes.size() && sample->dtypes[i] != DType::kUnknown ? sample->dtypes[i] : dtype;
      result.push_back(array_of(sample->inputs[i], inputs[i], own));
    }
    return result;
  }
  // True if input i has a gradient.
  bool varies(size_t i) const {
    if (i < sample->dtypes.size() && is_integer(sample->dtypes[i])) return false;
    return !(i < op->inputs.size() && op->inputs[i].auxiliary);
  }
  std::vector<NDArray> forward(const std::vector<NDArray>& in) const {
    const ParamsPtr params = op->schema->parse(sample->attrs, op->name, false);
    std::vector<NDArray> out = invoke(*op, params, in);
    out.resize(static_cast<size_t>(op->num_visible_outputs(params->data())));
    return out;
  }
};

inline std::vector<NDArray> head_gradients(const std::vector<NDArray>& outputs, unsigned seed) {
  std::vector<NDArray> heads;
  for (const NDArray& o : outputs) heads.push_back(random_array(o.shape(), seed++, o.dtype(), -1, 1));
  return heads;
}

inline double inner(const std::vector<NDArray>& a, const std::vector<NDArray>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const std::vector<double> x = values_of(a[i]), y = values_of(b[i]);
    for (size_t j = 0; j < x.size(); ++j) sum += x[j] * y[j];
  }
  return sum;
}

// Returns the gradients of sum(head_k * out_k) for the varying inputs, by the tape.
inline std::vector<NDArray> tape_gradients(const SampleRun& run, std::vector<NDArray>& in, unsigned head_seed,
                                           bool create_graph) {
  std::vector<NDArray> variables;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!run.varies(i)) continue;
    mark_variable(in[i], NDArray::empty(in[i].spec()), GradReq::kWrite);
    variables.push_back(in[i]);
  }
  const std::vector<NDArray> out = run.forward(in);
  return grad(out, head_gradients(out, head_seed), variables, true, create_graph, run.training);
}

// Compares the gradients `analytic` (one per varying input) with central differences of f.
template <typename F>
void expect_central_differences(SampleRun run, const std::vector<NDArray>& analytic, F&& f, const std::string& what) {
  constexpr double kStep = 1e-5;
  size_t k = 0;
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    if (!run.varies(i)) continue;
    const std::vector<double> got = values_of(analytic[k++]);
    for (size_t j = 0; j < run.inputs[i].size(); ++j) {
      const double x = run.inputs[i][j];
      run.inputs[i][j] = x + kStep;
      const double above = f(run);
      run.inputs[i][j] = x - kStep;
      const double below = f(run);
      run.inputs[i][j] = x;
      const double expected = (above - below) / (2 * kStep);
      ASSERT_NEAR(got[j], expected, 2e-6 + 2e-5 * std::abs(expected)) << what << ", input " << i << ", element " << j;
    }
  }
}

inline std::string describe(const Op& op, const Sample& s) {
  std::string text = op.name + "(";
  for (const Shape& shape : s.inputs) text += shape.str() + " ";
  for (const auto& [k, v] : s.attrs) text += k + "=" + v + " ";
  return text + ")";
}

inline void check_gradients(const std::string& name, bool second_order = true, bool training = true) {
  const Op& op = Runtime::get().ops().at(name);
  for (const Sample& sample : op.samples) {
    if (!sample.check_gradient) continue;
    const SampleRun run(op, sample, training);
    const std::string what = describe(op, sample);
    const auto value = [&](const SampleRun& r) {
      Recording on(r.training);
      autograd_state().recording = false;
      const std::vector<NDArray> out = r.forward(r.arrays(DType::kFloat64));
      return inner(out, head_gradients(out, 100));
    };
    {
      Recording on(training);
      std::vector<NDArray> in = run.arrays(DType::kFloat64);
      expect_central_differences(run, tape_gradients(run, in, 100, false), value, what);
    }
    if (!second_order) continue;
    const auto gradient_value = [&](const SampleRun& r) {
      Recording on(r.training);
      std::vector<NDArray> in = r.arrays(DType::kFloat64);
      const std::vector<NDArray> first = tape_gradients(r, in, 100, false);
      return inner(first, head_gradients(first, 200));
    };
    Recording on(training);
    std::vector<NDArray> in = run.arrays(DType::kFloat64);
    const std::vector<NDArray> first = tape_gradients(run, in, 100, true);
    const std::vector<NDArray> all_heads = head_gradients(first, 200);
    std::vector<NDArray> dependent, heads, variables;  // a constant gradient is not on the tape
    for (size_t i = 0; i < first.size(); ++i) {
      if (!needs_gradient(first[i])) continue;
      dependent.push_back(first[i]);
      heads.push_back(all_heads[i]);
    }
    for (size_t i = 0; i < in.size(); ++i)
      if (run.varies(i)) variables.push_back(in[i]);
    std::vector<NDArray> second;
    if (dependent.empty()) {
      for (const NDArray& v : variables)
        second.push_back(array_of(v.shape(), std::vector<double>(static_cast<size_t>(v.size()))));
    } else {
      second = grad(dependent, heads, variables, true, false, training);
    }
    expect_central_differences(run, second, gradient_value, "second order of " + what);
  }
}

// Checks that outputs and gradients in `dtype` agree with float64 within `tolerance`, relative to the largest value.
inline void check_dtype(const std::string& name, DType dtype, double tolerance, bool training = true) {
  const Op& op = Runtime::get().ops().at(name);
  const auto compare = [&](const std::vector<NDArray>& a, const std::vector<NDArray>& b, const std::string& what) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      const std::vector<double> x = values_of(a[i]), y = values_of(b[i]);
      double largest = 1e-3;
      for (double v : x) largest = std::max(largest, std::abs(v));
      for (size_t j = 0; j < x.size(); ++j)
        ASSERT_NEAR(x[j], y[j], tolerance * largest) << what << " result " << i << " element " << j;
    }
  };
  for (const Sample& sample : op.samples) {
    SampleRun run(op, sample, training);
    for (auto& v : run.inputs)
      for (double& x : v) x = static_cast<double>(static_cast<float>(bfloat16(static_cast<float>(x))));
    const std::string what = describe(op, sample) + " " + dtype_name(dtype);
    Recording on(training);
    autograd_state().recording = false;
    compare(run.forward(run.arrays(DType::kFloat64)), run.forward(run.arrays(dtype)), what);
    if (!op.differentiable() || !sample.check_gradient) continue;
    autograd_state().recording = true;
    std::vector<NDArray> wide = run.arrays(DType::kFloat64), narrow = run.arrays(dtype);
    compare(tape_gradients(run, wide, 100, false), tape_gradients(run, narrow, 100, false), "gradients of " + what);
  }
}

}  // namespace hybridnet::testing
