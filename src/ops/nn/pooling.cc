// Pooling and the products that differentiate it.
#include "kernels/pooling.h"

#include "hybridnet/op.h"
#include "kernels/dnnl/pooling.h"
#include "ops/emit.h"
#include "ops/nn/image_layout.h"

namespace hybridnet::ops {
namespace {

using kernels::PoolGeometry;
using kernels::PoolType;

const OpRef kPooling{"Pooling"}, kMaxBackward{"_max_pooling_backward"}, kMaxGather{"_max_pooling_gather"},
    kSumBackward{"_sum_pooling_backward"};

enum class PoolConvention : int32_t { kValid, kFull, kSame };

struct PoolingParams {
  Tuple kernel, stride, pad;
  PoolType pool_type = PoolType::kMax;
  PoolConvention pooling_convention = PoolConvention::kValid;
  bool global_pool = false, cudnn_off = false;
  std::optional<int32_t> p_value;
  std::optional<bool> count_include_pad;
  std::optional<ImageLayout> layout;

  // Number of spatial axes; `ndim` of the data decides when the kernel does not.
  int spatial(int ndim) const { return global_pool || kernel.ndim() == 0 ? ndim - 2 : kernel.ndim(); }
  ImageAxes axes(int ndim) const { return ImageAxes(spatial(ndim), is_channels_last(layout)); }
  static void describe(ParamSchema<PoolingParams>& schema);
};

// The sum's gradient has the spatial sizes of the data as a parameter.
struct SumBackwardParams : PoolingParams {
  Tuple data_size;
  static void describe(ParamSchema<SumBackwardParams>& schema);
};

template <typename P>
void describe_fields(ParamSchema<P>& schema) {
  const auto field = [&]<typename M>(const char* name, M PoolingParams::*member) {
    return schema.field(name, static_cast<M P::*>(member));
  };
  field("kernel", &PoolingParams::kernel).default_value(Tuple::scalar()).doc("Window: (w,), (h, w) or (d, h, w).");
  field("pool_type", &PoolingParams::pool_type)
      .default_value("max")
      .choice("max", PoolType::kMax)
      .choice("avg", PoolType::kAvg)
      .choice("sum", PoolType::kSum)
      .choice("lp", PoolType::kLp)
      .doc("What becomes of a window.");
  field("global_pool", &PoolingParams::global_pool).default_value(false).doc("The window is the whole image.");
  field("cudnn_off", &PoolingParams::cudnn_off).default_value(false).hidden();
  field("pooling_convention", &PoolingParams::pooling_convention)
      .default_value("valid")
      .choice("full", PoolConvention::kFull)
      .choice("valid", PoolConvention::kValid)
      .choice("same", PoolConvention::kSame)
      .doc("valid: only whole steps of the window; full: also the rest; same: ceil(size / stride) outputs.");
  field("stride", &PoolingParams::stride)
      .default_value(Tuple::scalar())
      .doc("Steps of the window; empty: 1 everywhere.");
  field("pad", &PoolingParams::pad).default_value(Tuple::scalar()).doc("Padding on both sides; empty: none.");
  field("p_value", &PoolingParams::p_value).none_by_default().range(1, 3).doc("Exponent of pool_type lp.");
  field("count_include_pad", &PoolingParams::count_include_pad)
      .none_by_default()
      .doc("Whether an average counts padding; None: it does.");
  field("layout", &PoolingParams::layout)
      .none_by_default()
      .choice("NCW", ImageLayout::kNCW)
      .choice("NCHW", ImageLayout::kNCHW)
      .choice("NCDHW", ImageLayout::kNCDHW)
      .choice("NWC", ImageLayout::kNWC)
      .choice("NHWC", ImageLayout::kNHWC)
      .choice("NDHWC", ImageLayout::kNDHWC)
      .doc("Order of the axes; None: channels second.");
}

// True if `pad` is the same on all axes however many numbers it has: zeros, or more equal numbers than axes.
bool is_one_padding(const Tuple& pad, int sizes) {
  const auto same = [&pad](int64_t v) { return v == pad[0]; };
  return std::all_of(pad.begin(), pad.end(), same) && (pad.ndim() <= 0 || pad[0] == 0 || pad.ndim() > sizes);
}

void check_pooling(const PoolingParams& p) {
  const int sizes = p.kernel.ndim();
  if (sizes > 3 || (sizes < 1 && !p.global_pool)) {
    throw ParamError({.input = "kernel",
                      .expected = "1, 2 or 3 sizes",
                      .given = p.kernel.str(),
                      .fix = "give the kernel, or global_pool=True"});
  }
  if (p.pool_type == PoolType::kLp && !p.p_value) {
    throw ParamError({.input = "p_value", .expected = "1, 2 or 3", .given = "None", .because = "pool_type is lp"});
  }
  if (p.global_pool) return;
  check_tuple("kernel", p.kernel, sizes, 1);
  check_tuple("stride", p.stride, sizes, 1);
  check_tuple("pad", p.pad, is_one_padding(p.pad, sizes) ? p.pad.ndim() : sizes, 0);
  check_layout(p.layout, sizes);
  if (p.pooling_convention == PoolConvention::kSame)
    for (int i = 0; i < p.pad.ndim(); ++i)
      if (p.pad[i] != 0)
        throw ParamError(
            {.input = "pad", .expected = "0", .given = p.pad.str(), .because = "pooling_convention is same"});
}

void PoolingParams::describe(ParamSchema<PoolingParams>& schema) {
  describe_fields(schema);
  schema.check(check_pooling);
}
void SumBackwardParams::describe(ParamSchema<SumBackwardParams>& schema) {
  describe_fields(schema);
  schema.field("data_size", &SumBackwardParams::data_size).doc("Spatial sizes of the data.");
  schema.check([](const SumBackwardParams& p) { check_pooling(p); });
}

int64_t output_size(const InferContext& c, const PoolingParams& p, int i, int64_t in) {
  if (p.global_pool) return 1;
  if (in == kUnknownDim) return kUnknownDim;
  const int64_t stride = tuple_at(p.stride, i, 1), pad = tuple_at(p.pad, i, 0), kernel = p.kernel[i];
  if (p.pooling_convention == PoolConvention::kSame) return (in + stride - 1) / stride;
  const int64_t room = in + 2 * pad - kernel;
  if (room < 0) {
    throw ShapeError({.input = c.input_name(0),
                      .expected = "at least " + std::to_string(kernel - 2 * pad) + " elements along spatial axis " +
                                  std::to_string(i),
                      .given = std::to_string(in) + ", shape " + c.in_shape(0).str(),
                      .because = "the kernel covers " + std::to_string(kernel) + " and pad adds " +
                                 std::to_string(pad) + " on both sides"});
  }
  return 1 + (p.pooling_convention == PoolConvention::kFull ? (room + stride - 1) / stride : room / stride);
}

void infer_pooling(const PoolingParams& p, InferContext& c) {
  c.unify_dtypes();
  int ndim = c.in_shape(0).rank_known()              ? c.in_shape(0).ndim()
             : p.kernel.ndim() > 0 && !p.global_pool ? p.kernel.ndim() + 2
                                                     : kUnknownNdim;
  if (ndim == kUnknownNdim) return;
  if (ndim < 3 || ndim > 5) {
    throw ShapeError({.input = c.input_name(0),
                      .expected = "3 to 5 dimensions: batch, channels and space",
                      .given = "shape " + c.in_shape(0).str()});
  }
  const ImageAxes axes = p.axes(ndim);
  require_image(c, 0, axes);
  Shape out = Shape::unknown(ndim);
  out[0] = c.in_shape(0)[0];
  out[axes.channel] = c.in_shape(0)[axes.channel];
  for (int i = 0; i < axes.spatial; ++i) out[axes.first + i] = output_size(c, p, i, c.in_shape(0)[axes.first + i]);
  c.set_out_shape(0, out);
  Shape learned = Shape::unknown(ndim);
  learned[0] = c.out_shape(0)[0];
  learned[axes.channel] = c.out_shape(0)[axes.channel];
  c.set_in_shape(0, learned);
}

PoolGeometry pool_geometry(const PoolingParams& p, const Shape& x, const Shape& y, bool linked_last) {
  const ImageAxes axes = p.axes(x.ndim());
  const bool logical_last = is_channels_last(p.layout);
  if (logical_last && linked_last) {
    throw UnsupportedError({.message =
                                "channels-last memory was chosen for a node whose layout attribute has the channels "
                                "last already"});
  }
  PoolGeometry g;
  g.type = p.pool_type;
  g.power = p.p_value.value_or(2);
  g.count_pad = p.count_include_pad.value_or(true);
  g.channels_last = logical_last || linked_last;
  g.n = x[0];
  g.c = x[axes.channel];
  for (int i = 0; i < axes.spatial; ++i) {
    const size_t k = static_cast<size_t>(3 - axes.spatial + i);
    g.in[k] = x[axes.first + i];
    g.out[k] = y[axes.first + i];
    g.kernel[k] = p.global_pool ? g.in[k] : p.kernel[i];
    g.stride[k] = p.global_pool ? 1 : tuple_at(p.stride, i, 1);
    g.pad[k] = p.global_pool ? 0 : tuple_at(p.pad, i, 0);
  }
  return g;
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

// Sums and averages, and their gradients, have one operand.
template <typename F>
Ref<Kernel> link_one_operand(const PoolGeometry& g, const LinkContext& c, bool gradient, F f) {
  if (c.in[0].dtype == DType::kFloat32 && onednn::AveragePooling::pays(g))
    return Ref<Kernel>(new AverageKernel(g, gradient));
  return link_pool(g, f);
}

int64_t pool_cost_ns(const PoolGeometry& g) {
  const double reads = static_cast<double>(g.n * g.c) * static_cast<double>(g.out_size() * g.kernel_size());
  return static_cast<int64_t>(reads / 4.0) + 300;
}

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
      // d (sum x^p)^(1/p) = x^(p-1) y^(1-p); where y is 0, no direction is better than another.
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
  return grads;  // where the maximum stands does not change with small changes of the data
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
      .doc("Gradient of maximum pooling: each output's gradient goes to the first maximum of its window.")
      .input("output_grad", "as output")
      .input("data", "as in Pooling")
      .input("output", "of Pooling")
      .output("data_grad", "as data")
      .infer(infer_max_backward)
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
      .doc("Takes from values, for each window, the element where data holds the first maximum.")
      .input("values", "as data")
      .input("data", "as in Pooling")
      .input("output", "of Pooling")
      .output("taken", "as output")
      .infer(infer_max_gather)
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
      .input("output_grad", "as output of Pooling")
      .output("data_grad", "(batch, channels, data_size...)")
      .infer(infer_sum_backward)
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
      .doc("Summarizes windows of an image: maximum, average, sum, or (sum of x^p)^(1/p).")
      .input("data", "(batch, channels, spatial...), 1 to 3 spatial axes; with layout N...C the channels come last")
      .output("output",
              "spatial sizes valid: floor((size + 2 pad - kernel) / stride) + 1, full: ceil of it, same: ceil(size / "
              "stride)")
      .infer(infer_pooling)
      .link([](const PoolingParams& p, const LinkContext& c) {
        return link_one_operand(pool_geometry(p, c.in[0].shape, c.out[0].shape, linked_channels_last(c)), c, false,
                                kForward);
      })
      .halves_through_float()
      .gradient(pooling_gradient)
      .image({0}, {0})
      .image_when([](const PoolingParams& p) { return !is_channels_last(p.layout); })
      .cost([](const PoolingParams& p, auto in, auto out) {
        return pool_cost_ns(pool_geometry(p, in[0].shape, out[0].shape, false));
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
