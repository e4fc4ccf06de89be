// _contrib_box_iou: intersection over union of boxes.
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/box_arguments.h"
#include "ops/contrib/boxes.h"
#include "ops/device_launch.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct BoxIouParams {
  BoxFormat format;
  static void describe(ParamSchema<BoxIouParams>& schema) {
    box_format_field(schema, "format", &BoxIouParams::format)
        .default_value("corner")
        .doc("Coordinates: corner (left, top, right, bottom) or center (x, y, width, height).");
  }
};

void require_boxes(InferContext& c, int i) {
  const Shape& s = c.in_shape(i);
  if (!s.rank_known()) return;
  if (s.ndim() < 2)
    throw ShapeError(
        {.input = c.input_name(i), .expected = "at least 2 dimensions (..., 4)", .given = "shape " + s.str()});
  require_axis_size(c, i, s.ndim() - 1, 4, "a box has 4 coordinates");
}

void infer_box_iou(const BoxIouParams&, InferContext& c) {
  c.unify_dtypes();
  require_boxes(c, 0);
  require_boxes(c, 1);
  const Shape &lhs = c.in_shape(0), &rhs = c.in_shape(1);
  if (!lhs.rank_known() || !rhs.rank_known()) return;
  Shape out = Shape::scalar();
  for (int i = 0; i + 1 < lhs.ndim(); ++i) out.push_back(lhs[i]);
  for (int i = 0; i + 1 < rhs.ndim(); ++i) out.push_back(rhs[i]);
  c.set_out_shape(0, out);
}

void run_box_iou(const BoxIouParams& p, const KernelArgs& a) {
  if (device::current()) {
    const device::OverlapArguments overlaps{.left = a.in[0].data,
                                            .right = a.in[1].data,
                                            .out = a.out[0].data,
                                            .rows = a.in[0].size() / 4,
                                            .columns = a.in[1].size() / 4,
                                            .format = p.format};
    return on_device::launch("boxes.cuh", "OverlapArguments", on_device::with_dtype("overlaps", a.in[0].dtype),
                             overlaps.rows * overlaps.columns, overlaps);
  }
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = accumulator_t<T>;
    const int64_t rows = a.in[0].size() / 4, columns = a.in[1].size() / 4;
    Temporary<Box<A>> right(static_cast<size_t>(columns));
    for (int64_t j = 0; j < columns; ++j)
      right[static_cast<size_t>(j)] = Box<A>::load(a.in[1].as<T>() + 4 * j, p.format);
    parallel_for(rows, 5.0 * static_cast<double>(columns), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Box<A> left = Box<A>::load(a.in[0].as<T>() + 4 * i, p.format);
        T* out = a.out[0].as<T>() + i * columns;
        for (int64_t j = 0; j < columns; ++j) out[j] = static_cast<T>(overlap(left, right[static_cast<size_t>(j)]));
      }
    });
  });
}

}  // namespace

void register_box_iou(OpRegistry& ops) {
  const char* note = "gradients are zero by definition, as MXNet has them";
  Sample corner;
  corner.inputs = {{3, 4}, {2, 4}};
  corner.low = 0.0;
  corner.check_gradient = false;
  corner.note = note;
  Sample center = corner;
  center.inputs = {{2, 3, 4}, {1, 2, 4}};
  center.attrs = {{"format", "center"}};
  center.low = 0.1;
  ops.declare<BoxIouParams>("_contrib_box_iou")
      .doc("Intersection over union of every box of lhs with every box of rhs. Gradients are zero.")
      .input("lhs", "boxes (..., 4)")
      .input("rhs", "boxes (..., 4)")
      .output("output", "the axes of lhs except the last, then those of rhs except the last")
      .infer(infer_box_iou)
      .cpu(run_box_iou, kFloating)
      .any_device()
      .gradient([](const BoxIouParams&, const GradientContext&) { return Values{}; }, Saves::nothing())
      .amp(AmpType::kWidest)
      .sample(corner)
      .sample(center);
}

}  // namespace hybridnet::ops
