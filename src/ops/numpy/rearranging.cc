// Operators that move elements, in NumPy's interface: roll, flip, rot90, moveaxis, and the stacking and splitting
// functions that first raise arrays to a minimum rank.
#include <algorithm>

#include "hybridnet/declare.h"
#include "ops/numpy/promote.h"

namespace hybridnet::ops {
namespace {

const OpRef kConcat{"Concat"}, kReverse{"reverse"}, kSplit{"_split_v2"}, kSliceAxis{"slice_axis"};

int ndim_of(const Value& a) { return spec_of(a).shape.ndim(); }

Value flat(const Value& a) { return ndim_of(a) == 1 ? a : literal_reshape(a, Shape{-1}); }

Value part(const Value& a, int axis, const AttrValue& begin, const AttrValue& end) {
  return call(kSliceAxis, {a}, {{"axis", axis}, {"begin", begin}, {"end", end}});
}

// ---------------------------------------------------------------------------------------------------------------- roll
struct RollParams {
  std::optional<Tuple> shift, axis;
  static void describe(ParamSchema<RollParams>& schema) {
    schema.field("shift", &RollParams::shift)
        .none_by_default()
        .doc("Number of positions that elements move by, one number or one per axis.");
    schema.field("axis", &RollParams::axis).none_by_default().doc("Axes to move along; None: row-major order.");
    schema.check([](const RollParams& p) {
      if (!p.shift || p.shift->ndim() == 0)
        throw ParamError({.input = "shift", .expected = "at least one number", .given = "none"});
    });
  }
};

Value rolled(const Value& a, int64_t shift, int axis) {
  const int64_t size = spec_of(a).shape[axis];
  if (size == 0) return a;
  const int64_t by = ((shift % size) + size) % size;
  if (by == 0) return a;
  return concat({part(a, axis, -by, AttrValue()), part(a, axis, 0, -by)}, axis);
}

Values roll_rule(const RollParams& p, const Values& in) {
  const Shape& shape = spec_of(in[0]).shape;
  if (!p.axis) {
    const Value row = flat(in[0]);
    const int64_t size = std::max<int64_t>(1, spec_of(row).shape[0]);
    int64_t shift = 0;  // total shift, reduced modulo the size: the plain sum may overflow
    for (const int64_t each : *p.shift) shift = (shift + each % size) % size;
    return {literal_reshape(rolled(row, shift, 0), shape)};
  }
  const int count = std::max(p.shift->ndim(), p.axis->ndim());
  for (const Tuple* given : {&*p.shift, &*p.axis})
    if (given->ndim() != 1 && given->ndim() != count)
      throw ParamError({.input = "shift",
                        .expected = "as many numbers as axis has axes, or one",
                        .given = "shift=" + p.shift->str() + ", axis=" + p.axis->str()});
  Value a = in[0];
  for (int i = 0; i < count; ++i) {
    const int64_t shift = (*p.shift)[p.shift->ndim() == 1 ? 0 : i], axis = (*p.axis)[p.axis->ndim() == 1 ? 0 : i];
    a = rolled(a, shift, normalize_axis(axis, shape.ndim()));
  }
  return {a};
}

// ------------------------------------------------------------------------------------------------- axes in other order
struct MoveAxisParams {
  Tuple source, destination;
  static void describe(ParamSchema<MoveAxisParams>& schema) {
    schema.field("source", &MoveAxisParams::source).doc("Axes to move.");
    schema.field("destination", &MoveAxisParams::destination).doc("New position of each of them.");
    schema.check([](const MoveAxisParams& p) {
      if (p.source.ndim() != p.destination.ndim())
        throw ParamError({.input = "destination",
                          .expected = "as many axes as source=" + p.source.str(),
                          .given = p.destination.str()});
    });
  }
};

std::vector<int> distinct_axes(const Tuple& axes, int ndim, const char* name) {
  std::vector<int> result;
  for (const int64_t axis : axes) {
    const int at = normalize_axis(axis, ndim, name);
    if (std::find(result.begin(), result.end(), at) != result.end())
      throw ParamError({.input = name, .expected = "different axes", .given = axes.str()});
    result.push_back(at);
  }
  return result;
}

Values moveaxis_rule(const MoveAxisParams& p, const Values& in) {
  const int ndim = ndim_of(in[0]);
  const std::vector<int> from = distinct_axes(p.source, ndim, "source");
  const std::vector<int> to = distinct_axes(p.destination, ndim, "destination");
  Tuple order = Tuple::scalar();
  for (int i = 0, next = 0; i < ndim; ++i) {
    const auto moved = std::find(to.begin(), to.end(), i);
    if (moved != to.end()) {
      order.push_back(from[static_cast<size_t>(moved - to.begin())]);
      continue;
    }
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    order.push_back(next++);
  }
  return {ndim < 2 ? in[0] : transpose(in[0], order)};
}

struct FlipParams {
  std::optional<Tuple> axis;
  static void describe(ParamSchema<FlipParams>& schema) {
    schema.field("axis", &FlipParams::axis).none_by_default().doc("Axes to reverse; None: all.");
  }
};

Value flipped(const Value& a, const Tuple& axes) {
  return axes.ndim() == 0 ? a : call(kReverse, {a}, {{"axis", AttrValue(axes)}});
}

Values flip_rule(const FlipParams& p, const Values& in) {
  const int ndim = ndim_of(in[0]);
  if (p.axis) {
    distinct_axes(*p.axis, ndim, "axis");
    return {flipped(in[0], *p.axis)};
  }
  Tuple all = Tuple::scalar();
  for (int i = 0; i < ndim; ++i) all.push_back(i);
  return {flipped(in[0], all)};
}

struct Rot90Params {
  int32_t k;
  std::optional<Tuple> axes;
  static void describe(ParamSchema<Rot90Params>& schema) {
    schema.field("k", &Rot90Params::k).default_value(1).doc("Number of rotations by 90 degrees.");
    schema.field("axes", &Rot90Params::axes)
        .none_by_default()
        .doc("The plane of the rotation, from the first axis toward the second; None: (0, 1).");
  }
};

Values rot90_rule(const Rot90Params& p, const Values& in) {
  const int ndim = ndim_of(in[0]);
  const Tuple given = p.axes.value_or(Tuple{0, 1});
  if (given.ndim() != 2) throw ParamError({.input = "axes", .expected = "two axes", .given = given.str()});
  const std::vector<int> axes = distinct_axes(given, ndim, "axes");
  const int quarters = ((p.k % 4) + 4) % 4;
  if (quarters == 0) return {in[0]};
  if (quarters == 2) return {flipped(in[0], Tuple{axes[0], axes[1]})};
  Tuple order = Tuple::scalar();
  for (int i = 0; i < ndim; ++i) order.push_back(i == axes[0] ? axes[1] : i == axes[1] ? axes[0] : i);
  const Tuple second{axes[1]};
  if (quarters == 1) return {transpose(flipped(in[0], second), order)};
  return {flipped(transpose(in[0], order), second)};
}

// ------------------------------------------------------------------------------------------------------ ranks, stacks
struct ArraysParams {
  int32_t num_args;
  static void describe(ParamSchema<ArraysParams>& schema) {
    schema.field("num_args", &ArraysParams::num_args).at_least(1).doc("Number of arrays.");
  }
};

struct StacksParams {
  int32_t num_args, dim;
  static void describe(ParamSchema<StacksParams>& schema) {
    schema.field("num_args", &StacksParams::num_args).at_least(1).doc("Number of arrays.");
    schema.field("dim", &StacksParams::dim).default_value(1).hidden().doc("Listed by old tools, without effect.");
  }
};

Value at_least_1d(const Value& a) { return ndim_of(a) == 0 ? literal_reshape(a, Shape{1}) : a; }
Value at_least_2d(const Value& a) { return ndim_of(a) < 2 ? expand_dims(at_least_1d(a), 0) : a; }
Value at_least_3d(const Value& a) { return ndim_of(a) < 3 ? expand_dims(at_least_2d(a), 2) : a; }
Value as_column(const Value& a) { return ndim_of(a) < 2 ? expand_dims(at_least_1d(a), 1) : a; }

using Raise = Value (*)(const Value&);

Values each(const Values& in, Raise raise) {
  Values result;
  for (const Value& a : in) result.push_back(raise(a));
  return result;
}

Values joined(const Values& in, Raise raise, int axis) {
  return {call(kConcat, each(in_common_dtype(in), raise), {{"dim", axis}})};
}

void declare_at_least(OpRegistry& ops, int rank, Raise raise, const char* doc) {
  ops.declare<ArraysParams>("_np_atleast_" + std::to_string(rank) + "d")
      .doc(doc)
      .variadic_input("arys", "num_args", "arrays of any shape")
      .output("out", "one per array, of the rank or above")
      .num_outputs([](const ArraysParams& p) { return p.num_args; })
      .compose([raise](const ArraysParams&, const Values& in) { return each(in, raise); })
      .sample({{2, 3}}, {{"num_args", "1"}})
      .sample({Shape::scalar(), Shape{3}}, {{"num_args", "2"}})
      .sample({{2, 3, 4, 1}, {0, 3}}, {{"num_args", "2"}});
}

template <typename P, typename Rule>
OpBuilder<P> declare_stacks(OpRegistry& ops, const char* name, const char* doc, Rule rule) {
  auto op = ops.declare<P>(name);
  op.doc(doc)
      .variadic_input("data", "num_args", "arrays whose sizes are equal except along the joined axis")
      .output("out", "the common dtype of the arrays")
      .compose([rule](const P&, const Values& in) { return rule(in); })
      .sample({{2, 3}, {2, 3}}, {{"num_args", "2"}})
      .sample({{3}, {3}}, {{"num_args", "2"}})
      .sample({Shape::scalar(), Shape::scalar()}, {{"num_args", "2"}});
  return op;
}

// -------------------------------------------------------------------------------------------------------------- splits
struct PartsParams {
  Tuple indices;
  int32_t axis, sections;
  bool squeeze_axis;
  static void describe(ParamSchema<PartsParams>& schema) {
    schema.field("indices", &PartsParams::indices)
        .doc("First index of each part, the first is 0. Ignored with sections.");
    schema.field("axis", &PartsParams::axis).default_value(1).hidden().doc("Without effect.");
    schema.field("squeeze_axis", &PartsParams::squeeze_axis).default_value(false).hidden().doc("Without effect.");
    schema.field("sections", &PartsParams::sections).default_value(0).range(0, 1 << 20).doc("Number of equal parts.");
    schema.check([](const PartsParams& p) {
      if (p.sections == 0 && p.indices.ndim() == 0)
        throw ParamError({.input = "indices", .expected = "at least one index, or sections > 0", .given = "()"});
    });
  }
};

// Declares a split along axis(ndim); arrays need at least `least` axes.
void declare_parts(OpRegistry& ops, const char* name, const char* doc, int least, int (*axis)(int)) {
  ops.declare<PartsParams>(name)
      .doc(doc)
      .input("data", "at least " + std::to_string(least) + " dimensions, any dtype")
      .names_its_input()
      .output("out", "one array per part")
      .num_outputs([](const PartsParams& p) { return p.sections > 0 ? p.sections : p.indices.ndim(); })
      .compose([least, axis](const PartsParams& p, const Values& in) -> Values {
        const Shape& shape = spec_of(in[0]).shape;
        if (shape.ndim() < least)
          throw ShapeError(
              {.input = "data", .expected = "at least " + std::to_string(least) + " axes", .given = shape.str()});
        return call_all(
            kSplit, in,
            {{"indices", AttrValue(p.indices)}, {"axis", axis(shape.ndim())}, {"sections", int64_t{p.sections}}});
      })
      .sample({{2, 4, 6}}, {{"indices", "()"}, {"sections", "2"}})
      .sample({{2, 4, 6}}, {{"indices", "(0, 1, 3)"}});
}

}  // namespace

void register_numpy_moves(OpRegistry& ops) {
  ops.declare<RollParams>("_np_roll")
      .doc("Moves elements along axes; elements beyond the end reappear at the start.")
      .input("data", "any shape, any dtype")
      .names_its_input()
      .output("out", "shape and dtype of data")
      .compose(roll_rule)
      .sample({{3, 4}}, {{"shift", "2"}})
      .sample({{3, 4}}, {{"shift", "(1, -2)"}, {"axis", "(0, 1)"}})
      .sample({{3, 4}}, {{"shift", "5"}, {"axis", "-1"}});
  ops.declare<MoveAxisParams>("_np_moveaxis")
      .doc("Moves axes to other positions; the others keep their order.")
      .input("a", "any shape, any dtype")
      .output("out", "dtype of a, its sizes in the new order")
      .compose(moveaxis_rule)
      .sample({{2, 3, 4}}, {{"source", "0"}, {"destination", "-1"}})
      .sample({{2, 3, 4}}, {{"source", "(0, 1)"}, {"destination", "(-1, 0)"}});
  ops.declare<FlipParams>("_npi_flip")
      .doc("Reverses the order of elements along axes.")
      .input("data", "any shape, any dtype")
      .names_its_input()
      .output("out", "shape and dtype of data")
      .compose(flip_rule)
      .sample({{2, 3}})
      .sample({{2, 3, 4}}, {{"axis", "(0, -1)"}});
  ops.declare<Rot90Params>("_npi_rot90")
      .doc("Rotates planes by multiples of 90 degrees.")
      .input("data", "at least 2 dimensions, any dtype")
      .names_its_input()
      .output("out", "dtype of data")
      .compose(rot90_rule)
      .sample({{2, 3}})
      .sample({{2, 3}}, {{"k", "2"}})
      .sample({{2, 3, 4}}, {{"k", "-1"}, {"axes", "(1, 2)"}});
}

void register_numpy_stacks(OpRegistry& ops) {
  declare_at_least(ops, 1, at_least_1d, "Scalars as vectors of one element; other arrays are unchanged.");
  declare_at_least(ops, 2, at_least_2d, "Scalars and vectors as matrices of one row; other arrays are unchanged.");
  declare_at_least(ops, 3, at_least_3d, "Arrays of at least three axes: (N,) becomes (1, N, 1), (M, N) (M, N, 1).");
  declare_stacks<ArraysParams>(ops, "_npi_vstack", "Stacks arrays as rows.",
                               [](const Values& in) { return joined(in, at_least_2d, 0); });
  declare_stacks<ArraysParams>(ops, "_npi_column_stack",
                               "Joins vectors, as columns, and matrices along the second axis.",
                               [](const Values& in) { return joined(in, as_column, 1); });
  declare_stacks<StacksParams>(ops, "_npi_hstack", "Joins arrays along the second axis, vectors along the first.",
                               [](const Values& in) { return joined(in, at_least_1d, ndim_of(in[0]) < 2 ? 0 : 1); })
      .mxnet_name("out");
  declare_stacks<StacksParams>(ops, "_npi_dstack", "Joins arrays along the third axis.", [](const Values& in) {
    return joined(in, at_least_3d, 2);
  }).mxnet_name("out");
}

void register_numpy_splits(OpRegistry& ops) {
  declare_parts(ops, "_npi_hsplit", "Splits along the second axis, vectors along the first.", 1,
                [](int ndim) { return ndim == 1 ? 0 : 1; });
  declare_parts(ops, "_npi_dsplit", "Splits along the third axis.", 3, [](int) { return 2; });
}

}  // namespace hybridnet::ops
