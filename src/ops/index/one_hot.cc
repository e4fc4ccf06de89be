// one_hot: indices as rows with one marked element.
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/values_arguments.h"
#include "kernels/index/indices.h"
#include "kernels/memory/fill.h"
#include "ops/device_launch.h"

namespace hybridnet::ops {
namespace {

struct OneHotParams {
  int64_t depth;
  double on_value, off_value;
  DType dtype;
  static void describe(ParamSchema<OneHotParams>& schema) {
    schema.field("depth", &OneHotParams::depth).at_least(0).doc("Length of a row.");
    schema.field("on_value", &OneHotParams::on_value).default_value(1.0).doc("Value at the index.");
    schema.field("off_value", &OneHotParams::off_value).default_value(0.0).doc("Value of all other elements.");
    schema.field("dtype", &OneHotParams::dtype).default_value("float32").doc("Dtype of the output.");
  }
};

void infer_one_hot(const OneHotParams& p, InferContext& c) {
  c.set_out_dtype(0, p.dtype);
  if (c.in_shape(0).rank_known()) {
    Shape out = c.in_shape(0);
    out.push_back(p.depth);
    c.set_out_shape(0, out);
  }
  if (c.out_shape(0).ndim() >= 1) {
    const std::span<const int64_t> out = c.out_shape(0).dims();
    c.set_in_shape(0, Shape(out.first(out.size() - 1)));
  }
}

void run_one_hot(const OneHotParams& p, const KernelArgs& a) {
  const kernels::Indices ids(a.in[0]);
  if (device::current()) {
    if (p.depth > 0)
      ids.report({"one_hot", "indices"}, kernels::Bounds::index(p.depth), "its row is off_value throughout");
    return on_device::launch(
        "values.cuh", "OneHotArguments", on_device::with_dtype("one_hot", a.out[0].dtype), a.out[0].size(),
        device::OneHotArguments{ids.data(), a.out[0].data, ids.size(), p.depth, p.on_value, p.off_value});
  }
  int64_t first_outside = -1;
  kernels::fill(a.out[0], p.off_value);
  dispatch_dtype(a.out[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T on = kernels::element_from<T>(p.on_value);
    T* out = a.out[0].as<T>();
    for (int64_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= 0 && ids[i] < p.depth)
        out[i * p.depth + ids[i]] = on;
      else if (first_outside < 0)
        first_outside = i;
    }
  });
  if (first_outside >= 0 && p.depth > 0)
    kernels::report_out_of_range({"one_hot", "indices"}, kernels::index_text(ids[first_outside]), first_outside,
                                 kernels::Bounds::index(p.depth), "its row is off_value throughout");
}

}  // namespace

void register_one_hot(OpRegistry& ops) {
  Sample sample;
  sample.inputs = {{2, 3}};
  sample.attrs = {{"depth", "4"}};
  sample.low = -1;
  sample.high = 4;
  sample.integer_valued = true;
  Sample with_values = sample;
  with_values.attrs = {{"depth", "3"}, {"on_value", "8"}, {"off_value", "-1"}, {"dtype", "int32"}};
  ops.declare<OneHotParams>("one_hot")
      .alias("_npx_one_hot")
      .doc("Rows of off_value with on_value at the index; an index out of range gives a row of off_value.")
      .input("indices", "any shape; integers of any dtype")
      .output("output", "shape of indices with depth appended")
      .infer(infer_one_hot)
      .any_device()
      .cpu(run_one_hot)
      .gradient(kNotDifferentiable)
      .sample(sample)
      .sample(with_values);
}

}  // namespace hybridnet::ops
