// Pooling and the operators of its gradients.
#include "kernels/conv/pooling.h"

#include "hybridnet/declare.h"
#include "kernels/dnnl/pooling.h"
#include "ops/emit.h"
#include "ops/nn/pooling_params.h"

namespace hybridnet::ops {
namespace {

using kernels::PoolGeometry;
using kernels::PoolType;

const OpRef kPooling{"Pooling"}, kMaxBackward{"_max_pooling_backward"}, kMaxGather{"_max_pooling_gather"},
    kSumBackward{"_sum_pooling_backward"};

// The gradient of sum pooling has the spatial sizes of the data as a parameter.
struct SumBackwardParams : PoolingParams {
  Tuple data_size;
  static void describe(ParamSchema<SumBackwardParams>& schema);
};

void SumBackwardParams::describe(ParamSchema<SumBackwardParams>& schema) {
  describe_pooling_fields(schema);
  schema.field("data_size", &SumBackwardParams::data_size).doc("Spatial sizes of the data.");
  schema.check([](const SumBackwardParams& p) { check_pooling(p); });
}

// A kernel that calls f(geometry, args, T{}) for float or double.
template <typename F>
class PoolKernel final : public Kernel {
 public:
  PoolKernel(const PoolGeometry& g, F f) : g_(g), f_(f) {}
  void run(const KernelArgs& args) override {
    args.out[0].dtype == DType::kFloat64 ? f_(g_, args, double{}) : f_(g_, args, float{});
  }

 private:
  PoolGeometry g_;
  F f_;
};

template <typename F>
Ref<Kernel> link_pool(const PoolGeometry& g, F f) {
  return Ref<Kernel>(new PoolKernel<F>(g, f));
}

class AverageKernel final : public Kernel {
 public:
  AverageKernel(const PoolGeometry& g, bool gradient) : pooling_(g, gradient) {}
  int64_t workspace_bytes() const override { return pooling_.workspace_bytes(); }
  std::string description() const override { return pooling_.description(); }
  void run(const KernelArgs& args) override {
    pooling_.run(args.in[0].as<float>(), args.out[0].as<float>(), args.workspace);
  }

