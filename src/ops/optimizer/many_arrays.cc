// Questions about many tensors in one call: are they finite, what is their length; and setting them to zero.
#include <cmath>
#include <cstring>

#include "ops/optimizer/declare_update.h"
#include "ops/optimizer/family.h"

namespace hybridnet::ops {
namespace {

struct CountParams {
  int32_t num_arrays;
  static void describe(ParamSchema<CountParams>& schema) {
    schema.field("num_arrays", &CountParams::num_arrays).at_least(1).doc("Number of arrays.");
  }
};

struct FiniteParams {
  bool init_output;
  static void describe(ParamSchema<FiniteParams>& schema) {
    schema.field("init_output", &FiniteParams::init_output).default_value(true).hidden().doc("Must be true.");
  }
};

struct MultiFiniteParams {
  int32_t num_arrays;
  bool init_output;
  static void describe(ParamSchema<MultiFiniteParams>& schema) {
    schema.field("num_arrays", &MultiFiniteParams::num_arrays).default_value(1).at_least(1).doc("Number of arrays.");
    schema.field("init_output", &MultiFiniteParams::init_output).default_value(true).hidden().doc("Must be true.");
  }
};

struct LarsParams {
  double eta, eps, rescale_grad;
  static void describe(ParamSchema<LarsParams>& schema) {
    schema.field("eta", &LarsParams::eta).doc("Trust coefficient.");
    schema.field("eps", &LarsParams::eps).doc("Added to the denominator.");
    schema.field("rescale_grad", &LarsParams::rescale_grad).default_value(1.0).doc("Factor applied to the gradients.");
  }
};

void infer_finite(bool init_output, InferContext& c) {
  if (!init_output) {
    throw ParamError({.input = "init_output", .expected = "true", .given = "false",
                      .because = "an output never depends on what its memory held before",
                      .fix = "give all arrays to one multi_all_finite, or multiply the results"});
  }
  c.set_out_shape(0, Shape({1}));
  c.set_out_dtype(0, DType::kFloat32);
}

bool is_finite(const TensorRef& tensor) {
  bool finite = true;
  dispatch_floating(tensor.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* data = tensor.as<T>();
    const int64_t size = tensor.size();
    // x * 0 is 0 for finite x and nan otherwise; the sum of a block needs no branch.
    for (int64_t begin = 0; begin < size && finite; begin += kUpdateChunk) {
      accumulator_t<T> sum = 0;
      for (int64_t i = begin; i < std::min(size, begin + kUpdateChunk); ++i) sum += static_cast<accumulator_t<T>>(data[i]) * 0;
      finite = sum == 0;
    }
  });
  return finite;
}

void run_finite(const KernelArgs& a) {
  bool finite = true;
  for (const TensorRef& tensor : a.in) finite = finite && is_finite(tensor);
  *a.out[0].as<float>() = finite ? 1.0f : 0.0f;
}

double sum_of_squares(const TensorRef& tensor) {
  double total = 0;
  dispatch_floating(tensor.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* data = tensor.as<T>();
    const int64_t size = tensor.size();
    for (int64_t begin = 0; begin < size; begin += kUpdateChunk) {
      accumulator_t<T> sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = begin; i < std::min(size, begin + kUpdateChunk); ++i) {
        sum += static_cast<accumulator_t<T>>(data[i]) * static_cast<accumulator_t<T>>(data[i]);
      }
      total += static_cast<double>(sum);
    }
  });
  return total;
}

void run_sum_sq(const CountParams& p, const KernelArgs& a) {
  // One task per array: the order of additions within an array does not depend on the number of threads.
  parallel_for(p.num_arrays, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) a.out[0].as<float>()[i] = static_cast<float>(sum_of_squares(a.in[static_cast<size_t>(i)]));
  });
}

void run_lars(const LarsParams& p, const KernelArgs& a) {
  const float *lrs = a.in[0].as<float>(), *weights = a.in[1].as<float>(), *grads = a.in[2].as<float>(), *wds = a.in[3].as<float>();
  for (int64_t i = 0; i < a.in[0].size(); ++i) {
    const double weight = std::sqrt(static_cast<double>(weights[i])), grad = std::sqrt(static_cast<double>(grads[i]));
    const bool scaled = weight > 0 && grad > 0;
    a.out[0].as<float>()[i] =
        scaled ? static_cast<float>(lrs[i] * p.eta * weight / (grad * p.rescale_grad + wds[i] * weight + p.eps)) : lrs[i];
  }
}

