// SoftmaxOutput: softmax whose gradient is the gradient of the cross entropy with its label.
#include "hybridnet/declare.h"
#include "hybridnet/storage.h"
#include "hybridnet/threads.h"
#include "kernels/device/values_arguments.h"
#include "kernels/norm/softmax.h"
#include "ops/device_launch.h"
#include "ops/emit.h"
#include "ops/nn/class_labels.h"

namespace hybridnet::ops {
namespace {

using kernels::RowShape;

const OpRef kBackward{"_backward_SoftmaxOutput"}, kSoftmaxBackward{"_softmax_backward"};

enum class LossNormalization : int32_t { kNull, kBatch, kValid };

struct SoftmaxOutputParams {
  float grad_scale = 1, ignore_label = -1, smooth_alpha = 0;
  bool multi_output = false, use_ignore = false, preserve_shape = false, out_grad = false;
  LossNormalization normalization = LossNormalization::kNull;

  RowShape rows(const Shape& data) const {
    if (multi_output) return RowShape::along(data, 1);
    if (preserve_shape) return RowShape::along(data, data.ndim() - 1);
    return {data[0], data.size(1, data.ndim()), 1};
  }
  static void describe(ParamSchema<SoftmaxOutputParams>& schema);
};

// linear: computes only the part that depends on the probabilities, without the term of the label.
struct SoftmaxOutputBackwardParams : SoftmaxOutputParams {
  bool linear = false;
  bool weighted() const { return out_grad && !linear; }
  static void describe(ParamSchema<SoftmaxOutputBackwardParams>& schema);
};

template <typename P>
void describe_fields(ParamSchema<P>& schema) {
  const auto field = [&]<typename M>(const char* name, M SoftmaxOutputParams::*member) {
    return schema.field(name, static_cast<M P::*>(member));
  };
  field("grad_scale", &SoftmaxOutputParams::grad_scale).default_value(1.0).doc("Factor of the gradient.");
  field("ignore_label", &SoftmaxOutputParams::ignore_label)
      .default_value(-1.0)
      .doc("If use_ignore, rows with this label have no gradient.");
  field("multi_output", &SoftmaxOutputParams::multi_output)
      .default_value(false)
      .doc("Whether softmax is along axis 1, with one label for each position of the other axes.");
  field("use_ignore", &SoftmaxOutputParams::use_ignore)
      .default_value(false)
      .doc("Whether rows with ignore_label are ignored; not for labels that are probabilities.");
  field("preserve_shape", &SoftmaxOutputParams::preserve_shape)
      .default_value(false)
      .doc("Whether softmax is along the last axis; otherwise along all axes except the first.");
  field("normalization", &SoftmaxOutputParams::normalization)
      .default_value("null")
      .choice("batch", LossNormalization::kBatch)
      .choice("null", LossNormalization::kNull)
      .choice("valid", LossNormalization::kValid)
      .doc(
          "Divisor of the gradient. null: 1; batch: the number of labels, with multi_output the size of the data "
          "without channels; valid: the number of labels that are not ignore_label. With multi_output, null divides by "
          "the positions of one example.");
  field("out_grad", &SoftmaxOutputParams::out_grad)
      .default_value(false)
      .doc("Whether the gradient is multiplied by the output's gradient, which is ignored otherwise.");
  field("smooth_alpha", &SoftmaxOutputParams::smooth_alpha)
      .default_value(0.0)
      .range(0, 1)
      .doc("Share of the label's probability that is distributed over the other classes; not with multi_output.");
}

void SoftmaxOutputParams::describe(ParamSchema<SoftmaxOutputParams>& schema) { describe_fields(schema); }
void SoftmaxOutputBackwardParams::describe(ParamSchema<SoftmaxOutputBackwardParams>& schema) {
  describe_fields(schema);
  schema.field("linear", &SoftmaxOutputBackwardParams::linear)
      .default_value(false)
      .doc("Whether the term of the label is omitted.");
}

// ---- inference

// Shapes of class labels that fit known data; a label of unknown rank gets the first. Without preserve_shape and
// multi_output MXNet takes a label for each row of the last axis, although softmax is over all axes except the first:
// the gradient of example n reads the n-th of all labels.
std::vector<Shape> label_shapes(const SoftmaxOutputParams& p, const Shape& data) {
  const auto batch = data.dims().first(1);
  if (p.multi_output) {
    Shape flat(batch), without(batch), kept = data;
    flat.push_back(data.size(2, data.ndim()));
    for (int i = 2; i < data.ndim(); ++i) without.push_back(data[i]);
    kept[1] = 1;
    return {flat, without, kept};
  }
  const Shape leading(data.dims().first(static_cast<size_t>(data.ndim() - 1)));
  if (p.preserve_shape) return {leading};
  return {leading, Shape(batch)};
}

void infer_softmax_output(const SoftmaxOutputParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) return;
  if (data.ndim() < 1 + p.multi_output) {
    throw ShapeError({.input = "data",
                      .expected = p.multi_output ? "at least 2 axes" : "at least 1 axis",
                      .given = "shape " + data.str()});
  }
  if (!p.multi_output && data.ndim() == 2 && c.in_shape(1).ndim() <= 1) {  // either batch size defines the other
    c.set_in_shape(1, Shape{data[0]});
    c.set_in_shape(0, Shape{c.in_shape(1)[0], kUnknownDim});
    c.set_out_shape(0, c.in_shape(0));
  }
  if (!data.known()) return;
  const std::vector<Shape> fitting = label_shapes(p, data);
  const Shape& label = c.in_shape(1);
  if (!label.rank_known()) return c.set_in_shape(1, fitting[0]);
  if (!label.known() || label == data || std::find(fitting.begin(), fitting.end(), label) != fitting.end()) return;
  if (!p.multi_output && label.size() == p.rows(data).rows()) return;
  throw ShapeError(
      {.input = "label",
       .expected = "class numbers of shape " + fitting[0].str() + ", or probabilities of shape " + data.str(),
       .given = label.str(),
       .because = "data has shape " + data.str()});
}

void infer_backward(const SoftmaxOutputBackwardParams&, InferContext& c) {
  c.unify_dtypes();
  c.set_out_shape(0, c.in_shape(0));
}

// ---- kernels

template <typename T>
void run_forward(const SoftmaxOutputParams& p, const KernelArgs& a) {
  kernels::softmax<T>(p.rows(*a.in[0].shape), a.in[0].as<T>(), 1, false, nullptr, a.out[0].as<T>());
}

void run_softmax_output(const SoftmaxOutputParams& p, const KernelArgs& a) {
  a.in[0].dtype == DType::kFloat64 ? run_forward<double>(p, a) : run_forward<float>(p, a);
}

// count: number of labels.
template <typename T>
double scale_of(const SoftmaxOutputParams& p, const RowShape& s, const T* labels, int64_t count) {
  double divisor = p.multi_output && p.normalization != LossNormalization::kValid ? static_cast<double>(s.inner) : 1.0;
  if (p.normalization == LossNormalization::kBatch) divisor *= static_cast<double>(p.multi_output ? s.outer : count);
  if (p.normalization == LossNormalization::kValid) {
    const int64_t ignored = class_of(p.ignore_label);
    int64_t valid = 0;
    for (int64_t i = 0; i < count; ++i) valid += class_of(labels[i]) != ignored;
    divisor = static_cast<double>(std::max<int64_t>(valid, 1));
  }
  return p.grad_scale / divisor;
}

template <typename T>
class LabelGradient {
 public:
  LabelGradient(const SoftmaxOutputBackwardParams& p, const KernelArgs& a)
      : p_(p),
        s_(p.rows(*a.in[0].shape)),
        y_(a.in[0].as<T>()),
        labels_(a.in[1].as<T>()),
        label_count_(a.in[1].size()),
        weights_(p.weighted() ? a.in[3].as<T>() : nullptr),
        out_(a.out[0].as<T>()) {}