 private:
  onednn::AveragePooling pooling_;
};

// Sum and average pooling, and their gradients, have one operand.
template <typename F>
Ref<Kernel> link_one_operand(const PoolGeometry& g, const LinkContext& c, bool gradient, F f) {
  if (c.device.type != DeviceType::kGPU && c.in[0].dtype == DType::kFloat32 && onednn::AveragePooling::pays(g))
    return Ref<Kernel>(new AverageKernel(g, gradient));
  return link_pool(g, f);
}

double pool_flops(const PoolGeometry& g) {  // one operation per element of a window
  return static_cast<double>(g.n * g.c) * static_cast<double>(g.out_size() * g.kernel_size());
}
double pool_cost_ns(const PoolGeometry& g) { return pool_flops(g) / 4.0 + 300; }

// ---- gradients

Value sum_backward(const PoolingParams& p, PoolType type, const Value& d, const Shape& x) {
  SumBackwardParams q;
  static_cast<PoolingParams&>(q) = p;
  q.pool_type = type;
  const ImageAxes axes = p.axes(x.ndim());
  q.data_size = Tuple::scalar();
  for (int i = 0; i < axes.spatial; ++i) q.data_size.push_back(x[axes.first + i]);
  return call(kSumBackward, {d}, ParamSchema<SumBackwardParams>::box(std::move(q)));
}

Value power(const Value& x, int exponent) { return exponent == 1 ? x : x * x; }

Values pooling_gradient(const PoolingParams& p, const GradientContext& g) {
  const Value d = g.output_grad(0);
  if (!d) return {};
  const Shape& x = g.input_spec(0).shape;
  switch (p.pool_type) {
    case PoolType::kMax:
      return {call(kMaxBackward, {d, g.input(0), g.output(0)}, ParamSchema<PoolingParams>::box(p))};
    case PoolType::kLp: {
      const int exponent = p.p_value.value_or(2);
      if (exponent == 1) return {sum_backward(p, PoolType::kSum, d, x)};
      // d (sum x^p)^(1/p) = x^(p-1) y^(1-p), taken as 0 where y is 0.
      const Value y = g.output(0);
      const Value safe = where(y, y, ones_like(y));
      const Value scaled = where(y, d / power(safe, exponent - 1), zeros_like(d));
      return {sum_backward(p, PoolType::kSum, scaled, x) * power(g.input(0), exponent - 1)};
    }
    default:
      return {sum_backward(p, p.pool_type, d, x)};
  }
}

void infer_max_backward(const PoolingParams& p, InferContext& c) {
  (void)p;
  c.unify_dtypes();
  c.set_in_shape(2, c.in_shape(0));
  c.set_in_shape(0, c.in_shape(2));
  c.set_out_shape(0, c.in_shape(1));
}

Values max_backward_gradient(const PoolingParams& p, const GradientContext& g) {
  const Value d = g.output_grad(0);
  Values grads(3);
  if (d && g.wants(0)) grads[0] = call(kMaxGather, {d, g.input(1), g.input(2)}, ParamSchema<PoolingParams>::box(p));
  return grads;  // the position of the maximum is constant under small changes of the data
}

void infer_max_gather(const PoolingParams& p, InferContext& c) {
  (void)p;
  c.unify_dtypes();
  c.set_in_shape(0, c.in_shape(1));
  c.set_in_shape(1, c.in_shape(0));
  c.set_out_shape(0, c.in_shape(2));
}

Values max_gather_gradient(const PoolingParams& p, const GradientContext& g) {
  const Value d = g.output_grad(0);
  Values grads(3);
  if (d && g.wants(0)) grads[0] = call(kMaxBackward, {d, g.input(1), g.input(2)}, ParamSchema<PoolingParams>::box(p));
  return grads;
}

void infer_sum_backward(const SumBackwardParams& p, InferContext& c) {
  c.unify_dtypes();
  if (!c.in_shape(0).rank_known()) return;
  const ImageAxes axes = p.axes(c.in_shape(0).ndim());
  Shape out = Shape::unknown(c.in_shape(0).ndim());
  out[0] = c.in_shape(0)[0];
  out[axes.channel] = c.in_shape(0)[axes.channel];
  for (int i = 0; i < axes.spatial; ++i) out[axes.first + i] = tuple_at(p.data_size, i, kUnknownDim);
  c.set_out_shape(0, out);
}

Values sum_backward_gradient(const SumBackwardParams& p, const GradientContext& g) {
  const Value d = g.output_grad(0);
  if (!d) return {};
  return {call(kPooling, {d}, ParamSchema<PoolingParams>::box(p))};
}

constexpr auto kForward = [](const PoolGeometry& g, const KernelArgs& a, auto zero) {
  using T = decltype(zero);
  kernels::pool_forward(g, static_cast<const T*>(a.in[0].as<T>()), a.out[0].as<T>());
};
constexpr auto kRunMaxBackward = [](const PoolGeometry& g, const KernelArgs& a, auto zero) {
  using T = decltype(zero);
  kernels::max_pool_backward(g, static_cast<const T*>(a.in[0].as<T>()), a.in[1].as<T>(), a.in[2].as<T>(),
                             a.out[0].as<T>());
};
constexpr auto kRunMaxGather = [](const PoolGeometry& g, const KernelArgs& a, auto zero) {
  using T = decltype(zero);
  kernels::max_pool_gather(g, static_cast<const T*>(a.in[0].as<T>()), a.in[1].as<T>(), a.in[2].as<T>(),
                           a.out[0].as<T>());
};
constexpr auto kRunSumBackward = [](const PoolGeometry& g, const KernelArgs& a, auto zero) {
  using T = decltype(zero);
  kernels::sum_pool_backward(g, static_cast<const T*>(a.in[0].as<T>()), a.out[0].as<T>());
};

void register_backward(OpRegistry& ops) {
  ops.declare<PoolingParams>("_max_pooling_backward")
      .internal()
      .doc("Gradient of maximum pooling: the gradient of each output flows to the first maximum of its window.")
      .input("output_grad", "shape of output")
      .input("data", "same as in Pooling")
      .input("output", "output of Pooling")
      .output("data_grad", "shape of data")
      .infer(infer_max_backward)
      .any_device()
      .link([](const PoolingParams& p, const LinkContext& c) {
        return link_pool(pool_geometry(p, c.in[1].shape, c.in[0].shape, linked_channels_last(c)), kRunMaxBackward);
      })
      .halves_through_float()
      .gradient(max_backward_gradient, Saves::of({1, 2}))
      .image({0, 1, 2}, {0})
      .image_when([](const PoolingParams& p) { return !is_channels_last(p.layout); })
      .cost([](const PoolingParams& p, auto in, auto) {
        return pool_cost_ns(pool_geometry(p, in[1].shape, in[0].shape, false));
      })
      .sample(Sample{.inputs = {{2, 2, 2, 2}, {2, 2, 4, 4}, {2, 2, 2, 2}},
                     .attrs = {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}},
                     .check_gradient = false,
                     .note = "random data do not hold the maxima that the third input claims"});
  ops.declare<PoolingParams>("_max_pooling_gather")
      .internal()
      .doc("For each window, the element of values at the position of the first maximum of data.")
      .input("values", "shape of data")
      .input("data", "same as in Pooling")
      .input("output", "output of Pooling")
      .output("taken", "shape of output")
      .infer(infer_max_gather)
      .any_device()
      .link([](const PoolingParams& p, const LinkContext& c) {
        return link_pool(pool_geometry(p, c.in[1].shape, c.in[2].shape, linked_channels_last(c)), kRunMaxGather);
      })
      .halves_through_float()
      .gradient(max_gather_gradient, Saves::of({1, 2}))
      .image({0, 1, 2}, {0})
      .image_when([](const PoolingParams& p) { return !is_channels_last(p.layout); })
      .cost([](const PoolingParams& p, auto in, auto) {
        return pool_cost_ns(pool_geometry(p, in[1].shape, in[2].shape, false));
      })
      .sample(Sample{.inputs = {{2, 2, 4, 4}, {2, 2, 4, 4}, {2, 2, 2, 2}},
                     .attrs = {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}},
                     .check_gradient = false,
                     .note = "random data do not hold the maxima that the third input claims"});
  ops.declare<SumBackwardParams>("_sum_pooling_backward")
      .internal()
      .doc("Gradient of sum and average pooling.")
      .input("output_grad", "shape of the output of Pooling")
      .output("data_grad", "(batch, channels, data_size...)")
      .infer(infer_sum_backward)
      .any_device()
      .link([](const SumBackwardParams& p, const LinkContext& c) {
        return link_one_operand(pool_geometry(p, c.out[0].shape, c.in[0].shape, linked_channels_last(c)), c, true,
                                kRunSumBackward);
      })
      .halves_through_float()
      .gradient(sum_backward_gradient, Saves::nothing())
      .image({0}, {0})
      .image_when([](const SumBackwardParams& p) { return !is_channels_last(p.layout); })
      .cost([](const SumBackwardParams& p, auto in, auto out) {
        return pool_cost_ns(pool_geometry(p, out[0].shape, in[0].shape, false));
      })
      .sample({{2, 3, 3, 2}}, {{"kernel", "(3, 2)"},
                               {"stride", "(2, 2)"},
                               {"pad", "(1, 0)"},
                               {"pool_type", "avg"},
                               {"data_size", "(5, 4)"}});
}

}  // namespace

