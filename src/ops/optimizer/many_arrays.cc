// Sums of squares of many tensors in one call, and the learning rates of LARS computed from them.
#include <cmath>

#include "hybridnet/declare.h"
#include "ops/optimizer/declare_update.h"
#include "ops/optimizer/device_squares.h"

namespace hybridnet::ops {
namespace {

struct CountParams {
  int32_t num_arrays;
  static void describe(ParamSchema<CountParams>& schema) {
    schema.field("num_arrays", &CountParams::num_arrays).at_least(1).doc("Number of arrays.");
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
  if (device::current()) return on_device::sums_of_squares(a.in, DType::kFloat32, a.out[0].data);
  int64_t elements = 0;
  for (const TensorRef& array : a.in) elements += array.size();
  const double array_ns = 0.3 * static_cast<double>(elements) / p.num_arrays;
  // One task per array: the order of additions within an array is independent of the number of threads.
  parallel_for(p.num_arrays, array_ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      a.out[0].as<float>()[i] = static_cast<float>(sum_of_squares(a.in[static_cast<size_t>(i)]));
  });
}

void run_lars(const LarsParams& p, const KernelArgs& a) {
  if (device::current()) return on_device::lars(a, p.eta, p.eps, p.rescale_grad);
  const float *lrs = a.in[0].as<float>(), *weights = a.in[1].as<float>(), *grads = a.in[2].as<float>(),
              *wds = a.in[3].as<float>();
  for (int64_t i = 0; i < a.in[0].size(); ++i) {
    const double weight = std::sqrt(static_cast<double>(weights[i])), grad = std::sqrt(static_cast<double>(grads[i]));
    const bool scaled = weight > 0 && grad > 0;
    a.out[0].as<float>()[i] =
        scaled ? static_cast<float>(lrs[i] * p.eta * weight / (grad * p.rescale_grad + wds[i] * weight + p.eps))
               : lrs[i];
  }
}

}  // namespace

void register_many_arrays(OpRegistry& ops) {
  ops.declare<CountParams>("multi_sum_sq")
      .any_device()
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
      .any_device()
      .doc(
          "Learning rates of LARS: lr * eta * |weight| / (rescale_grad * |grad| + wd * |weight| + eps), or lr if a "
          "norm is 0.")
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
