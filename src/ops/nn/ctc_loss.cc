// CTCLoss: connectionist temporal classification.
#include <algorithm>
#include <vector>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/index/indices.h"
#include "kernels/norm/ctc.h"
#include "ops/emit.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

const OpRef kSecondProduct{"_ctc_second_product"};

enum class BlankLabel : int32_t { kFirst, kLast };

struct CtcLossParams {
  bool use_data_lengths, use_label_lengths;
  BlankLabel blank_label;

  int num_inputs() const { return 2 + use_data_lengths + use_label_lengths; }
  size_t label_lengths_input() const { return use_data_lengths ? 3 : 2; }
  int64_t padding() const { return blank_label == BlankLabel::kFirst ? 0 : -1; }
  static void describe(ParamSchema<CtcLossParams>& schema) {
    schema.field("use_data_lengths", &CtcLossParams::use_data_lengths)
        .default_value(false)
        .doc("Whether the input data_lengths is present; otherwise every example has all steps.");
    schema.field("use_label_lengths", &CtcLossParams::use_label_lengths)
        .default_value(false)
        .doc(
            "Whether the input label_lengths is present; otherwise labels end before their first padding: 0 with "
            "blank_label first, -1 with blank_label last.");
    schema.field("blank_label", &CtcLossParams::blank_label)
        .default_value("first")
        .choice("first", BlankLabel::kFirst)
        .choice("last", BlankLabel::kLast)
        .doc("Index of the blank symbol: the first or the last.");
  }
};

void require_rank(InferContext& c, int i, int ndim, const char* axes) {
  if (c.in_shape(i).rank_known() && c.in_shape(i).ndim() != ndim)
    throw ShapeError({.input = c.input_name(i), .expected = axes, .given = c.in_shape(i).str()});
  c.set_in_shape(i, Shape::unknown(ndim));
}

void infer_ctc_loss(const CtcLossParams&, InferContext& c) {
  c.unify_dtypes({0}, {0, 1});
  require_rank(c, 0, 3, "(steps, batch, symbols)");
  require_rank(c, 1, 2, "(batch, symbols of the longest label)");
  for (int i = 1; i < c.num_in(); ++i)
    if (c.in_dtype(i) == DType::kUnknown && c.in_dtype(0) != DType::kUnknown) c.set_in_dtype(i, c.in_dtype(0));
  c.set_in_shape(0, Shape{kUnknownDim, c.in_shape(1)[0], kUnknownDim});
  c.set_out_shape(0, Shape{c.in_shape(0)[1]});
  c.set_in_shape(0, Shape{kUnknownDim, c.out_shape(0)[0], kUnknownDim});
  c.set_out_shape(1, c.in_shape(0));
  const Shape& data = c.in_shape(0);
  c.set_in_shape(1, Shape{data[1], kUnknownDim});
  for (int i = 2; i < c.num_in(); ++i) c.set_in_shape(i, Shape{data[1]});
  if (data[0] == 0 || data[2] == 0) {
    throw ShapeError(
        {.input = "data", .expected = "at least one step and one symbol, the blank", .given = "shape " + data.str()});
  }
  const int64_t steps = data[0], longest = c.in_shape(1)[1];
  if (steps != kUnknownDim && longest > steps) {
    throw ShapeError({.input = "label",
                      .expected = "labels of at most " + std::to_string(steps) + " symbols",
                      .given = c.in_shape(1).str(),
                      .because = "data has " + std::to_string(steps) + " steps"});
  }
}

// The inputs as integers; labels are without their padding. report: whether lengths beyond data and label are reported:
// the loss reports them, its gradients do not.
class CtcBatch {
 public:
  CtcBatch(const CtcLossParams& p, std::span<const TensorRef> in, bool report) {
    const Shape& data = *in[0].shape;
    steps_ = data[0];
    batch_ = data[1];
    symbols_ = data[2];
    blank_ = p.blank_label == BlankLabel::kFirst ? 0 : symbols_ - 1;
    longest_ = (*in[1].shape)[1];
    labels_ = as_integers(in[1]);
    if (p.use_data_lengths) data_lengths_ = lengths("data_lengths", in[2], steps_, report);
    if (p.use_label_lengths) label_lengths_ = lengths("label_lengths", in[p.label_lengths_input()], longest_, report);
    for (int64_t n = 0; n < batch_ && !p.use_label_lengths; ++n) {
      const auto begin = labels_.begin() + n * longest_;
      label_lengths_.push_back(std::find(begin, begin + longest_, p.padding()) - begin);
    }
    for (int64_t n = 0; n < batch_; ++n) check_label(n);
  }

