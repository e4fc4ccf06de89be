// Tests whether two arrays are equal within tolerances.
#include <atomic>
#include <cmath>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/matrix_arguments.h"
#include "ops/device_launch.h"

namespace hybridnet::ops {
namespace {

struct AllcloseParams {
  double rtol, atol;
  bool equal_nan;
  static void describe(ParamSchema<AllcloseParams>& schema) {
    schema.field("rtol", &AllcloseParams::rtol).default_value(1e-5).doc("Tolerance relative to |b|.");
    schema.field("atol", &AllcloseParams::atol).default_value(1e-8).doc("Absolute tolerance.");
    schema.field("equal_nan", &AllcloseParams::equal_nan).default_value(true).doc("Whether NaN equals NaN.");
  }
  bool close(double a, double b) const {
    if (std::isnan(a) || std::isnan(b)) return equal_nan && std::isnan(a) && std::isnan(b);
    return a == b || std::fabs(a - b) <= atol + rtol * std::fabs(b);
  }
};

void infer_allclose(const AllcloseParams&, InferContext& c) {
  c.unify_dtypes({0, 1}, {});
  c.set_in_shape(0, c.in_shape(1));
  c.set_in_shape(1, c.in_shape(0));
  c.set_out_dtype(0, DType::kUInt8);
  c.set_out_shape(0, Shape::scalar());
}

void run_allclose(const AllcloseParams& p, const KernelArgs& a) {
  if (device::current()) {
    const device::CloseArguments compared{.a = a.in[0].data,
                                          .b = a.in[1].data,
                                          .out = a.out[0].as<uint8_t>(),
                                          .n = a.in[0].size(),
                                          .rtol = p.rtol,
                                          .atol = p.atol,
                                          .equal_nan = p.equal_nan};
    return on_device::launch_rows("matrices.cuh", "CloseArguments", on_device::with_dtype("all_close", a.in[0].dtype),
                                  1, compared, "int");
  }
  std::atomic<bool> close{true};
  dispatch_dtype(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *x = a.in[0].as<T>(), *y = a.in[1].as<T>();
    parallel_for(a.in[0].size(), 0.6, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end && close.load(std::memory_order_relaxed); ++i) {
        if (!p.close(static_cast<double>(x[i]), static_cast<double>(y[i])))
          close.store(false, std::memory_order_relaxed);
      }
    });
  });
  *a.out[0].as<uint8_t>() = close ? 1 : 0;
}

}  // namespace

void register_allclose(OpRegistry& ops) {
  ops.declare<AllcloseParams>("_contrib_allclose")
      .doc("1 if |a - b| <= atol + rtol * |b| for all elements, else 0.")
      .input("a", "array of any shape")
      .input("b", "shape and dtype of a")
      .output("out", "uint8 ()")
      .infer(infer_allclose)
      .cpu(run_allclose)
      .any_device()
      .gradient(kNotDifferentiable)
      .sample({{3, 4}, {3, 4}})
      .sample({{3, 4}, {3, 4}}, {{"atol", "10"}});
}

}  // namespace hybridnet::ops
