// fill_element_0index: replaces one element per row.
#include "hybridnet/declare.h"
#include "kernels/device/values_arguments.h"
#include "kernels/index/indices.h"
#include "kernels/memory/strided_copy.h"
#include "ops/device_launch.h"

namespace hybridnet::ops {
namespace {

void infer_fill_element(const NoParams&, InferContext& c) {
  c.unify_dtypes({0, 1}, {0});
  c.set_in_shape(0, Shape::unknown(2));
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  const int64_t rows = c.in_shape(0)[0];
  c.set_in_shape(1, Shape({rows}));
  c.set_in_shape(2, Shape({rows}));
}

void run_fill_element(const NoParams&, const KernelArgs& a) {
  const int64_t columns = (*a.in[0].shape)[1];
  kernels::Indices places(a.in[2]);
  if (places.size() > 0) places.resolve(kernels::IndexMode::kRaise, columns);
  if (a.in[0].data != a.out[0].data)
    kernels::copy_bytes(a.in[0].data, a.out[0].data, a.in[0].size() * dtype_size(a.in[0].dtype));
  if (device::current()) {
    return on_device::launch(
        "values.cuh", "FillElementArguments", on_device::with_bits("fill_element", a.in[0].dtype), places.size(),
        device::FillElementArguments{places.data(), a.in[1].data, a.out[0].data, places.size(), columns});
  }
  dispatch_dtype(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < places.size(); ++i) a.out[0].as<T>()[i * columns + places[i]] = a.in[1].as<T>()[i];
  });
}

}  // namespace

void register_fill_element(OpRegistry& ops) {
  Sample s;
  s.inputs = {{3, 4}, {3}, {3}};
  s.low = 0.0;
  s.high = 3.4;
  ops.declare("fill_element_0index")
      .doc("lhs with lhs[i, rhs[i]] replaced by mhs[i].")
      .input("lhs", "(rows, columns), any dtype")
      .input("mhs", "(rows,), dtype of lhs")
      .input("rhs", "(rows,): columns, integers; negative ones count from the end")
      .output("output", "shape and dtype of lhs")
      .inplace(0, 0)
      .infer(infer_fill_element)
      .any_device()
      .waits_on_gpu()
      .cpu(run_fill_element)
      .may_raise()
      .gradient(kNotDifferentiable)
      .sample(s);
}

}  // namespace hybridnet::ops