void register_reset(OpRegistry& ops) {
  ops.declare<CountParams>("reset_arrays")
      .doc("Sets arrays to zero.")
      .variadic_input("data", "num_arrays", "arrays of any shapes and dtypes; replaced by zeros")
      .output("zeros", "replace the arrays")
      .num_inputs([](const CountParams& p) { return p.num_arrays; })
      .num_outputs([](const CountParams& p) { return p.num_arrays; })
      .num_visible_outputs([](const CountParams&) { return 0; })
      .variadic_inplace([](const CountParams&, int output) { return output; })
      .variadic_writeback([](const CountParams&, int output) { return output; })
      .infer([](const CountParams& p, InferContext& c) {
        for (int i = 0; i < p.num_arrays; ++i) {
          c.set_out_shape(i, c.in_shape(i));
          c.set_in_shape(i, c.out_shape(i));
          c.set_out_dtype(i, c.in_dtype(i));
          c.set_in_dtype(i, c.out_dtype(i));
        }
      })
      .cpu([](const CountParams&, const KernelArgs& a) {
        for (const TensorRef& out : a.out) std::memset(out.data, 0, static_cast<size_t>(out.size() * dtype_size(out.dtype)));
      })
      .effect()
      .gradient(kNotDifferentiable)
      .sample({{3, 4}, {5}}, {{"num_arrays", "2"}});
}

}  // namespace

void register_many_arrays(OpRegistry& ops) {
  register_reset(ops);
  ops.declare<FiniteParams>("all_finite")
      .doc("1 if no element is infinite or nan, else 0.")
      .input("data", "floating tensor, any shape")
      .output("out", "float32 (1,)")
      .infer([](const FiniteParams& p, InferContext& c) { infer_finite(p.init_output, c); })
      .cpu([](const FiniteParams&, const KernelArgs& a) { run_finite(a); }, kUpdateDTypes)
      .gradient(kNotDifferentiable)
      .sample({{3, 4}});
  ops.declare<MultiFiniteParams>("multi_all_finite")
      .doc("1 if no element of any array is infinite or nan, else 0.")
      .variadic_input("data", "num_arrays", "floating tensors")
      .output("out", "float32 (1,)")
      .num_inputs([](const MultiFiniteParams& p) { return p.num_arrays; })
      .infer([](const MultiFiniteParams& p, InferContext& c) {
        infer_finite(p.init_output, c);
        for (int i = 0; i < c.num_in(); ++i) c.require_dtype(i, kUpdateDTypes);
      })
      .cpu([](const MultiFiniteParams&, const KernelArgs& a) { run_finite(a); }, kUpdateDTypes)
      .gradient(kNotDifferentiable)
      .sample({{3, 4}, {2}}, {{"num_arrays", "2"}});
  ops.declare<CountParams>("multi_sum_sq")
      .doc("Sum of squares of each array.")
      .variadic_input("data", "num_arrays", "floating tensors")
      .output("out", "float32 (num_arrays,)")
      .num_inputs([](const CountParams& p) { return p.num_arrays; })
      .infer([](const CountParams& p, InferContext& c) {
        for (int i = 0; i < c.num_in(); ++i) c.require_dtype(i, kUpdateDTypes);
        c.set_out_shape(0, Shape({p.num_arrays}));
        c.set_out_dtype(0, DType::kFloat32);
      })
      .cpu(run_sum_sq, kUpdateDTypes)
      .gradient(kNotDifferentiable)
      .sample({{3, 4}, {2}}, {{"num_arrays", "2"}});
  ops.declare<LarsParams>("multi_lars")
      .doc("Learning rates of LARS: lr * eta * |weight| / (rescale_grad * |grad| + wd * |weight| + eps), or lr where a norm is 0.")
      .input("lrs", "float32 (n,)")
      .input("weights_sum_sq", "float32 (n,), from multi_sum_sq")
      .input("grads_sum_sq", "float32 (n,), from multi_sum_sq")
      .input("wds", "float32 (n,)")
      .output("out", "float32 (n,)")
      .infer([](const LarsParams&, InferContext& c) {
        c.unify_shapes();
        for (int i = 0; i < 4; ++i) c.set_in_dtype(i, DType::kFloat32);
        c.set_out_dtype(0, DType::kFloat32);
      })
      .cpu(run_lars, {DType::kFloat32})
      .gradient(kNotDifferentiable)
      .sample({{4}, {4}, {4}, {4}}, {{"eta", "0.1"}, {"eps", "0.001"}}, 0.1, 2.0);
}

}  // namespace hybridnet::ops
