// SequenceMask, SequenceLast, SequenceReverse: batches of sequences of different lengths, padded to one length.
#include <algorithm>
#include <cstring>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/values_arguments.h"
#include "kernels/index/gather.h"
#include "kernels/index/indices.h"
#include "kernels/memory/fill.h"
#include "kernels/memory/strided_copy.h"
#include "ops/device_launch.h"
#include "ops/emit.h"
#include "ops/shape/reshape_codes.h"

namespace hybridnet::ops {
namespace {

template <typename P>
void describe_sequence(ParamSchema<P>& schema) {
  schema.field("use_sequence_length", &P::use_sequence_length)
      .default_value(false)
      .doc("Whether the second input has the lengths; else every sequence has full length.");
}

struct SequenceMaskParams {
  bool use_sequence_length;
  double value;
  int32_t axis;
  static void describe(ParamSchema<SequenceMaskParams>& schema) {
    describe_sequence(schema);
    schema.field("value", &SequenceMaskParams::value)
        .default_value(0.0)
        .doc("Value written after the end of a sequence.");
    schema.field("axis", &SequenceMaskParams::axis)
        .default_value(0)
        .range(0, 1)
        .doc("The time axis; the other of the first two axes is the batch.");
  }
};

struct SequenceLastParams {
  bool use_sequence_length;
  int32_t axis;
  static void describe(ParamSchema<SequenceLastParams>& schema) {
    describe_sequence(schema);
    schema.field("axis", &SequenceLastParams::axis)
        .default_value(0)
        .range(0, 1)
        .doc("The time axis; the other of the first two axes is the batch.");
  }
};

struct SequenceReverseParams {
  bool use_sequence_length;
  int32_t axis;
  static void describe(ParamSchema<SequenceReverseParams>& schema) {
    describe_sequence(schema);
    schema.field("axis", &SequenceReverseParams::axis).default_value(0).range(0, 0).doc("The time axis: 0.");
  }
};

struct SequenceLastGradParams {
  bool use_sequence_length;
  int32_t axis;
  Tuple shape;
  static void describe(ParamSchema<SequenceLastGradParams>& schema) {
    describe_sequence(schema);
    schema.field("axis", &SequenceLastGradParams::axis).default_value(0).range(0, 1).doc("Same as in SequenceLast.");
    schema.field("shape", &SequenceLastGradParams::shape).doc("Shape of the output.");
  }
};

// (time, batch, inner) or (batch, time, inner).
struct SequenceLayout {
  int64_t time, batch, inner;
  bool time_first;
  SequenceLayout(const Shape& s, int axis)
      : time(s[axis]), batch(s[1 - axis]), inner(s.size(2, s.ndim())), time_first(axis == 0) {}
  int64_t row(int64_t t, int64_t n) const { return time_first ? t * batch + n : n * time + t; }
};

// The lengths of the sequences, clamped to [low, time]. Clamped lengths are reported in the name of `reporter`. It is
// null for operators of gradients, because the forward operator has reported them.
kernels::Indices lengths_of(bool given, const KernelArgs& a, const SequenceLayout& l, int64_t low,
                            const char* reporter) {
  if (!given) {  // devices do not read them
    if (device::current()) return kernels::Indices(int64_t{0});
    kernels::Indices full(l.batch);
    std::fill_n(full.data(), l.batch, l.time);
    return full;
  }
  kernels::Indices lengths(a.in[1]);
  if (reporter) lengths.report({reporter, "sequence_length"}, kernels::Bounds::length(low, l.time));
  lengths.clip(low, l.time);
  return lengths;
}

// `lengths` may be empty: full ones.
void run_on_device(const std::string& function, const SequenceLayout& l, const kernels::Indices& lengths,
                   const KernelArgs& a, int64_t n, double value = 0) {
  on_device::launch("sequences.cuh", "SequenceArguments", function, n,
                    device::SequenceArguments{lengths.size() > 0 ? lengths.data() : nullptr, a.in[0].data,
                                              a.out[0].data, l.time, l.batch, l.inner, l.time_first, value});
}

// The data has at least 2 dimensions, the lengths one element per batch element.
void infer_sequence(bool with_lengths, int axis, InferContext& c, int lengths_input) {
  const Shape& in = c.in_shape(0);
  if (in.rank_known() && in.ndim() < 2) {
    throw ShapeError({.input = "data", .expected = "at least 2 dimensions, time and batch", .given = in.str()});
  }
  if (with_lengths && in.rank_known()) {
    c.set_in_shape(lengths_input, Shape({in[1 - axis]}));
    Shape learned = Shape::unknown(in.ndim());
    learned[1 - axis] = c.in_shape(lengths_input)[0];
    c.set_in_shape(0, learned);
  }
}

template <bool kIsGradient>
void run_mask(const SequenceMaskParams& p, const KernelArgs& a) {
  copy_first_input(a);
  if (!p.use_sequence_length || a.out[0].size() == 0) return;
  const SequenceLayout l(*a.in[0].shape, p.axis);
  const kernels::Indices lengths = lengths_of(true, a, l, 0, kIsGradient ? nullptr : "SequenceMask");
  if (device::current()) {
    return run_on_device(on_device::with_dtype("mask_sequences", a.out[0].dtype), l, lengths, a, a.out[0].size(),
                         p.value);
  }
  dispatch_dtype(a.out[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    T* out = a.out[0].as<T>();
    const T value = kernels::element_from<T>(p.value);
    parallel_for(l.batch, 0.6 * static_cast<double>(l.time * l.inner), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        for (int64_t t = lengths[n]; t < l.time; ++t) std::fill_n(out + l.row(t, n) * l.inner, l.inner, value);
      }
    });
  });
}

