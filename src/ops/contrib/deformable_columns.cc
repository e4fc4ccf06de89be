// _deformable_columns and _deformable_spread: the parts of gradients of deformable convolution, to any order.
#include "hybridnet/declare.h"
#include "ops/contrib/deformable_gradients.h"

namespace hybridnet::ops {
namespace {

kernels::DeformableSampling sampling_of(const ColumnsParams& p, const Shape& image, const Shape& offset) {
  kernels::DeformableSampling s = p.sampling(image, offset[2], offset[3]);
  s.zero_border = p.zero_border;
  s.along_y = p.along_y;
  s.along_x = p.along_x;
  return s;
}

void infer_columns(const ColumnsParams& p, InferContext& c) {
  c.unify_dtypes();
  const Shape &image = c.in_shape(0), &offset = c.in_shape(1);
  if (image.known() && offset.known()) c.set_out_shape(0, Shape({image[1], p.taps(), image[0], offset[2] * offset[3]}));
}

void infer_spread(const ColumnsParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_out_shape(0, p.image_shape);
}

void run_columns(const ColumnsParams& p, const KernelArgs& a) {
  if (a.out[0].size() == 0) return;
  const kernels::DeformableSampling s = sampling_of(p, *a.in[0].shape, *a.in[1].shape);
  if (a.out[0].dtype == DType::kFloat64)
    kernels::deformable_columns(s, a.in[0].as<double>(), a.in[1].as<double>(), a.out[0].as<double>());
  else
    kernels::deformable_columns(s, a.in[0].as<float>(), a.in[1].as<float>(), a.out[0].as<float>());
}

void run_spread(const ColumnsParams& p, const KernelArgs& a) {
  if (a.out[0].size() == 0) return;
  const kernels::DeformableSampling s = sampling_of(p, *a.out[0].shape, *a.in[1].shape);
  if (a.out[0].dtype == DType::kFloat64)
    kernels::deformable_spread(s, a.in[0].as<double>(), a.in[1].as<double>(), a.out[0].as<double>());
  else
    kernels::deformable_spread(s, a.in[0].as<float>(), a.in[1].as<float>(), a.out[0].as<float>());
}

Values columns_gradient(const ColumnsParams& p, const GradientContext& g) {
  const Value out = g.output_grad(0);
  if (!out) return {};
  ColumnsParams back = p;
  back.image_shape = g.input_spec(0).shape;
  Values grads(2);
  if (g.wants(0)) grads[0] = deformable_image_of(out, g.input(1), back);
  if (g.wants(1)) grads[1] = deformable_offset_gradient(out, g.input(0), g.input(1), p);
  return grads;
}

Values spread_gradient(const ColumnsParams& p, const GradientContext& g) {
  const Value out = g.output_grad(0);
  if (!out) return {};
  Values grads(2);
  if (g.wants(0)) grads[0] = deformable_columns_of(out, g.input(1), p);
  if (g.wants(1)) grads[1] = deformable_offset_gradient(g.input(0), out, g.input(1), p);
  return grads;
}

int64_t sampling_cost(const Shape& columns) { return 500 + columns.size() * 3; }

}  // namespace

void register_deformable_columns(OpRegistry& ops) {
  ops.declare<ColumnsParams>("_deformable_columns")
      .doc("Image values at the points of a kernel around every output pixel, displaced by offsets.")
      .input("image", "(batch, channels, height, width)")
      .input("offset", "(batch, groups * taps * 2, out height, out width): y, then x, of every tap")
      .output("output", "(channels, taps, batch, out height * out width)")
      .infer(infer_columns)
      .cpu(run_columns, kFloating)
      .halves_through_float()
      .cost([](const ColumnsParams&, auto, auto out) { return sampling_cost(out[0].shape); })
      .gradient(columns_gradient, Saves::all_inputs())
      .internal()
      .sample({{1, 2, 4, 4}, {1, 8, 3, 3}}, {{"kernel", "(2, 2)"}, {"zero_border", "True"}}, -0.9, 0.9)
      .sample({{2, 2, 5, 4}, {2, 8, 2, 2}},
              {{"kernel", "(1, 2)"}, {"stride", "(2, 1)"}, {"num_deformable_group", "2"}, {"along_y", "True"}}, 0.1,
              0.9);
  ops.declare<ColumnsParams>("_deformable_spread")
      .doc("The adjoint of _deformable_columns: adds column values to the pixels that they were read from.")
      .input("columns", "(channels, taps, batch, out height * out width)")
      .input("offset", "(batch, groups * taps * 2, out height, out width)")
      .output("output", "shape image_shape")
      .infer(infer_spread)
      .cpu(run_spread, kFloating)
      .halves_through_float()
      .cost([](const ColumnsParams&, auto in, auto) { return sampling_cost(in[0].shape); })
      .gradient(spread_gradient, Saves::all_inputs())
      .internal()
      .sample({{2, 4, 1, 9}, {1, 8, 3, 3}},
              {{"kernel", "(2, 2)"}, {"image_shape", "(1, 2, 4, 4)"}, {"zero_border", "True"}}, -0.9, 0.9);
}

}  // namespace hybridnet::ops
