// shape_array and size_array: sizes as tensors.
#include "device/memory.h"
#include "hybridnet/declare.h"

namespace hybridnet::ops {
void register_shape_array(OpRegistry& ops) {
  ops.declare("shape_array")
      .alias("_npx_shape_array")
      .doc("The shape of data as a tensor.")
      .input("data", "defines sizes only")
      .output("output", "shape (ndim,), int64")
      .infer([](const NoParams&, InferContext& c) {
        c.set_out_dtype(0, DType::kInt64);
        if (c.in_shape(0).rank_known()) c.set_out_shape(0, Shape({c.in_shape(0).ndim()}));
      })
      .cpu([](const NoParams&, const KernelArgs& a) {
        int64_t sizes[kMaxDims];
        const Shape& shape = *a.in[0].shape;
        for (int i = 0; i < shape.ndim(); ++i) sizes[i] = shape[i];
        device::copy_from_host(a.out[0].data, sizes, shape.ndim() * static_cast<int64_t>(sizeof(int64_t)));
      })
      .any_device()
      .gradient([](const NoParams&, const GradientContext&) { return Values(1); }, Saves::nothing())
      .sample({{2, 3, 4}}, {});
  ops.declare("size_array")
      .doc("The number of elements of data as a tensor.")
      .input("data", "defines sizes only")
      .output("output", "shape (1,), int64")
      .infer([](const NoParams&, InferContext& c) {
        c.set_out_dtype(0, DType::kInt64);
        c.set_out_shape(0, Shape({1}));
      })
      .cpu([](const NoParams&, const KernelArgs& a) { device::write_value<int64_t>(a.out[0].data, a.in[0].size()); })
      .any_device()
      .gradient([](const NoParams&, const GradientContext&) { return Values(1); }, Saves::nothing())
      .sample({{2, 3, 4}}, {});
}

}  // namespace hybridnet::ops
