// depth_to_space and space_to_depth: rearrange channels to blocks of pixels and back.
#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "kernels/memory/strided_copy.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

struct BlockParams {
  int64_t block_size;
  static void describe(ParamSchema<BlockParams>& schema) {
    schema.field("block_size", &BlockParams::block_size).at_least(1).doc("Edge of a block of pixels.");
  }
};

[[noreturn]] void does_not_divide(const char* what, const BlockParams& p, const Shape& in) {
  throw ShapeError({.input = "data",
                    .expected = std::string(what) + " that block_size=" + std::to_string(p.block_size) +
                                (what[0] == 'c' ? " squared divides" : " divides"),
                    .given = in.str()});
}

// Classic shapes do not support empty images: a size of 0 means unknown.
void require_pixels(const Shape& in) {
  if (is_np_shape() || (in[1] != 0 && in[2] != 0 && in[3] != 0)) return;
  throw ShapeError({.input = "data", .expected = "channels, height and width of at least 1", .given = in.str()});
}

int64_t times(int64_t size, int64_t factor) { return size < 0 ? kUnknownDim : checked_times(size, factor); }
int64_t over(int64_t size, int64_t factor) { return size < 0 ? kUnknownDim : size / factor; }

void infer_depth_to_space(const BlockParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_in_shape(0, Shape::unknown(4));
  c.set_out_shape(0, Shape::unknown(4));
  const Shape in = c.in_shape(0);
  const int64_t b = p.block_size;
  require_pixels(in);
  const int64_t block = checked_times(b, b);
  if (in[1] >= 0 && in[1] % block != 0) does_not_divide("channels", p, in);
  c.set_out_shape(0, Shape({in[0], over(in[1], block), times(in[2], b), times(in[3], b)}));
  const Shape out = c.out_shape(0);
  c.set_in_shape(0, Shape({out[0], times(out[1], block), over(out[2], b), over(out[3], b)}));
}

void infer_space_to_depth(const BlockParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_in_shape(0, Shape::unknown(4));
  c.set_out_shape(0, Shape::unknown(4));
  const Shape in = c.in_shape(0);
  const int64_t b = p.block_size;
  require_pixels(in);
  if ((in[2] >= 0 && in[2] % b != 0) || (in[3] >= 0 && in[3] % b != 0)) does_not_divide("height and width", p, in);
  const int64_t block = checked_times(b, b);
  c.set_out_shape(0, Shape({in[0], times(in[1], block), over(in[2], b), over(in[3], b)}));
  const Shape out = c.out_shape(0);
  c.set_in_shape(0, Shape({out[0], over(out[1], block), times(out[2], b), times(out[3], b)}));
}

// deep: (N, b, b, C, H, W), wide: (N, C, H, b, W, b), with the same elements.
void move_blocks(const BlockParams& p, const KernelArgs& a, bool deep_is_source) {
  const Shape& deep = deep_is_source ? *a.in[0].shape : *a.out[0].shape;
  const int64_t b = p.block_size, n = deep[0], c = deep[1] / (b * b), h = deep[2], w = deep[3];
  kernels::StridedCopy copy;
  auto axis = [&](int64_t size, int64_t deep_stride, int64_t wide_stride) {
    copy.add_axis(size, deep_is_source ? deep_stride : wide_stride, deep_is_source ? wide_stride : deep_stride);
  };
  axis(n, b * b * c * h * w, c * h * b * w * b);
  axis(b, b * c * h * w, w * b);  // row within the block
  axis(b, c * h * w, 1);          // column within the block
  axis(c, h * w, h * b * w * b);
  axis(h, w, b * w * b);
  axis(w, 1, b);
  copy.run(a.in[0].data, a.out[0].data, dtype_size(a.in[0].dtype));
}

Values inverse(const OpRef& op, const BlockParams& p, const GradientContext& g) {
  if (!g.output_grad(0)) return {};
  return {call(op, {g.output_grad(0)}, ParamSchema<BlockParams>::box(p))};
}

}  // namespace

void register_block_layout(OpRegistry& ops) {
  ops.declare<BlockParams>("depth_to_space")
      .doc(
          "Rearranges channels to blocks of pixels: element (n, (r, s, c), h, w) becomes (n, c, h * b + r, w * b + s).")
      .input("data", "shape (N, C * b * b, H, W), any dtype")
      .names_its_input()
      .output("output", "shape (N, C, H * b, W * b)")
      .infer(infer_depth_to_space)
      .any_device()
      .cpu([](const BlockParams& p, const KernelArgs& a) { move_blocks(p, a, true); })
      .gradient(
          [](const BlockParams& p, const GradientContext& g) {
            static const OpRef kInverse{"space_to_depth"};
            return inverse(kInverse, p, g);
          },
          Saves::nothing())
      .sample({{2, 8, 2, 3}}, {{"block_size", "2"}});
  ops.declare<BlockParams>("space_to_depth")
      .doc("Rearranges blocks of pixels to channels: the inverse of depth_to_space.")
      .input("data", "shape (N, C, H * b, W * b), any dtype")
      .names_its_input()
      .output("output", "shape (N, C * b * b, H, W)")
      .infer(infer_space_to_depth)
      .any_device()
      .cpu([](const BlockParams& p, const KernelArgs& a) { move_blocks(p, a, false); })
      .gradient(
          [](const BlockParams& p, const GradientContext& g) {
            static const OpRef kInverse{"depth_to_space"};
            return inverse(kInverse, p, g);
          },
          Saves::nothing())
      .sample({{2, 2, 4, 6}}, {{"block_size", "2"}});
}

}  // namespace hybridnet::ops