void register_pooling(OpRegistry& ops) {
  ops.declare<PoolingParams>("Pooling")
      .alias("_npx_pooling")
      .alias("Pooling_v1")
      .doc("Reduces windows of an image to their maximum, average, sum, or (sum of x^p)^(1/p).")
      .input("data", "(batch, channels, spatial...), 1 to 3 spatial axes; with layout N...C the channels are last")
      .names_its_input()
      .output("output",
              "spatial sizes valid: floor((size + 2 pad - kernel) / stride) + 1, full: ceil of it, same: ceil(size / "
              "stride)")
      .infer([](const PoolingParams& p, InferContext& c) {
        c.unify_dtypes();
        infer_pooling(p, c);
      })
      .any_device()
      .link([](const PoolingParams& p, const LinkContext& c) {
        return link_one_operand(pool_geometry(p, c.in[0].shape, c.out[0].shape, linked_channels_last(c)), c, false,
                                kForward);
      })
      .halves_through_float()
      .gradient(pooling_gradient)
      .image({0}, {0})
      .image_when([](const PoolingParams& p) { return !is_channels_last(p.layout); })
      .quantized({.op = "_contrib_quantized_pooling"},
                 [](const PoolingParams& p) {
                   return (p.pool_type == PoolType::kMax || p.pool_type == PoolType::kAvg) &&
                          !is_channels_last(p.layout) && p.kernel.ndim() <= 2;
                 })
      .cost([](const PoolingParams& p, auto in, auto out) {
        return pool_cost_ns(pool_geometry(p, in[0].shape, out[0].shape, false));
      })
      .flops([](const PoolingParams& p, auto in, auto out) {
        return pool_flops(pool_geometry(p, in[0].shape, out[0].shape, false));
      })
      .sample({{2, 3, 6, 5}}, {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}})
      .sample({{2, 3, 6, 5}},
              {{"kernel", "(3, 3)"}, {"stride", "(2, 2)"}, {"pad", "(1, 1)"}, {"pooling_convention", "full"}})
      .sample({{2, 3, 6, 5}}, {{"kernel", "(3, 2)"}, {"stride", "(2, 1)"}, {"pad", "(1, 1)"}, {"pool_type", "avg"}})
      .sample({{2, 3, 6, 5}}, {{"kernel", "(3, 3)"},
                               {"stride", "(2, 2)"},
                               {"pad", "(1, 1)"},
                               {"pool_type", "avg"},
                               {"count_include_pad", "False"},
                               {"pooling_convention", "full"}})
      .sample({{2, 3, 6, 5}}, {{"pool_type", "avg"}, {"global_pool", "True"}})
      .sample({{2, 3, 6, 5}}, {{"pool_type", "max"}, {"global_pool", "True"}, {"kernel", "(7, 7)"}})
      .sample({{2, 5, 6, 3}}, {{"kernel", "(3, 3)"}, {"stride", "(2, 2)"}, {"pad", "(1, 1)"}, {"layout", "NHWC"}})
      .sample({{2, 5, 6, 3}}, {{"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"layout", "NHWC"}, {"pool_type", "avg"}})
      .sample({{2, 6, 6, 20}}, {{"kernel", "(3, 3)"},
                                {"stride", "(2, 2)"},
                                {"pad", "(1, 1)"},
                                {"layout", "NHWC"},
                                {"pool_type", "avg"},
                                {"count_include_pad", "False"},
                                {"pooling_convention", "full"}})
      .sample({{2, 3, 7}}, {{"kernel", "(3,)"}, {"stride", "(2,)"}, {"pool_type", "sum"}})
      .sample({{2, 3, 7}}, {{"kernel", "(3,)"}, {"stride", "(3,)"}, {"pooling_convention", "same"}})
      .sample({{1, 2, 4, 3, 4}}, {{"kernel", "(2, 2, 2)"}, {"stride", "(2, 1, 2)"}})
      .sample({{2, 3, 4, 5}}, {{"kernel", "(2, 2)"}, {"pool_type", "lp"}, {"p_value", "2"}}, 0.2, 2.0)
      .sample({{2, 3, 4, 5}}, {{"kernel", "(2, 2)"}, {"pool_type", "lp"}, {"p_value", "3"}}, 0.2, 2.0)
      .sample({{2, 3, 4, 5}}, {{"kernel", "(2, 2)"}, {"pool_type", "lp"}, {"p_value", "1"}});
  register_backward(ops);
}

}  // namespace hybridnet::ops
