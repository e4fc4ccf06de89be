// pick(log_softmax(data), index) along the last axis, for plans: the logarithms of the other classes are not stored.
#include "hybridnet/declare.h"
#include "kernels/index/indices.h"
#include "kernels/norm/softmax.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

using kernels::IndexMode;
using kernels::RowShape;

const OpRef kBackward{"_log_softmax_pick_backward"}, kPick{"pick"}, kExp{"exp"};

struct LogSoftmaxPickParams {
  bool keepdims;
  IndexMode mode;
  static void describe(ParamSchema<LogSoftmaxPickParams>& schema) {
    schema.field("keepdims", &LogSoftmaxPickParams::keepdims).default_value(false).doc("Keep the axis with size 1.");
    schema.field("mode", &LogSoftmaxPickParams::mode)
        .choice("clip", IndexMode::kClip)
        .choice("wrap", IndexMode::kWrap)
        .default_value("clip")
        .doc("Index out of range: clip to the ends or wrap around.");
  }
};

Shape without_last(const Shape& data, bool keepdims) {
  Shape out = Shape::scalar();
  for (int i = 0; i + 1 < data.ndim(); ++i) out.push_back(data[i]);
  if (keepdims) out.push_back(1);
  return out;
}

RowShape rows_of(const Shape& data) { return RowShape::along(data, data.ndim() - 1); }

void infer_pick(const LogSoftmaxPickParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0, 1});
  c.require_dtype(0, kFloating);
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) return;
  normalize_axis(-1, data.ndim());
  const Shape& index = c.in_shape(1);
  if (index.rank_known()) c.set_in_shape(1, without_last(data, index.ndim() == data.ndim()));
  Shape out = without_last(data, p.keepdims);
  if (out.ndim() == 0 && !is_np_shape()) out.push_back(1);
  c.set_out_shape(0, out);
  c.set_out_shape(1, without_last(data, true));
}

template <typename T>
void run_pick(const LogSoftmaxPickParams& p, const KernelArgs& a) {
  const RowShape rows = rows_of(*a.in[0].shape);
  kernels::Indices index(a.in[1]);
  index.resolve(p.mode, rows.length, {"pick", "index"});
  kernels::log_softmax_pick<T>(rows, a.in[0].as<T>(), index.data(), a.out[0].as<T>(), a.out[1].as<T>());
}

template <typename T>
void run_backward(const LogSoftmaxPickParams& p, const KernelArgs& a) {
  const RowShape rows = rows_of(*a.in[1].shape);
  kernels::Indices index(a.in[2]);
  index.resolve(p.mode, rows.length);
  kernels::log_softmax_pick_gradient<T>(rows, a.in[0].as<T>(), a.in[1].as<T>(), index.data(), a.in[3].as<T>(),
                                        a.out[0].as<T>());
}

Values pick_gradient(const LogSoftmaxPickParams& p, const GradientContext& g) {
  Values grads(2);
  if (g.output_grad(0)) {
    grads[0] = call(kBackward, {g.output_grad(0), g.input(0), g.input(1), g.output(1)},
                    ParamSchema<LogSoftmaxPickParams>::box(p));
  }
  if (const Value d = g.output_grad(1)) {
    const Value share = call(kExp, {g.input(0) - g.output(1)}) * d;
    grads[0] = grads[0] ? grads[0] + share : share;
  }
  return grads;
}

// The backward operator computes dy * (one_hot - s) with s = e^(x - total), one dy and one total per row.
Values backward_gradient(const LogSoftmaxPickParams& p, const GradientContext& g) {
  Values grads(4);
  const Value u = g.output_grad(0);
  if (!u) return grads;
  const Tuple last{g.input_spec(1).shape.ndim() - 1};
  const Value weighted = u * call(kExp, {g.input(1) - g.input(3)}), total = sum(weighted, last, true);
  if (g.wants(0)) {
    const char* mode = p.mode == IndexMode::kWrap ? "wrap" : "clip";
    const Value picked = call(kPick, {u, g.input(2)}, {{"axis", -1}, {"keepdims", true}, {"mode", mode}});
    grads[0] = reshape(picked - total, g.input_spec(0).shape);
  }
  const Value dy = reshape(g.input(0), g.input_spec(3).shape);
  if (g.wants(1)) grads[1] = weighted * -dy;
  if (g.wants(3)) grads[3] = total * dy;
  return grads;
}

int64_t cost_ns(const TensorSpec& data) { return data.shape.size() + 300; }

template <void (*kRunFloat)(const LogSoftmaxPickParams&, const KernelArgs&),
          void (*kRunDouble)(const LogSoftmaxPickParams&, const KernelArgs&), size_t kData>
Ref<Kernel> link(const LogSoftmaxPickParams&, const LinkContext& c) {
  return function_kernel<LogSoftmaxPickParams>(c.in[kData].dtype == DType::kFloat64 ? kRunDouble : kRunFloat);
}

}  // namespace

void register_log_softmax_pick(OpRegistry& ops) {
  ops.declare<LogSoftmaxPickParams>("_log_softmax_pick")
      .internal()
      .amp(AmpType::kFloat)
      .doc("pick(log_softmax(data), index) along the last axis.")
      .input("data", "floating tensor with at least one axis")
      .input("index", "shape of data without the last axis, or with size 1 there; integers of any dtype")
      .output("output", "shape of data without the last axis, or with size 1 there")
      .output("total", "logarithm of the sum of exponentials of each row; the last axis has size 1")
      .visible_outputs(1)
      .infer(infer_pick)
      .any_device()
      .link(link<run_pick<float>, run_pick<double>, 0>)
      .halves_through_float()
      .gradient(pick_gradient, Saves::of({0, 1}, {1}))
      .skips_unwanted_outputs()
      .cost([](const LogSoftmaxPickParams&, auto in, auto) { return cost_ns(in[0]); })
      .sample({{4, 3}, {4}}, {}, -1.0, 4.0)
      .sample({{2, 3, 5}, {2, 3, 1}}, {{"keepdims", "True"}, {"mode", "wrap"}}, -1.0, 4.0)
      .sample({{0, 3}, Shape{0}});
  ops.declare<LogSoftmaxPickParams>("_log_softmax_pick_backward")
      .internal()
      .doc("Gradient of _log_softmax_pick for data.")
      .input("output_grad", "shape of output")
      .input("data", "floating tensor with at least one axis")
      .input("index", "same as in _log_softmax_pick")
      .input("total", "same as in _log_softmax_pick")
      .output("data_grad", "shape of data")
      .infer([](const LogSoftmaxPickParams&, InferContext& c) {
        c.unify_dtypes({0, 1, 3}, {0});
        c.set_out_shape(0, c.in_shape(1));
        c.set_in_shape(1, c.out_shape(0));
        if (c.in_shape(1).rank_known()) c.set_in_shape(3, without_last(c.in_shape(1), true));
      })
      .any_device()
      .link(link<run_backward<float>, run_backward<double>, 1>)
      .inplace(1, 0)
      .halves_through_float()
      .gradient(backward_gradient, Saves::all_inputs())
      .cost([](const LogSoftmaxPickParams&, auto in, auto) { return cost_ns(in[1]); })
      .sample({{4}, {4, 3}, {4}, {4, 1}}, {}, 0.0, 2.0);
}

}  // namespace hybridnet::ops