  void run(bool probabilities) {
    if (s_.size() == 0) return;
    if (probabilities) return parallel_for(s_.size(), 1.2, [&](int64_t b, int64_t e) { subtract(b, e); });
    report_labels({"SoftmaxOutput", "label"}, labels_, s_.rows(), s_.length, "its row has no term of a label",
                  [&](int64_t label) { return p_.use_ignore && label == class_of(p_.ignore_label); });
    scale_ = static_cast<T>(scale_of(p_, s_, labels_, label_count_));
    const int64_t plane = s_.length * s_.inner;
    parallel_for(s_.outer, 1.2 * static_cast<double>(plane), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) one_hot(o * plane, labels_ + o * s_.inner);
    });
  }

 private:
  void subtract(int64_t begin, int64_t end) {
    const T scale = static_cast<T>(p_.grad_scale);
    for (int64_t i = begin; i < end; ++i) {
      const T difference = p_.linear ? y_[i] : y_[i] - labels_[i];
      out_[i] = scale * difference * (weights_ ? weights_[i] : T(1));
    }
  }

  void one_hot(int64_t first, const T* labels) {
    const bool smooth = p_.smooth_alpha != 0 && !p_.multi_output;
    const T others = smooth && !p_.linear && s_.length > 1
                         ? static_cast<T>(p_.smooth_alpha / static_cast<double>(s_.length - 1))
                         : T(0);
    const T own = smooth ? static_cast<T>(1 - p_.smooth_alpha) : T(1);
    for (int64_t k = 0; k < s_.length; ++k)
      for (int64_t i = 0; i < s_.inner; ++i) {
        const int64_t at = first + k * s_.inner + i;
        out_[at] = scale_ * (y_[at] - others);
      }
    for (int64_t i = 0; i < s_.inner; ++i) {
      const int64_t label = class_of(labels[i]);
      if (p_.use_ignore && label == class_of(p_.ignore_label)) {
        for (int64_t k = 0; k < s_.length; ++k) out_[first + k * s_.inner + i] = T(0);
      } else if (!p_.linear && label >= 0 && label < s_.length) {
        const int64_t at = first + label * s_.inner + i;
        out_[at] = scale_ * (y_[at] - own);
      }
    }
    if (!weights_) return;
    for (int64_t at = first; at < first + s_.length * s_.inner; ++at) out_[at] *= weights_[at];
  }

  const SoftmaxOutputBackwardParams& p_;
  const RowShape s_;
  const T *y_, *labels_;
  const int64_t label_count_;
  const T* weights_;
  T *out_, scale_ = 0;
};

