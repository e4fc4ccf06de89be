// softmax, log_softmax, softmin, and their gradients.
#include "kernels/norm/softmax.h"

#include <algorithm>

#include "hybridnet/declare.h"
#include "kernels/elementwise/convert.h"
#include "kernels/index/out_of_range.h"
#include "ops/emit.h"
#include "ops/nn/softmax_params.h"

namespace hybridnet::ops {
namespace {

using kernels::RowShape;

const OpRef kBackward{"_softmax_backward"}, kExp{"exp"};

// ---- shapes

void infer_softmax(const SoftmaxParams& p, InferContext& c) {
  if (p.dtype) {
    c.set_out_dtype(0, *p.dtype);
    if (c.in_dtype(0) == DType::kUnknown) c.set_in_dtype(0, *p.dtype);
  } else {
    c.unify_dtypes({0}, {0});
  }
  c.require_dtype(0, kFloating);
  c.set_in_shape(0, c.out_shape(0));
  c.set_out_shape(0, c.in_shape(0));
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) return;
  const int axis = normalize_axis(p.axis, data.ndim());
  if (c.num_in() < 2) return;
  c.require_dtype(1, DTypeSet(DType::kInt32) | DType::kInt64);
  Shape rows = Shape::scalar();
  for (int i = 0; i < data.ndim(); ++i)
    if (i != axis) rows.push_back(data[i]);
  if (data.ndim() == 1) rows.push_back(1);
  c.set_in_shape(1, rows);
}

// ---- forward

// Computes in the wider of the two dtypes; the other operand is converted through the workspace.
template <typename T>
class SoftmaxKernel final : public Kernel {
 public:
  SoftmaxKernel(const SoftmaxParams& p, SoftmaxKind kind, const LinkContext& c)
      : shape_(RowShape::along(c.in[0].shape, normalize_axis(p.axis, c.in[0].shape.ndim()))),
        scale_(softmax_scale(p, kind)),
        log_(kind == SoftmaxKind::kLogSoftmax),
        convert_in_(c.in[0].dtype != dtype_of<T>::value),
        convert_out_(c.out[0].dtype != dtype_of<T>::value),
        lengths_(c.in.size() > 1) {}

  int64_t workspace_bytes() const override {
    return (convert_in_ || convert_out_ ? data_bytes() : 0) + (lengths_ ? shape_.rows() * int64_t{sizeof(int64_t)} : 0);
  }

  void run(const KernelArgs& a) override {
    T* converted = static_cast<T*>(a.workspace);
    const T* x = convert_in_ ? converted : a.in[0].as<T>();
    T* y = convert_out_ ? converted : a.out[0].as<T>();
    if (convert_in_)
      kernels::convert_parallel(a.in[0].dtype, a.in[0].data, dtype_of<T>::value, converted, shape_.size());
    int64_t* lengths = nullptr;
    if (lengths_) {
      lengths = reinterpret_cast<int64_t*>(static_cast<char*>(a.workspace) +
                                           (convert_in_ || convert_out_ ? data_bytes() : 0));
      kernels::convert(a.in[1].dtype, a.in[1].data, DType::kInt64, lengths, shape_.rows());
      kernels::report_numbers({"softmax", "length"}, lengths, shape_.rows(), kernels::Bounds::length(0, shape_.length));
    }
    kernels::softmax(shape_, x, scale_, log_, static_cast<const int64_t*>(lengths), y);
    if (convert_out_)
      kernels::convert_parallel(dtype_of<T>::value, converted, a.out[0].dtype, a.out[0].data, shape_.size());
  }

