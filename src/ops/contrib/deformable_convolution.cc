// _contrib_DeformableConvolution and _contrib_ModulatedDeformableConvolution.
//   Dai et al.: Deformable Convolutional Networks, ICCV 2017; Zhu et al.: Deformable ConvNets v2, CVPR 2019.
#include "hybridnet/declare.h"
#include "kernels/product/gemm.h"
#include "ops/contrib/deformable_gradients.h"
#include "ops/cost.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct DeformableParams : TapGeometry {
  int32_t num_filter = 1, num_group = 1, im2col_step = 64;
  int64_t workspace = 0;
  bool no_bias = false, modulated = false;
  std::optional<std::string> layout;

  int weight_index() const { return modulated ? 3 : 2; }
  ColumnsParams columns() const {
    ColumnsParams c;
    static_cast<TapGeometry&>(c) = *this;
    c.zero_border = modulated;
    c.image_shape = Tuple::scalar();
    return c;
  }
};

template <typename P>
void describe_deformable(ParamSchema<P>& schema) {
  describe_taps(schema);
  base_field(schema, "num_filter", &P::num_filter).at_least(1).doc("Channels of the output.");
  base_field(schema, "num_group", &P::num_group)
      .default_value(1)
      .at_least(1)
      .doc("Groups of channels that are convolved separately.");
  base_field(schema, "no_bias", &P::no_bias).default_value(false).doc("Whether there is no bias.");
  base_field(schema, "workspace", &P::workspace).default_value(1024).hidden().doc("Without effect.");
  base_field(schema, "layout", &P::layout).none_by_default().one_of({"NCW", "NCHW", "NCDHW"}).hidden().doc("NCHW.");
  schema.check([](const P& p) { check_taps(p); });
}

struct PlainParams : DeformableParams {
  static void describe(ParamSchema<PlainParams>& schema) { describe_deformable(schema); }
};
struct ModulatedParams : DeformableParams {
  ModulatedParams() { modulated = true; }
  static void describe(ParamSchema<ModulatedParams>& schema) {
    describe_deformable(schema);
    base_field(schema, "im2col_step", &ModulatedParams::im2col_step).default_value(64).hidden().doc("Without effect.");
  }
};

void check_groups(const DeformableParams& p, int64_t channels) {
  const auto require = [](const char* field, int64_t groups, int64_t size, const char* of) {
    if (size == kUnknownDim || size % groups == 0) return;
    throw ParamError({.input = field,
                      .expected = "a divisor of the " + std::string(of) + ", " + std::to_string(size),
                      .given = std::to_string(groups)});
  };
  require("num_group", p.num_group, channels, "input channels");
  require("num_group", p.num_group, p.num_filter, "output channels");
  require("num_deformable_group", p.num_deformable_group, channels, "input channels");
}

void infer_deformable(const DeformableParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_in_shape(0, Shape::unknown(4));
  const Shape data = c.in_shape(0);
  check_groups(p, data[1]);
  const int64_t height = p.out_size(0, data[2]), width = p.out_size(1, data[3]);
  if ((height < 1 && height != kUnknownDim) || (width < 1 && width != kUnknownDim)) {
    throw ShapeError({.input = "data",
                      .expected = "at least the size of the kernel",
                      .given = "shape " + data.str(),
                      .because = "the kernel is " + p.kernel.str() + ", the border " + p.pad.str() + " wide"});
  }
  c.set_in_shape(1, Shape({data[0], 2 * p.num_deformable_group * p.taps(), height, width}));
  if (p.modulated) c.set_in_shape(2, Shape({data[0], p.num_deformable_group * p.taps(), height, width}));
  const int weight = p.weight_index();
  c.set_in_shape(weight, Shape({p.num_filter, data[1] == kUnknownDim ? kUnknownDim : data[1] / p.num_group, p.kernel[0],
                                p.kernel[1]}));
  if (!p.no_bias) c.set_in_shape(weight + 1, Shape({p.num_filter}));
  c.set_out_shape(0, Shape({data[0], p.num_filter, height, width}));
}

