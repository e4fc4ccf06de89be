// SliceChannel (split) and _split_v2: split a tensor along an axis.
#include "hybridnet/declare.h"
#include "kernels/memory/strided_copy.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

constexpr double kMaxParts = 1 << 20;  // each part is an array

struct SliceChannelParams {
  int32_t num_outputs, axis;
  bool squeeze_axis;
  static void describe(ParamSchema<SliceChannelParams>& schema) {
    schema.field("num_outputs", &SliceChannelParams::num_outputs).range(1, kMaxParts).doc("Number of equal parts.");
    schema.field("axis", &SliceChannelParams::axis).default_value(1).doc("The axis to split.");
    schema.field("squeeze_axis", &SliceChannelParams::squeeze_axis)
        .default_value(false)
        .doc("Whether to remove the axis; its size must be num_outputs.");
  }
};

struct SplitParams {
  Tuple indices;
  int32_t axis, sections;
  bool squeeze_axis;
  static void describe(ParamSchema<SplitParams>& schema) {
    schema.field("indices", &SplitParams::indices)
        .doc("First index of each part, the first is 0. Ignored with sections.");
    schema.field("axis", &SplitParams::axis).default_value(1).doc("The axis to split.");
    schema.field("squeeze_axis", &SplitParams::squeeze_axis)
        .default_value(false)
        .doc("Whether to remove the axis of parts of size 1.");
    schema.field("sections", &SplitParams::sections)
        .default_value(0)
        .range(0, kMaxParts)
        .doc("Number of parts; if it does not divide the size, earlier parts are larger by one.");
    schema.check([](const SplitParams& p) {
      if (p.sections == 0 && p.indices.ndim() == 0) {
        throw ParamError({.input = "indices", .expected = "at least one index, or sections > 0", .given = "()"});
      }
    });
  }
};

int parts_of(const SliceChannelParams& p) { return p.num_outputs; }
int parts_of(const SplitParams& p) { return p.sections > 0 ? p.sections : p.indices.ndim(); }

// The range [begin, end) of part i of an axis of known size.
std::pair<int64_t, int64_t> part_range(const SliceChannelParams& p, int i, int64_t size) {
  const int64_t part = size / p.num_outputs;
  return {i * part, (i + 1) * part};
}
std::pair<int64_t, int64_t> part_range(const SplitParams& p, int i, int64_t size) {
  if (p.sections > 0) {
    const int64_t part = size / p.sections, larger = size % p.sections;
    auto begin = [&](int64_t k) { return k * part + std::min(k, larger); };
    return {begin(i), begin(i + 1)};
  }
  return {p.indices[i], i + 1 < p.indices.ndim() ? p.indices[i + 1] : size};
}

void check_parts(const SliceChannelParams& p, const Shape& in, int axis) {
  if (in[axis] % p.num_outputs == 0) return;
  throw ShapeError({.input = "data",
                    .expected = "a size in axis " + std::to_string(axis) +
                                " that num_outputs=" + std::to_string(p.num_outputs) + " divides",
                    .given = in.str()});
}
void check_parts(const SplitParams& p, const Shape& in, int axis) {
  if (p.sections > 0) return;
  int64_t before = 0;
  for (int64_t index : p.indices) {
    if (index < before || index > in[axis]) {
      throw ParamError({.input = "indices",
                        .expected = "rising indices in [0, " + std::to_string(in[axis]) + "]",
                        .given = p.indices.str(),
                        .because = "data has shape " + in.str()});
    }
    before = index;
  }
}

template <typename P>
void infer_split(const P& p, InferContext& c) {
  c.unify_dtypes();
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  const int axis = normalize_axis(p.axis, in.ndim());
  if (in[axis] >= 0) check_parts(p, in, axis);
  Shape learned = Shape::unknown(in.ndim());
  for (int i = 0; i < c.num_out(); ++i) {
    int64_t part = kUnknownDim;
    if (in[axis] >= 0) {
      const auto [begin, end] = part_range(p, i, in[axis]);
      part = end - begin;
    }
    Shape out = Shape::scalar();
    for (int k = 0; k < in.ndim(); ++k) {
      if (k != axis) {
        out.push_back(in[k]);
      } else if (!p.squeeze_axis) {
        out.push_back(part);
      } else if (part >= 0 && part != 1) {
        throw ShapeError({.input = "data",
                          .expected = "parts of size 1 in axis " + std::to_string(axis) + ", for squeeze_axis is set",
                          .given = in.str()});
      }
    }
    if (out.ndim() == 0 && !is_np_shape()) out.push_back(1);
    c.set_out_shape(i, out);
    for (int k = 0; k < in.ndim(); ++k) {
      const int from = p.squeeze_axis && k > axis ? k - 1 : k;
      if (k != axis && learned[k] < 0) learned[k] = c.out_shape(i)[from];
    }
  }
  c.set_in_shape(0, learned);
}