 private:
  int64_t data_bytes() const { return (shape_.size() * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64; }
  RowShape shape_;
  double scale_;
  bool log_, convert_in_, convert_out_, lengths_;
};

template <SoftmaxKind kKind>
Ref<Kernel> link_softmax(const SoftmaxParams& p, const LinkContext& c) {
  if (c.in[0].dtype == DType::kFloat64 || c.out[0].dtype == DType::kFloat64)
    return Ref<Kernel>(new SoftmaxKernel<double>(p, kKind, c));
  return Ref<Kernel>(new SoftmaxKernel<float>(p, kKind, c));
}

// ---- gradient: (dy, y) -> dx

struct BackwardParams {
  int32_t axis = -1;
  double scale = 1;
  bool log = false;
  static void describe(ParamSchema<BackwardParams>& schema) {
    schema.field("axis", &BackwardParams::axis).default_value(-1).doc("Axis that was normalized.");
    schema.field("scale", &BackwardParams::scale).default_value(1.0).doc("Factor of the data before the exponential.");
    schema.field("log", &BackwardParams::log).default_value(false).doc("y is the logarithm of the softmax.");
  }
};

Ref<Kernel> link_backward(const BackwardParams& p, const LinkContext& c) {
  using Run = void (*)(const BackwardParams&, const KernelArgs&);
  const auto run = []<typename T>(const BackwardParams& p, const KernelArgs& a, T) {
    const RowShape s = RowShape::along(*a.in[1].shape, normalize_axis(p.axis, a.in[1].shape->ndim()));
    kernels::softmax_gradient<T>(s, a.in[0].as<T>(), a.in[1].as<T>(), p.scale, p.log, a.out[0].as<T>());
  };
  const Run narrow = [](const BackwardParams& p, const KernelArgs& a) { decltype(run){}(p, a, float{}); };
  const Run wide = [](const BackwardParams& p, const KernelArgs& a) { decltype(run){}(p, a, double{}); };
  return function_kernel<BackwardParams>(c.in[0].dtype == DType::kFloat64 ? wide : narrow);
}

// softmax:     dx = s y (dy - <dy, y>), a symmetric map of dy.
// log_softmax: dx = s (dy - e^y <dy, 1>).
Values backward_gradient(const BackwardParams& p, const GradientContext& g) {
  const Value u = g.output_grad(0), dy = g.input(0), y = g.input(1);
  if (!u) return {};
  const Tuple axis{normalize_axis(p.axis, g.input_spec(1).shape.ndim())};
  const auto total = [&](const Value& v) { return sum(v, axis, true); };
  if (p.log) {
    const Value weighted = u * call(kExp, {y});
    return {(u - total(weighted)) * p.scale, g.wants(1) ? weighted * total(dy) * -p.scale : Value{}};
  }
  Values grads(2);
  if (g.wants(0)) grads[0] = call(kBackward, {u, y}, ParamSchema<BackwardParams>::box(p));
  if (g.wants(1)) grads[1] = (u * (dy - total(dy * y)) - dy * total(u * y)) * p.scale;
  return grads;
}

int64_t cost_ns(const TensorSpec& data) { return data.shape.size() + 300; }

template <typename P, SoftmaxKind kKind>
OpBuilder<P> declare(OpRegistry& ops, const char* name) {
  return ops.declare<P>(name)
      .input("data", "floating tensor with at least one axis")
      .output("output", "shape of data")
      .infer([](const P& p, InferContext& c) { infer_softmax(p, c); })
      .any_device_when([](const P&, const LinkContext& c) { return c.in.size() == 1; })  // without lengths
      .link([](const P& p, const LinkContext& c) { return link_softmax<kKind>(p, c); })
      .halves_through_float()
      .gradient([](const P& p, const GradientContext& g) { return softmax_gradient(p, kKind, g); }, Saves::of({}, {0}))
      .inplace(0, 0)
      .cost([](const P&, auto in, auto) { return cost_ns(in[0]); })
      .flops([](const P&, auto in, auto) { return 5.0 * static_cast<double>(in[0].shape.size()); });
}

}  // namespace

double softmax_scale(const SoftmaxParams& p, SoftmaxKind kind) {
  const double scale = 1 / p.temperature.value_or(1.0);
  return kind == SoftmaxKind::kSoftmin ? -scale : scale;
}

Values softmax_gradient(const SoftmaxParams& p, SoftmaxKind kind, const GradientContext& g) {
  Values grads(static_cast<size_t>(g.num_inputs()));
  if (!g.output_grad(0)) return grads;
  const BackwardParams params{.axis = p.axis, .scale = softmax_scale(p, kind), .log = kind == SoftmaxKind::kLogSoftmax};
  const Value dx = call(kBackward, {g.output_grad(0), g.output(0)}, ParamSchema<BackwardParams>::box(params));
  grads[0] = cast(dx, g.input_spec(0).dtype);
  return grads;
}

void register_softmax(OpRegistry& ops) {
  declare<SoftmaxParams, SoftmaxKind::kSoftmax>(ops, "softmax")
      .alias("_npx_softmax")
      .doc(
          "exp(data / temperature), divided by its sum along an axis. With use_length only the first length elements "
          "of each row "
          "take part; the others become 0.")
      .optional_input("length", "int32 or int64, shape of data without the axis")
      .num_inputs([](const SoftmaxParams& p) { return p.use_length.value_or(false) ? 2 : 1; })
      .amp(AmpType::kFloat)
      .sample({{3, 4}})
      .sample({{2, 3, 4}}, {{"axis", "1"}, {"temperature", "0.5"}})
      .sample({{3, 5}}, {{"axis", "0"}})
      .sample({{3, 0}})
      .sample(Sample{.inputs = {{2, 5}, Shape{2}},
                     .attrs = {{"use_length", "True"}},
                     .low = 0,
                     .high = 4,
                     .dtypes = {DType::kUnknown, DType::kInt32}})
      .sample(Sample{.inputs = {{2, 4, 3}, {2, 3}},
                     .attrs = {{"use_length", "True"}, {"axis", "1"}},
                     .low = 0,
                     .high = 4,
                     .dtypes = {DType::kFloat32, DType::kInt64}})
      .sample({{2, 3}}, {{"dtype", "float64"}});
  declare<LogSoftmaxParams, SoftmaxKind::kLogSoftmax>(ops, "log_softmax")
      .alias("_npx_log_softmax")
      .doc("Logarithm of softmax along an axis, computed without underflow.")
      .names_its_input()
      .amp(AmpType::kFloat)
      .sample({{3, 4}})
      .sample({{2, 3, 4}}, {{"axis", "1"}, {"temperature", "2.0"}})
      .sample({{3, 5}}, {{"axis", "0"}})
      .sample({{0, 5}})
      .sample({{2, 3}}, {{"dtype", "float64"}});
  declare<LogSoftmaxParams, SoftmaxKind::kSoftmin>(ops, "softmin")
      .doc("softmax of -data / temperature along an axis.")
      .amp(AmpType::kFloat)
      .sample({{3, 4}})
      .sample({{2, 3, 4}}, {{"axis", "1"}, {"temperature", "0.5"}})
      .sample({{0, 5}})
      .sample({{2, 3}}, {{"dtype", "float64"}});
  ops.declare<BackwardParams>("_softmax_backward")
      .internal()
      .doc("Gradient of softmax or log_softmax for data.")
      .input("output_grad", "shape of the output")
      .input("output", "output of softmax or log_softmax")
      .output("data_grad", "shape of the output")
      .infer([](const BackwardParams&, InferContext& c) {
        c.unify_dtypes();
        c.unify_shapes();
      })
      .any_device()
      .link(link_backward)
      .halves_through_float()
      .gradient(backward_gradient, Saves::all_inputs())
      .inplace(0, 0)
      .inplace(1, 0)
      .cost([](const BackwardParams&, auto in, auto) { return cost_ns(in[1]); })
      .sample({{3, 4}, {3, 4}})
      .sample({{2, 3, 4}, {2, 3, 4}}, {{"axis", "1"}, {"scale", "-0.5"}})
      .sample({{3, 4}, {3, 4}}, {{"log", "True"}, {"scale", "2.0"}});
}

}  // namespace hybridnet::ops