// Multiplies the columns of one image by its mask.
template <typename T>
void modulate(const kernels::DeformableSampling& s, const T* mask, T* columns) {
  const int64_t per_group = s.channels / s.groups, plane = s.taps() * s.points();
  for (int64_t c = 0; c < s.channels; ++c) {
    const T* scale = mask + c / per_group * plane;
    for (int64_t i = 0; i < plane; ++i) columns[c * plane + i] *= scale[i];
  }
}

template <typename T>
void run_images(const DeformableParams& p, const KernelArgs& a) {
  const Shape& out_shape = *a.out[0].shape;
  kernels::DeformableSampling s = p.sampling(*a.in[0].shape, out_shape[2], out_shape[3]);
  const int64_t batch = s.batch, points = s.points(), taps = s.taps();
  s.batch = 1;
  s.zero_border = p.modulated;
  const int weight_index = p.weight_index();
  const T* weight = a.in[static_cast<size_t>(weight_index)].as<T>();
  const T* bias = p.no_bias ? nullptr : a.in[static_cast<size_t>(weight_index) + 1].as<T>();
  const int64_t filters = p.num_filter / p.num_group, depth = s.channels / p.num_group * taps;
  const auto product = kernels::GemmShape::dense(false, false, filters, points, depth);
  const int64_t image_size = s.channels * s.height * s.width, offset_size = 2 * s.groups * taps * points;
  Temporary<T> columns(static_cast<size_t>(s.channels * taps * points));
  for (int64_t n = 0; n < batch; ++n) {
    kernels::deformable_columns(s, a.in[0].as<T>() + n * image_size, a.in[1].as<T>() + n * offset_size, columns.data());
    if (p.modulated) modulate(s, a.in[2].as<T>() + n * offset_size / 2, columns.data());
    T* out = a.out[0].as<T>() + n * p.num_filter * points;
    for (int64_t g = 0; g < p.num_group; ++g)
      kernels::gemm(product, T(1), weight + g * filters * depth, columns.data() + g * depth * points, T(0),
                    out + g * filters * points);
    for (int64_t f = 0; bias != nullptr && f < p.num_filter; ++f)
      for (int64_t i = 0; i < points; ++i) out[f * points + i] += bias[f];
  }
}

template <typename P>
void run_deformable(const P& p, const KernelArgs& a) {
  if (a.out[0].size() == 0) return;
  a.out[0].dtype == DType::kFloat64 ? run_images<double>(p, a) : run_images<float>(p, a);
}

// The forward pass: columns = sample(data, offset); out = weight (mask * columns) + bias, as matrix products whose
// columns are all points of all images.
Values deformable_gradient(const DeformableParams& p, const GradientContext& g) {
  const Value out = g.output_grad(0);
  if (!out) return {};
  const Shape &data = g.input_spec(0).shape, &out_shape = g.output_spec(0).shape;
  const int weight_index = p.weight_index();
  const int64_t batch = data[0], channels = data[1], points = out_shape[2] * out_shape[3], taps = p.taps();
  const int64_t groups = p.num_deformable_group, filters = p.num_filter / p.num_group,
                depth = channels / p.num_group * taps;
  const ColumnsParams sampling = p.columns();
  const Shape per_group({groups, channels / groups, taps, batch, points}),
      matrices({p.num_group, depth, batch * points});
  const Value value = reshape(transpose(reshape(out, Shape({batch, p.num_filter, points})), Tuple({1, 0, 2})),
                              Shape({p.num_group, filters, batch * points}));
  Values grads(static_cast<size_t>(g.num_inputs()));
  const bool any_sampled = g.wants(0) || g.wants(1) || (p.modulated && g.wants(2));
  Value columns, mask;
  if (g.wants(weight_index) || (p.modulated && g.wants(2)))
    columns = reshape(deformable_columns_of(g.input(0), g.input(1), sampling), per_group);
  if (p.modulated) {
    const Value planes = reshape(g.input(2), Shape({batch, groups, taps, points}));
    mask = reshape(transpose(planes, Tuple({1, 2, 0, 3})), Shape({groups, 1, taps, batch, points}));
  }
  if (g.wants(weight_index)) {
    const Value masked = mask ? columns * mask : columns;
    grads[static_cast<size_t>(weight_index)] =
        reshape(batch_dot(value, reshape(masked, matrices), false, true), g.input_spec(weight_index).shape);
  }
  if (!p.no_bias && g.wants(weight_index + 1))
    grads[static_cast<size_t>(weight_index) + 1] = reshape(sum(out, Tuple({0, 2, 3}), false), Shape({p.num_filter}));
  if (!any_sampled) return grads;
  const Value weight = reshape(g.input(weight_index), Shape({p.num_group, filters, depth}));
  const Value products = reshape(batch_dot(weight, value, true, false), per_group);
  if (p.modulated && g.wants(2)) {
    const Value planes = reshape(sum(products * columns, Tuple({1}), false), Shape({groups, taps, batch, points}));
    grads[2] = reshape(transpose(planes, Tuple({2, 0, 1, 3})), g.input_spec(2).shape);
  }
  const Value arriving = reshape(mask ? products * mask : products, Shape({channels, taps, batch, points}));
  ColumnsParams back = sampling;
  back.image_shape = data;
  if (g.wants(0)) grads[0] = deformable_image_of(arriving, g.input(1), back);
  if (g.wants(1)) grads[1] = deformable_offset_gradient(arriving, g.input(0), g.input(1), sampling);
  return grads;
}

