// Shape and size of an array as arrays.
#include "ops/elementwise/declare.h"
#include "ops/elementwise/family.h"

namespace hybridnet::ops {

void register_shape_queries(OpRegistry& ops) {
  ops.declare("shape_array")
      .alias("_npx_shape_array")
      .doc("The sizes of the input, as an int64 array of rank 1.")
      .input("data", "array of any shape; its values are not read")
      .output("out", "int64 (ndim,)")
      .infer([](const NoParams&, InferContext& c) {
        c.set_out_dtype(0, DType::kInt64);
        if (c.in_shape(0).rank_known()) c.set_out_shape(0, Shape{c.in_shape(0).ndim()});
      })
      .cpu([](const NoParams&, const KernelArgs& a) {
        std::copy(a.in[0].shape->begin(), a.in[0].shape->end(), a.out[0].as<int64_t>());
      })
      .gradient([](const NoParams&, const GradientContext&) { return Values(1); }, Saves::nothing())
      .sample({{3, 4}});
  ops.declare("size_array")
      .doc("The number of elements of the input, as an int64 array of shape (1,).")
      .input("data", "array of any shape; its values are not read")
      .output("out", "int64 (1,)")
      .infer([](const NoParams&, InferContext& c) {
        c.set_out_dtype(0, DType::kInt64);
        c.set_out_shape(0, Shape{1});
      })
      .cpu([](const NoParams&, const KernelArgs& a) { *a.out[0].as<int64_t>() = a.in[0].shape->size(); })
      .gradient([](const NoParams&, const GradientContext&) { return Values(1); }, Saves::nothing())
      .sample({{3, 4}});
}

}  // namespace hybridnet::ops