// Labels that are no classes are not reported: that would wait for them.
void run_on_device(const SoftmaxOutputBackwardParams& p, const KernelArgs& a, bool probabilities) {
  const RowShape s = p.rows(*a.in[0].shape);
  const DType dtype = a.in[0].dtype;
  device::LabelArguments l{.y = a.in[0].data,
                           .labels = a.in[1].data,
                           .weights = p.weighted() ? a.in[3].data : nullptr,
                           .out = a.out[0].data,
                           .n = s.size(),
                           .length = s.length,
                           .inner = s.inner,
                           .linear = p.linear,
                           .use_ignore = p.use_ignore,
                           .ignore = class_of(p.ignore_label),
                           .factor = p.grad_scale};
  if (probabilities)
    return on_device::launch("labels.cuh", "LabelArguments", on_device::with_dtype("subtract_labels", dtype), l.n, l);
  const bool smooth = p.smooth_alpha != 0 && !p.multi_output;
  l.others = smooth && !p.linear && s.length > 1 ? p.smooth_alpha / static_cast<double>(s.length - 1) : 0.0;
  l.own = smooth ? 1 - p.smooth_alpha : 1.0;
  const int64_t count = a.in[1].size();
  const OwnedBlock valid(8, device::current()->device());
  if (p.normalization == LossNormalization::kValid) {
    l.valid = static_cast<const int64_t*>(valid.data());
    on_device::launch_rows("labels.cuh", "CountArguments", on_device::with_dtype("count_labels", dtype), 1,
                           device::CountArguments{a.in[1].data, static_cast<int64_t*>(valid.data()), count, l.ignore},
                           "int64_t");
  } else {
    l.factor = scale_of<float>(p, s, nullptr, count);
  }
  on_device::launch("labels.cuh", "LabelArguments", on_device::with_dtype("subtract_one_hot", dtype), l.n, l);
}

void run_backward(const SoftmaxOutputBackwardParams& p, const KernelArgs& a) {
  const bool probabilities = *a.in[1].shape == *a.in[0].shape;
  if (device::current()) return run_on_device(p, a, probabilities);
  if (a.in[0].dtype == DType::kFloat64)
    LabelGradient<double>(p, a).run(probabilities);
  else
    LabelGradient<float>(p, a).run(probabilities);
}

// ---- gradients

Value backward(SoftmaxOutputBackwardParams p, bool linear, const Values& in) {
  p.linear = linear;
  return call_all(kBackward, in, ParamSchema<SoftmaxOutputBackwardParams>::box(std::move(p)))[0];
}

// The data is an input for second derivatives only: the gradient rule of the output is not that of softmax.
Values softmax_output_gradient(const SoftmaxOutputParams& p, const GradientContext& g) {
  if (!g.output_grad(0)) return Values(2);
  SoftmaxOutputBackwardParams q;
  static_cast<SoftmaxOutputParams&>(q) = p;
  Values in{g.output(0), g.input(1), g.input(0)};
  if (p.out_grad) in.push_back(g.output_grad(0));
  return {backward(std::move(q), false, in), Value{}};
}

