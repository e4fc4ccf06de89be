// Flips of images: always, or with probability 1/2.
#include "hybridnet/declare.h"
#include "kernels/device/image_arguments.h"
#include "kernels/memory/fill.h"
#include "kernels/memory/strided_copy.h"
#include "kernels/random/rng.h"
#include "ops/device_launch.h"
#include "ops/emit.h"
#include "ops/image/image_size.h"

namespace hybridnet::ops {
namespace {

const OpRef kReverse{"reverse"}, kReverseIf{"_image_reverse_if"};

struct ReverseIfParams {
  int32_t axis;
  static void describe(ParamSchema<ReverseIfParams>& schema) {
    schema.field("axis", &ReverseIfParams::axis).doc("The axis to reverse.");
  }
};

void flip(const TensorRef& in, const TensorRef& out, int axis) {
  if (out.size() == 0) return;
  const Shape& s = *in.shape;
  const int64_t bytes = dtype_size(in.dtype), inner = s.size(axis + 1, s.ndim());
  kernels::StridedCopy copy;
  copy.add_axis(s.size(0, axis), s[axis] * inner, s[axis] * inner);
  copy.add_axis(s[axis], -inner, inner);
  copy.add_axis(inner, 1, 1);
  copy.run(in.as<char>() + (s[axis] - 1) * inner * bytes, out.data, bytes);
}

// The flip if *condition is not 0, which is known on the device only.
void flip_if(const TensorRef& in, const int32_t* condition, const TensorRef& out, int axis) {
  const Shape& s = *in.shape;
  const device::FlipArguments a{.in = in.data,
                                .out = out.data,
                                .condition = condition,
                                .n = in.size(),
                                .size = s[axis],
                                .inner = s.size(axis + 1, s.ndim())};
  on_device::launch("image.cuh", "FlipArguments", on_device::with_bits("flip_if", in.dtype), a.n, a);
}

void same_image(InferContext& c) {
  c.unify_dtypes({0}, {0});
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  require_image(c);
}

// from_end: 2 flips left and right, 3 top and bottom.
void declare_flip(OpRegistry& ops, const std::string& side, int from_end, const char* what) {
  ops.declare("_image_flip_" + side)
      .alias("_npx__image_flip_" + side)
      .doc(std::string("Flips images: ") + what + ".")
      .input("data", "(height, width, channels), or a batch of those, any dtype")
      .output("output", "shape and dtype of data")
      .any_device()
      .infer([](const NoParams&, InferContext& c) { same_image(c); })
      .cpu([from_end](const NoParams&, const KernelArgs& a) {
        flip(a.in[0], a.out[0], a.in[0].shape->ndim() - from_end);
      })
      .gradient(
          [from_end](const NoParams&, const GradientContext& g) {
            if (!g.output_grad(0)) return Values{};
            return Values{call(kReverse, {g.output_grad(0)}, {{"axis", AttrValue(Shape({-from_end}))}})};
          },
          Saves::nothing())
      .sample({{2, 3, 3}})
      .sample({{2, 3, 2, 1}});
  ops.declare("_image_random_flip_" + side)
      .alias("_npx__image_random_flip_" + side)
      .doc(std::string("Flips images, ") + what + ", or not, with equal probability.")
      .input("data", "(height, width, channels), or a batch of those, any dtype")
      .output("output", "shape and dtype of data")
      .output("flipped", "(1,) int32: 1 if the images were flipped")
      .visible_outputs(1)
      .infer([](const NoParams&, InferContext& c) {
        same_image(c);
        c.set_out_shape(1, Shape({1}));
        c.set_out_dtype(1, DType::kInt32);
      })
      .cpu([from_end](const NoParams&, const KernelArgs& a) {
        const bool flipped = kernels::ElementBits(a.rng, 0).next() & 1u;
        kernels::fill(a.out[1], flipped ? 1 : 0);
        if (flipped) return flip(a.in[0], a.out[0], a.in[0].shape->ndim() - from_end);
        kernels::copy_bytes(a.in[0].data, a.out[0].data, a.in[0].size() * dtype_size(a.in[0].dtype));
      })
      .any_device()
      .random()
      .gradient(
          [from_end](const NoParams&, const GradientContext& g) {
            if (!g.output_grad(0)) return Values{};
            return Values{call(kReverseIf, {g.output_grad(0), g.output(1)}, {{"axis", -from_end}})};
          },
          Saves::of({}, {1}))
      .sample({{2, 3, 3}});
}

}  // namespace

void register_image_flip(OpRegistry& ops) {
  declare_flip(ops, "left_right", 2, "left becomes right");
  declare_flip(ops, "top_bottom", 3, "top becomes bottom");
  Sample s;
  s.inputs = {{2, 3, 3}, {1}};
  s.dtypes = {DType::kUnknown, DType::kInt32};
  s.attrs = {{"axis", "-2"}};
  s.high = 2.0;
  s.low = 1.0;
  ops.declare<ReverseIfParams>("_image_reverse_if")
      .doc("data, reversed along an axis if the condition is 1.")
      .input("data", "any shape, any dtype")
      .input("condition", "(1,) int32")
      .output("output", "shape and dtype of data")
      .infer([](const ReverseIfParams& p, InferContext& c) {
        c.unify_dtypes({0}, {0});
        c.set_out_shape(0, c.in_shape(0));
        c.set_in_shape(0, c.out_shape(0));
        c.set_in_shape(1, Shape({1}));
        c.set_in_dtype(1, DType::kInt32);
        if (c.in_shape(0).rank_known()) normalize_axis(p.axis, c.in_shape(0).ndim());
      })
      .cpu([](const ReverseIfParams& p, const KernelArgs& a) {
        const int axis = normalize_axis(p.axis, a.in[0].shape->ndim());
        if (device::current()) return flip_if(a.in[0], a.in[1].as<int32_t>(), a.out[0], axis);
        if (*a.in[1].as<int32_t>() != 0) return flip(a.in[0], a.out[0], axis);
        kernels::copy_bytes(a.in[0].data, a.out[0].data, a.in[0].size() * dtype_size(a.in[0].dtype));
      })
      .gradient(
          [](const ReverseIfParams& p, const GradientContext& g) {
            if (!g.output_grad(0)) return Values{};
            return Values{call(kReverseIf, {g.output_grad(0), g.input(1)}, ParamSchema<ReverseIfParams>::box(p)),
                          Value{}};
          },
          Saves::of({1}))
      .internal()
      .any_device()
      .sample(s);
}

}  // namespace hybridnet::ops