// The row that holds the last element of each sequence.
kernels::Indices last_rows(const SequenceLayout& l, const kernels::Indices& lengths) {
  kernels::Indices rows(l.batch);
  for (int64_t n = 0; n < l.batch; ++n) rows.data()[n] = l.row(lengths[n] - 1, n);
  return rows;
}

void check_time(const SequenceLayout& l) {
  if (l.time == 0 && l.batch > 0)
    throw ShapeError({.input = "data", .expected = "at least one time step", .given = "none"});
}

void run_last(const SequenceLastParams& p, const KernelArgs& a) {
  const SequenceLayout l(*a.in[0].shape, p.axis);
  check_time(l);
  const kernels::Indices lengths = lengths_of(p.use_sequence_length, a, l, 1, "SequenceLast");
  if (device::current()) {
    return run_on_device(on_device::with_bits("last_of_sequences", a.in[0].dtype), l, lengths, a, a.out[0].size());
  }
  const kernels::Indices rows = last_rows(l, lengths);
  kernels::gather_rows(a.in[0].data, {1, l.time * l.batch, l.inner}, rows.data(), l.batch, a.out[0].data,
                       dtype_size(a.in[0].dtype));
}

void run_last_grad(const SequenceLastGradParams& p, const KernelArgs& a) {
  const SequenceLayout l(p.shape, p.axis);
  check_time(l);
  const kernels::Indices lengths = lengths_of(p.use_sequence_length, a, l, 1, nullptr);
  if (device::current())
    return run_on_device(on_device::with_bits("spread_last", a.in[0].dtype), l, lengths, a, a.out[0].size());
  const kernels::Indices rows = last_rows(l, lengths);
  const int64_t bytes = dtype_size(a.out[0].dtype);
  kernels::zero_bytes(a.out[0].data, a.out[0].size() * bytes);
  kernels::scatter_rows(a.in[0].data, {1, l.time * l.batch, l.inner}, rows.data(), l.batch, a.out[0].data, bytes);
}