  double example_ns() const { return 10.0 * static_cast<double>(steps_ * (symbols_ + longest_)); }
  int64_t batch() const { return batch_; }
  int64_t steps() const { return steps_; }
  int64_t symbols() const { return symbols_; }
  int64_t row() const { return batch_ * symbols_; }  // distance between steps
  kernels::CtcSequence example(int64_t n) const {
    kernels::CtcSequence s;
    s.label = {labels_.data() + n * longest_, static_cast<size_t>(label_length(n))};
    s.steps = data_lengths_.empty() ? steps_ : data_lengths_[static_cast<size_t>(n)];
    s.symbols = symbols_;
    s.stride = row();
    s.blank = blank_;
    return s;
  }

 private:
  static Temporary<int64_t> as_integers(const TensorRef& t) {
    Temporary<int64_t> numbers(static_cast<size_t>(t.size()));
    kernels::read_indices(t, numbers.data());
    return numbers;
  }
  static Temporary<int64_t> lengths(const char* input, const TensorRef& t, int64_t longest, bool report) {
    Temporary<int64_t> all = as_integers(t);
    if (report) kernels::report_numbers({"CTCLoss", input}, all.data(), t.size(), kernels::Bounds::length(0, longest));
    for (int64_t& length : all) length = std::clamp<int64_t>(length, 0, longest);
    return all;
  }
  int64_t label_length(int64_t n) const { return label_lengths_[static_cast<size_t>(n)]; }
  void check_label(int64_t n) const {
    for (int64_t i = 0; i < label_length(n); ++i) {
      const int64_t symbol = labels_[static_cast<size_t>(n * longest_ + i)];
      if (symbol >= 0 && symbol < symbols_) continue;
      throw ParamError({.op = "CTCLoss",
                        .input = "label[" + std::to_string(n) + ", " + std::to_string(i) + "]",
                        .expected = "a symbol from 0 to " + std::to_string(symbols_ - 1),
                        .given = kernels::index_text(symbol),
                        .because = "the last axis of data has " + std::to_string(symbols_) + " symbols"});
    }
  }

  int64_t steps_, batch_, symbols_, blank_, longest_;
  Temporary<int64_t> labels_, data_lengths_, label_lengths_;
};

// Zeroes the gradient of the steps after an example's end.
template <typename T>
void clear_rest(const CtcBatch& b, int64_t n, int64_t from, T* out) {
  for (int64_t t = from; t < b.steps(); ++t) std::fill_n(out + t * b.row() + n * b.symbols(), b.symbols(), T(0));
}

template <typename T>
void run_ctc_loss(const CtcLossParams& p, const KernelArgs& a) {
  const CtcBatch b(p, a.in, true);
  T *loss = a.out[0].as<T>(), *gradient = a.out[1].as<T>();
  parallel_for(b.batch(), b.example_ns(), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const kernels::CtcSequence s = b.example(n);
      T* to = gradient ? gradient + n * b.symbols() : nullptr;
      loss[n] = static_cast<T>(kernels::ctc_loss<T>(s, a.in[0].as<T>() + n * b.symbols(), to));
      if (gradient) clear_rest(b, n, s.steps, gradient);
    }
  });
}

// Inputs: the inputs of CTCLoss, then the direction.
template <typename T>
void run_second_product(const CtcLossParams& p, const KernelArgs& a) {
  const CtcBatch b(p, a.in, false);
  const T* direction = a.in.back().as<T>();
  T* out = a.out[0].as<T>();
  parallel_for(b.batch(), b.example_ns(), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const kernels::CtcSequence s = b.example(n);
      const int64_t at = n * b.symbols();
      kernels::ctc_second_product<T>(s, a.in[0].as<T>() + at, direction + at, out + at);
      clear_rest(b, n, s.steps, out);
    }
  });
}

template <void (*narrow)(const CtcLossParams&, const KernelArgs&),
          void (*wide)(const CtcLossParams&, const KernelArgs&)>
Ref<Kernel> link_typed(const CtcLossParams&, const LinkContext& c) {
  return function_kernel<CtcLossParams>(c.in[0].dtype == DType::kFloat64 ? wide : narrow);
}