template <typename P>
OpBuilder<P> declare_deformable(OpRegistry& ops, const char* name, bool modulated) {
  auto builder = ops.declare<P>(name);
  builder.input("data", "(batch, channels, height, width)")
      .input("offset", "(batch, groups * taps * 2, out height, out width): y, then x, of every kernel point");
  if (modulated) builder.input("mask", "(batch, groups * taps, out height, out width): factors of the values read");
  builder.input("weight", "(num_filter, channels / num_group, kernel height, kernel width)")
      .optional_input("bias", "(num_filter,)")
      .output("output", "(batch, num_filter, out height, out width)")
      .num_inputs([modulated](const P& p) { return 4 + modulated - p.no_bias; })
      .infer([](const P& p, InferContext& c) { infer_deformable(p, c); })
      .cpu(run_deformable<P>, kFloating)
      .halves_through_float()
      .cost([](const P& p, auto, auto out) { return 1000 + elements(out[0]) * static_cast<double>(p.taps()) * 4; })
      .gradient([](const P& p, const GradientContext& g) { return deformable_gradient(p, g); }, Saves::all_inputs());
  return builder;
}

}  // namespace

void register_deformable_convolution(OpRegistry& ops) {
  declare_deformable<PlainParams>(ops, "_contrib_DeformableConvolution", false)
      .doc(
          "Convolution whose kernel points are displaced by offsets, per output pixel; values between pixels by "
          "bilinear interpolation.")
      .amp(AmpType::kFloat)
      .sample({{1, 2, 5, 5}, {1, 8, 4, 4}, {3, 2, 2, 2}, {3}}, {{"kernel", "(2, 2)"}, {"num_filter", "3"}}, 0.1, 0.9)
      .sample({{2, 4, 5, 6}, {2, 12, 3, 4}, {2, 2, 1, 3}},
              {{"kernel", "(1, 3)"},
               {"num_filter", "2"},
               {"no_bias", "True"},
               {"num_group", "2"},
               {"num_deformable_group", "2"},
               {"stride", "(2, 1)"},
               {"pad", "(0, 1)"},
               {"dilate", "(1, 2)"}},
              0.1, 0.9);
  declare_deformable<ModulatedParams>(ops, "_contrib_ModulatedDeformableConvolution", true)
      .doc(
          "Deformable convolution that multiplies the value at each kernel point by a factor, the mask, per output "
          "pixel.")
      .amp(AmpType::kFloat)
      .sample({{1, 2, 5, 5}, {1, 8, 4, 4}, {1, 4, 4, 4}, {3, 2, 2, 2}, {3}},
              {{"kernel", "(2, 2)"}, {"num_filter", "3"}}, -0.9, 0.9)
      .sample({{2, 4, 4, 4}, {2, 8, 4, 3}, {2, 4, 4, 3}, {2, 2, 1, 2}},
              {{"kernel", "(1, 2)"},
               {"num_filter", "2"},
               {"no_bias", "True"},
               {"num_group", "2"},
               {"num_deformable_group", "2"}},
              -0.9, 0.9);
}

}  // namespace hybridnet::ops
