// _eye: ones on a diagonal.
#include <algorithm>

#include "hybridnet/declare.h"
#include "kernels/device/values_arguments.h"
#include "kernels/memory/strided_copy.h"
#include "ops/device_launch.h"
#include "ops/shape_param.h"

namespace hybridnet::ops {
namespace {

struct EyeParams {
  int64_t N, M, k;
  std::string ctx;
  DType dtype;
  static void describe(ParamSchema<EyeParams>& schema) {
    schema.field("N", &EyeParams::N).at_least(0).doc("Number of rows.");
    schema.field("M", &EyeParams::M).default_value(0).at_least(0).doc("Number of columns; 0: the number of rows.");
    schema.field("k", &EyeParams::k)
        .default_value(0)
        .doc("Index of the diagonal: 0 the main one, positive above, negative below.");
    describe_ctx<EyeParams>(schema);
    schema.field("dtype", &EyeParams::dtype).default_value("float32").doc("Dtype of the output.");
  }
};

void run_eye(const EyeParams& p, const KernelArgs& a) {
  const int64_t rows = (*a.out[0].shape)[0], columns = (*a.out[0].shape)[1];
  if (device::current()) {
    return on_device::launch("values.cuh", "EyeArguments", on_device::with_dtype("eye", a.out[0].dtype), rows * columns,
                             device::EyeArguments{a.out[0].data, rows, columns, p.k});
  }
  kernels::zero_bytes(a.out[0].data, a.out[0].size() * dtype_size(a.out[0].dtype));
  dispatch_dtype(a.out[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    T* data = a.out[0].as<T>();
    const int64_t k = std::clamp(p.k, -rows, columns);
    for (int64_t row = std::max<int64_t>(0, -k); row < rows && row + k < columns; ++row) {
      data[row * columns + row + k] = static_cast<T>(1);
    }
  });
}

}  // namespace

void register_eye(OpRegistry& ops) {
  ops.declare<EyeParams>("_eye")
      .doc("A matrix of zeros with ones on a diagonal.")
      .output("output", "shape (N, M)")
      .infer([](const EyeParams& p, InferContext& c) {
        c.set_out_dtype(0, p.dtype);
        c.set_out_shape(0, Shape({p.N, p.M == 0 ? p.N : p.M}));
      })
      .any_device()
      .cpu(run_eye)
      .gradient(kNotDifferentiable)
      .sample({}, {{"N", "3"}})
      .sample({}, {{"N", "3"}, {"M", "5"}, {"k", "1"}})
      .sample({}, {{"N", "4"}, {"M", "2"}, {"k", "-1"}, {"dtype", "int32"}});
}

}  // namespace hybridnet::ops