template <typename P>
void run_split(const P& p, const KernelArgs& a) {
  const Shape& in = *a.in[0].shape;
  if (in.size() == 0) return;
  const int axis = normalize_axis(p.axis, in.ndim());
  const int64_t bytes = dtype_size(a.in[0].dtype);
  const int64_t outer = in.size(0, axis), inner = in.size(axis + 1, in.ndim());
  for (int i = 0; i < static_cast<int>(a.out.size()); ++i) {
    const auto [begin, end] = part_range(p, i, in[axis]);
    const int64_t n = (end - begin) * inner;
    if (n == 0) continue;
    kernels::StridedCopy copy;
    copy.add_axis(outer, in[axis] * inner, n);
    copy.add_axis(n, 1, 1);
    copy.run(a.in[0].as<char>() + begin * inner * bytes, a.out[static_cast<size_t>(i)].data, bytes);
  }
}

template <typename P>
Values split_gradient(const P& p, const GradientContext& g) {
  const Shape& in = g.input_spec(0).shape;
  const int axis = normalize_axis(p.axis, in.ndim());
  Values parts;
  bool any = false;
  for (int i = 0; i < g.num_outputs(); ++i) {
    Value part = g.output_grad(i);
    any = any || part;
    if (!part) part = zeros(g.output_spec(i).shape, g.output_spec(i).dtype);
    if (p.squeeze_axis) {
      Shape with_axis = in;
      with_axis[axis] = 1;
      part = reshape(part, with_axis);
    }
    parts.push_back(std::move(part));
  }
  if (!any) return {Value{}};
  return {parts.size() == 1 ? parts[0] : concat(parts, axis)};
}

template <typename P>
OpBuilder<P> declare_split(OpRegistry& ops, const char* name) {
  return ops.declare<P>(name)
      .input("data", "any shape, any dtype")
      .names_its_input()
      .output("output", "one array per part, dtype of data")
      .num_outputs([](const P& p) { return parts_of(p); })
      .infer(infer_split<P>)
      .takes_part_of_input()
      .any_device()
      .cpu(run_split<P>)
      .renumbered_params([](P p, std::span<const int> moved_to) {
        if (p.squeeze_axis) return std::optional<P>();
        p.axis = moved_to[static_cast<size_t>(normalize_axis(p.axis, static_cast<int>(moved_to.size())))];
        return std::optional(p);
      })
      .gradient(split_gradient<P>, Saves::nothing());
}

}  // namespace

void register_split(OpRegistry& ops) {
  declare_split<SliceChannelParams>(ops, "SliceChannel")
      .alias("split")
      .doc("Splits data into num_outputs equal parts along an axis.")
      .output_names(OutputNames::kNumbered)
      .sample({{2, 6}}, {{"num_outputs", "3"}})
      .sample({{4, 2, 3}}, {{"num_outputs", "2"}, {"axis", "0"}})
      .sample({{2, 3, 4}}, {{"num_outputs", "3"}, {"axis", "-2"}, {"squeeze_axis", "True"}});
  declare_split<SplitParams>(ops, "_split_v2")
      .alias("_npi_split")
      .doc("Splits data along an axis at indices, or into sections.")
      .sample({{2, 7}}, {{"indices", "(0, 2, 3)"}})
      .sample({{7, 2}}, {{"indices", "()"}, {"sections", "3"}, {"axis", "0"}})
      .sample({{2, 5, 3}}, {{"indices", "(0, 2)"}, {"axis", "-2"}})
      .sample({{3, 2}}, {{"indices", "(0, 1, 2)"}, {"axis", "0"}, {"squeeze_axis", "True"}});
}

}  // namespace hybridnet::ops