void infer_last(const SequenceLastParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  infer_sequence(p.use_sequence_length, p.axis, c, 1);
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  Shape out = Shape::scalar();
  for (int i = 0; i < in.ndim(); ++i) {
    if (i != p.axis) out.push_back(in[i]);
  }
  c.set_out_shape(0, out);
}

template <bool kIsGradient>
void run_reverse(const SequenceReverseParams& p, const KernelArgs& a) {
  const SequenceLayout l(*a.in[0].shape, 0);
  if (a.out[0].size() == 0) return;
  const kernels::Indices lengths =
      lengths_of(p.use_sequence_length, a, l, 0, kIsGradient ? nullptr : "SequenceReverse");
  if (device::current())
    return run_on_device(on_device::with_bits("reverse_sequences", a.in[0].dtype), l, lengths, a, a.out[0].size());
  const int64_t row_bytes = l.inner * dtype_size(a.in[0].dtype);
  const char* from = a.in[0].as<char>();
  char* to = a.out[0].as<char>();
  parallel_for(l.time * l.batch, 0.3 * static_cast<double>(row_bytes), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t t = row / l.batch, n = row % l.batch;
      const int64_t source = t < lengths[n] ? lengths[n] - 1 - t : t;
      std::memcpy(to + row * row_bytes, from + l.row(source, n) * row_bytes, static_cast<size_t>(row_bytes));
    }
  });
}

// One input, or two with lengths.
Value with_lengths(const OpRef& op, const Value& data, const GradientContext& g, bool lengths, ParamsPtr params) {
  if (!data) return {};
  return lengths ? call(op, {data, g.input(1)}, std::move(params)) : call(op, {data}, std::move(params));
}

Sample lengths_sample(std::vector<Shape> inputs, std::vector<std::pair<std::string, std::string>> attrs) {
  Sample s;
  s.dtypes = {DType::kUnknown, DType::kFloat32};
  s.inputs = std::move(inputs);
  s.attrs = std::move(attrs);
  s.attrs.emplace_back("use_sequence_length", "True");
  s.low = 1.1;
  s.high = 3.4;
  return s;
}

template <typename P>
void declare_inputs(OpBuilder<P>& op) {
  op.input("data", "shape (T, N, ...), or (N, T, ...) with axis=1; any dtype")
      .optional_input("sequence_length", "shape (N,); lengths as integers of any dtype")
      .num_inputs([](const P& p) { return p.use_sequence_length ? 2 : 1; });
}

template <bool kIsGradient>
OpBuilder<SequenceMaskParams> declare_mask(OpRegistry& ops, const char* name) {
  auto mask = ops.declare<SequenceMaskParams>(name);
  declare_inputs(mask);
  mask.output("output", "shape and dtype of data")
      .infer([](const SequenceMaskParams& p, InferContext& c) {
        c.unify_dtypes({0}, {0});
        c.set_in_shape(0, c.out_shape(0));
        infer_sequence(p.use_sequence_length, p.axis, c, 1);
        c.set_out_shape(0, c.in_shape(0));
      })
      .any_device()
      .cpu(run_mask<kIsGradient>)
      .inplace(0, 0)
      .identity_when([](const SequenceMaskParams& p, bool) { return !p.use_sequence_length; })
      .gradient(
          [](const SequenceMaskParams& p, const GradientContext& g) {
            static const OpRef kMask{"_backward_SequenceMask"};
            if (!p.use_sequence_length) return Values{g.output_grad(0)};
            return Values{with_lengths(kMask, g.output_grad(0), g, true,
                                       ParamSchema<SequenceMaskParams>::box({true, 0.0, p.axis}))};
          },
          Saves::of({1}))
      .sample({{3, 2, 4}}, {})
      .sample(lengths_sample({{4, 3, 2}, {3}}, {{"value", "1.5"}}))
      .sample(lengths_sample({{3, 4}, {3}}, {{"axis", "1"}}));
  return mask;
}