// dx = s (y - t) w with y = softmax(data): linear in w and y.
Values backward_gradient(const SoftmaxOutputBackwardParams& p, const GradientContext& g) {
  Values grads(static_cast<size_t>(g.num_inputs()));
  const Value u = g.output_grad(0), y = g.input(0), label = g.input(1);
  if (!u) return grads;
  if (p.linear) return {backward(p, true, {u, label, g.input(2)}), Value{}, Value{}};
  const Shape& shape = g.input_spec(0).shape;
  const RowShape s = p.rows(shape);
  const Shape rows{s.outer, s.length, s.inner};
  if (g.wants(2)) {
    const Value dy = backward(p, true, {p.weighted() ? u * g.input(3) : u, label, g.input(2)});
    const Value dx = call(kSoftmaxBackward, {reshape(dy, rows), reshape(y, rows)}, {{"axis", 1}});
    grads[2] = reshape(dx, shape);
  }
  if (!p.weighted()) return grads;
  SoftmaxOutputBackwardParams q = p;
  q.out_grad = false;
  grads[3] = u * backward(q, false, {y, label, g.input(2)});
  return grads;
}

void register_backward(OpRegistry& ops) {
  ops.declare<SoftmaxOutputBackwardParams>("_backward_SoftmaxOutput")
      .internal()
      .doc("Gradient of SoftmaxOutput.")
      .input("output", "output of SoftmaxOutput")
      .input("label", "same as in SoftmaxOutput")
      .input("data", "same as in SoftmaxOutput; its values are not read")
      .optional_input("output_grad", "output gradient; if out_grad")
      .num_inputs([](const SoftmaxOutputBackwardParams& p) { return 3 + p.weighted(); })
      .output("data_grad", "shape of data")
      .infer(infer_backward)
      .any_device()
      .cpu(run_backward, kFloating)
      .halves_through_float()
      .gradient(backward_gradient)
      .sample(Sample{.inputs = {{3, 4}, {3}, {3, 4}},
                     .low = 0,
                     .high = 3,
                     .integer_valued = true,
                     .check_gradient = false,
                     .note = "the first input is taken as the softmax of the third"});
}

}  // namespace

void register_softmax_output(OpRegistry& ops) {
  const auto labeled = [](std::vector<Shape> inputs, std::vector<std::pair<std::string, std::string>> attrs) {
    return Sample{.inputs = std::move(inputs),
                  .attrs = std::move(attrs),
                  .low = 0,
                  .high = 3,
                  .integer_valued = true,
                  .check_gradient = false,
                  .note = "the gradient is that of the cross entropy"};
  };
  ops.declare<SoftmaxOutputParams>("SoftmaxOutput")
      .alias("Softmax")
      .doc(
          "Softmax for the end of a network. Its gradient is that of the cross entropy with the label, output - label, "
          "independent of the output gradient (unless out_grad).")
      .input("data", "floating tensor (batch, ...)")
      .input("label",
             "class numbers, shape of data without the last axis (multi_output: without axis 1), or (batch,); or "
             "probabilities, shape of data")
      .output("output", "shape and dtype of data")
      .infer(infer_softmax_output)
      .any_device()
      .cpu(run_softmax_output, kFloating)
      .halves_through_float()
      .gradient(softmax_output_gradient, Saves::of({0, 1}, {0}))
      .cost([](const SoftmaxOutputParams&, auto in, auto) { return in[0].shape.size() + 300; })
      .predicts()
      .amp(AmpType::kFloat)
      .sample(labeled({{3, 4}, {3}}, {}))
      .sample(labeled({{3, 4}, {3}}, {{"normalization", "batch"}, {"smooth_alpha", "0.1"}, {"grad_scale", "2.0"}}))
      .sample(labeled({{4, 4}, {4}}, {{"normalization", "valid"}, {"use_ignore", "True"}, {"ignore_label", "1.0"}}))
      .sample(labeled({{2, 4, 3}, {2, 3}}, {{"multi_output", "True"}}))
      .sample(labeled(
          {{2, 4, 3, 2}, {2, 3, 2}},
          {{"multi_output", "True"}, {"normalization", "valid"}, {"use_ignore", "True"}, {"ignore_label", "0.0"}}))
      .sample(labeled({{2, 3, 4}, {2, 3}}, {{"preserve_shape", "True"}, {"out_grad", "True"}}))
      .sample(labeled({{2, 3, 4}, {2}}, {}))
      .sample(labeled({{3, 4}, {3, 4}}, {{"grad_scale", "0.5"}}))
      .sample(labeled({{0, 4}, Shape{0}}, {}))
      .sample(labeled({{2, 3, 4}, {2, 3}}, {}))
      .sample(labeled({{2, 3, 4, 2}, {2, 3, 4}}, {{"normalization", "batch"}}));
  register_backward(ops);
}

}  // namespace hybridnet::ops