// The gradient is computed along with the loss. Its own gradient is the product with the second derivatives, which are
// symmetric.
Values ctc_loss_gradient(const CtcLossParams& p, const GradientContext& g) {
  Values grads(static_cast<size_t>(p.num_inputs()));
  const Shape& data = g.input_spec(0).shape;
  if (const Value d = g.output_grad(0)) grads[0] = g.output(1) * reshape(d, Shape{1, data[1], 1});
  if (const Value direction = g.output_grad(1)) {
    Values in;
    for (int i = 0; i < p.num_inputs(); ++i) in.push_back(g.input(i));
    in.push_back(direction);
    grads[0] = grads[0] + call(kSecondProduct, in,
                               {{"use_data_lengths", p.use_data_lengths},
                                {"use_label_lengths", p.use_label_lengths},
                                {"blank_label", p.blank_label == BlankLabel::kFirst ? "first" : "last"}});
  }
  return grads;
}

// Nanoseconds of the softmax and of the lattice.
int64_t ctc_cost_ns(std::span<const TensorSpec> in) {
  const Shape &data = in[0].shape, &label = in[1].shape;
  return data[0] * data[1] * (4 * data[2] + 20 * label[1] + 10) + 1000;
}

Sample label_sample(std::vector<Shape> inputs, std::vector<std::pair<std::string, std::string>> attrs, double low,
                    double high) {
  std::vector<DType> dtypes(inputs.size(), DType::kInt32);
  dtypes[0] = DType::kUnknown;
  return Sample{
      .inputs = std::move(inputs), .attrs = std::move(attrs), .low = low, .high = high, .dtypes = std::move(dtypes)};
}

}  // namespace

void register_ctc_loss(OpRegistry& ops) {
  ops.declare<CtcLossParams>("CTCLoss")
      .alias("ctc_loss")
      .alias("_contrib_CTCLoss")
      .alias("_contrib_ctc_loss")
      .doc(
          "-log of the probability of a label under all alignments with a sequence: connectionist temporal "
          "classification. The softmax of data is included. A label that needs more steps than data has gets loss 0.")
      .input("data", "activations (steps, batch, symbols)")
      .input("label", "symbols (batch, longest label), any dtype, padded at the end; no gradient")
      .optional_input("data_lengths", "if use_data_lengths: number of steps of each example (batch,)")
      .optional_input("label_lengths", "if use_label_lengths: number of symbols of each label (batch,)")
      .num_inputs([](const CtcLossParams& p) { return p.num_inputs(); })
      .output("out", "losses (batch,)")
      .output("grad", "gradient of each loss, shape of data")
      .visible_outputs(1)
      .infer(infer_ctc_loss)
      .link(link_typed<run_ctc_loss<float>, run_ctc_loss<double>>)
      .halves_through_float()
      .gradient(ctc_loss_gradient, Saves::all())
      .skips_unwanted_outputs()
      .may_raise()
      .cost([](const CtcLossParams&, auto in, auto) { return ctc_cost_ns(in); })
      .amp(AmpType::kFloat)
      .output_names(OutputNames::kNumberedSeveral)
      .sample(label_sample({{6, 2, 4}, {2, 3}}, {}, 0, 3.9))
      .sample(label_sample({{6, 3, 5}, {3, 3}, {3}, {3}},
                           {{"use_data_lengths", "True"}, {"use_label_lengths", "True"}, {"blank_label", "last"}}, 1,
                           3.9))
      .sample(label_sample({{5, 2, 4}, {2, 2}, {2}}, {{"use_label_lengths", "True"}}, 1, 2.9))
      .sample(label_sample({{5, 0, 4}, {0, 2}}, {}, 0, 1));
  Sample product{.inputs = {{6, 2, 4}, {2, 3}, {6, 2, 4}},
                 .low = 0,
                 .high = 3.9,
                 .dtypes = {DType::kUnknown, DType::kInt32, DType::kUnknown}};
  ops.declare<CtcLossParams>("_ctc_second_product")
      .internal()
      .doc("Second derivatives of CTCLoss times a direction, which follows the inputs of CTCLoss.")
      .input("data", "same as in CTCLoss")
      .input("label", "same as in CTCLoss")
      .input("argument2", "data_lengths, label_lengths or direction")
      .optional_input("argument3", "label_lengths or direction")
      .optional_input("argument4", "direction")
      .num_inputs([](const CtcLossParams& p) { return p.num_inputs() + 1; })
      .output("output", "shape of data")
      .infer([](const CtcLossParams&, InferContext& c) {
        c.unify_dtypes({0, c.num_in() - 1}, {0});
        c.set_out_shape(0, c.in_shape(0));
      })
      .link(link_typed<run_second_product<float>, run_second_product<double>>)
      .halves_through_float()
      .gradient(kNotDifferentiable)
      .may_raise()
      .cost([](const CtcLossParams&, auto in, auto) { return 2 * ctc_cost_ns(in); })
      .sample(std::move(product));
}

}  // namespace hybridnet::ops