template <bool kIsGradient>
OpBuilder<SequenceReverseParams> declare_reverse(OpRegistry& ops, const char* name) {
  auto reverse = ops.declare<SequenceReverseParams>(name);
  declare_inputs(reverse);
  reverse.output("output", "shape and dtype of data")
      .infer([](const SequenceReverseParams& p, InferContext& c) {
        c.unify_dtypes({0}, {0});
        c.set_in_shape(0, c.out_shape(0));
        infer_sequence(p.use_sequence_length, 0, c, 1);
        c.set_out_shape(0, c.in_shape(0));
      })
      .any_device()
      .cpu(run_reverse<kIsGradient>)
      .gradient(
          [](const SequenceReverseParams& p, const GradientContext& g) {
            static const OpRef kReverse{"_backward_SequenceReverse"};
            return Values{with_lengths(kReverse, g.output_grad(0), g, p.use_sequence_length,
                                       ParamSchema<SequenceReverseParams>::box(p))};
          },
          Saves::of({1}))
      .sample({{3, 2, 4}}, {})
      .sample(lengths_sample({{4, 3, 2}, {3}}, {}));
  return reverse;
}

}  // namespace

void register_sequence(OpRegistry& ops) {
  declare_mask<false>(ops, "SequenceMask")
      .alias("_npx_sequence_mask")
      .doc("Overwrites the elements after the end of each sequence.");
  declare_mask<true>(ops, "_backward_SequenceMask")
      .internal()
      .doc("The same for gradients of SequenceMask, which has reported its lengths.");
  auto last = ops.declare<SequenceLastParams>("SequenceLast");
  last.doc("The last element of each sequence.");
  declare_inputs(last);
  last.output("output", "shape of data without the time axis")
      .infer(infer_last)
      .any_device()
      .cpu(run_last)
      .may_raise()
      .gradient(
          [](const SequenceLastParams& p, const GradientContext& g) {
            static const OpRef kGrad{"_backward_SequenceLast"};
            return Values{with_lengths(
                kGrad, g.output_grad(0), g, p.use_sequence_length,
                ParamSchema<SequenceLastGradParams>::box({p.use_sequence_length, p.axis, g.input_spec(0).shape}))};
          },
          Saves::of({1}))
      .sample({{3, 2, 4}}, {})
      .sample(lengths_sample({{4, 3, 2}, {3}}, {}))
      .sample(lengths_sample({{3, 4}, {3}}, {{"axis", "1"}}));
  auto last_grad = ops.declare<SequenceLastGradParams>("_backward_SequenceLast");
  last_grad.doc("Zeros with data at the last element of each sequence: the gradient of SequenceLast.");
  declare_inputs(last_grad);
  last_grad.output("output", "shape given by the parameter")
      .infer([](const SequenceLastGradParams& p, InferContext& c) {
        c.unify_dtypes({0}, {0});
        c.set_out_shape(0, p.shape);
      })
      .any_device()
      .cpu(run_last_grad)
      .may_raise()
      .internal()
      .gradient(
          [](const SequenceLastGradParams& p, const GradientContext& g) {
            static const OpRef kLast{"SequenceLast"};
            return Values{with_lengths(kLast, g.output_grad(0), g, p.use_sequence_length,
                                       ParamSchema<SequenceLastParams>::box({p.use_sequence_length, p.axis}))};
          },
          Saves::of({1}))
      .sample({{3, 2}}, {{"shape", "(4, 3, 2)"}})
      .sample(lengths_sample({{3, 2}, {3}}, {{"shape", "(4, 3, 2)"}}));
  declare_reverse<false>(ops, "SequenceReverse").doc("Each sequence reversed; elements after its end are unchanged.");
  declare_reverse<true>(ops, "_backward_SequenceReverse")
      .internal()
      .doc("The same for gradients of SequenceReverse, which has reported its lengths.");
}

}  // namespace hybridnet::ops
