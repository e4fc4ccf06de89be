// _linspace: a given number of evenly spaced values.
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/values_arguments.h"
#include "kernels/memory/fill.h"
#include "ops/device_launch.h"
#include "ops/shape_param.h"

namespace hybridnet::ops {
namespace {

struct LinspaceParams {
  double start, stop;
  int32_t num;
  bool endpoint;
  std::string ctx;
  DType dtype;
  // Parameters that old tools list for this operator; without effect.
  double step;
  int32_t repeat;
  bool infer_range;
  static void describe(ParamSchema<LinspaceParams>& schema) {
    schema.field("start", &LinspaceParams::start).doc("First value.");
    schema.field("stop", &LinspaceParams::stop).doc("Last value; without endpoint, the value after the last.");
    schema.field("num", &LinspaceParams::num).at_least(0).doc("Number of values.");
    schema.field("endpoint", &LinspaceParams::endpoint).default_value(true).doc("Whether stop is the last value.");
    describe_ctx<LinspaceParams>(schema);
    schema.field("dtype", &LinspaceParams::dtype).default_value("float32").doc("Dtype of the output.");
    schema.field("step", &LinspaceParams::step).default_value(1.0).hidden().doc("Without effect.");
    schema.field("repeat", &LinspaceParams::repeat).default_value(1).hidden().doc("Without effect.");
    schema.field("infer_range", &LinspaceParams::infer_range).default_value(false).hidden().doc("Without effect.");
  }
};

void run_linspace(const LinspaceParams& p, const KernelArgs& a) {
  const int64_t n = a.out[0].size(), gaps = p.endpoint ? n - 1 : n;
  const double step = gaps > 0 ? (p.stop - p.start) / static_cast<double>(gaps) : 0.0;
  if (device::current()) {
    const int64_t has_last = p.endpoint && n > 1;
    return on_device::launch("values.cuh", "RangeArguments", on_device::with_dtype("range", a.out[0].dtype), n,
                             device::RangeArguments{a.out[0].data, n, p.start, step, p.stop, 1, has_last});
  }
  dispatch_dtype(a.out[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    T* data = a.out[0].as<T>();
    parallel_for(n, 1.2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) data[i] = kernels::element_from<T>(p.start + static_cast<double>(i) * step);
    });
    if (p.endpoint && n > 1) data[n - 1] = kernels::element_from<T>(p.stop);  // exact in spite of the rounded step
  });
}

}  // namespace

void register_linspace(OpRegistry& ops) {
  ops.declare<LinspaceParams>("_linspace")
      .alias("_npi_linspace")
      .doc("num evenly spaced values from start to stop.")
      .output("output", "shape (num,)")
      .infer([](const LinspaceParams& p, InferContext& c) {
        c.set_out_dtype(0, p.dtype);
        c.set_out_shape(0, Shape({p.num}));
      })
      .any_device()
      .cpu(run_linspace)
      .gradient(kNotDifferentiable)
      .sample({}, {{"start", "0"}, {"stop", "1"}, {"num", "5"}})
      .sample({}, {{"start", "2"}, {"stop", "-1"}, {"num", "4"}, {"endpoint", "False"}});
}

}  // namespace hybridnet::ops
