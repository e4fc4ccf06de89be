// Deletion and insertion of elements along an axis, in NumPy's interface.
#include <algorithm>

#include "hybridnet/declare.h"
#include "kernels/index/indices.h"
#include "ops/numpy/promote.h"

namespace hybridnet::ops {
namespace {

const OpRef kArange{"_arange"}, kArgsort{"argsort"}, kTake{"take"}, kConcat{"Concat"},
    kNpBroadcastTo{"_npi_broadcast_to"}, kLesserScalar{"_lesser_scalar"}, kGreaterEqualScalar{"_greater_equal_scalar"},
    kModScalar{"_mod_scalar"}, kEqualScalar{"_equal_scalar"}, kMul{"broadcast_mul"}, kPlaces{"_insertion_places"};

struct PlaceParams {
  std::optional<int32_t> start, stop, step, int_ind, axis;
  static void describe(ParamSchema<PlaceParams>& schema) { describe_place(schema); }
  template <typename P>
  static void describe_place(ParamSchema<P>& schema) {
    schema.field("start", &P::start).none_by_default().doc("Start of a slice; None: the first.");
    schema.field("stop", &P::stop).none_by_default().doc("End of a slice, exclusive; None: after the last.");
    schema.field("step", &P::step).none_by_default().doc("Step of a slice; None: 1.");
    schema.field("int_ind", &P::int_ind).none_by_default().doc("A single index instead of a slice.");
    schema.field("axis", &P::axis).none_by_default().doc("The axis; None: arr is flattened.");
  }
};

struct InsertParams {
  std::optional<int32_t> start, stop, step, int_ind, axis;
  std::optional<double> val;
  static void describe(ParamSchema<InsertParams>& schema) {
    schema.field("val", &InsertParams::val).none_by_default().doc("The value to insert, instead of the input values.");
    PlaceParams::describe_place(schema);
  }
};

// An array and an axis; without axis, the flattened array and its only axis.
struct Along {
  Value arr;
  int axis = 0;
  int64_t size = 0;
  Along(const Value& given, const std::optional<int32_t>& wanted) : arr(given) {
    if (!wanted) arr = literal_reshape(arr, Shape{-1});
    const Shape& shape = spec_of(arr).shape;
    axis = wanted ? normalize_axis(*wanted, shape.ndim()) : 0;
    size = shape[axis];
  }
};

// The indices start, start + step, ... of an axis, by the rules of Python's slices.
struct Picked {
  int64_t start, step, count;
};

template <typename P>
Picked picked(const P& p, int64_t size) {
  const int64_t step = p.step.value_or(1);
  if (step == 0) throw ParamError({.input = "step", .expected = "a step that is not 0", .given = "0"});
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto bound = [&](const std::optional<int32_t>& given, int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp<int64_t>(*given < 0 ? *given + size : *given, low, high);
  };
  const int64_t start = bound(p.start, step > 0 ? low : high), stop = bound(p.stop, step > 0 ? high : low);
  const int64_t span = step > 0 ? stop - start : start - stop, width = std::abs(step);
  return {start, step, span <= 0 ? 0 : (span + width - 1) / width};
}

int64_t checked_index(int64_t index, int64_t size, int64_t last) {
  if (index < -size || index > last)
    throw IndexError({.input = "obj",
                      .expected = "an index in [" + std::to_string(-size) + ", " + std::to_string(last) + "]",
                      .given = kernels::index_text(index),
                      .because = "the axis is of size " + std::to_string(size)});
  return index < 0 ? index + size : index;
}

Value range(int64_t count) {
  if (count == 0) return literal_zeros(Shape{0}, DType::kInt64);
  return call(kArange, Values{}, {{"start", 0}, {"stop", count}, {"dtype", "int64"}});
}

Value joined(const Values& parts, int axis) { return call(kConcat, parts, {{"dim", axis}}); }

// -------------------------------------------------------------------------------------------------------------- delete
Value without_run(const Along& a, int64_t begin, int64_t end) {
  if (begin == 0) return slice_axis(a.arr, a.axis, end, a.size);
  if (end == a.size) return slice_axis(a.arr, a.axis, 0, begin);
  return joined({slice_axis(a.arr, a.axis, 0, begin), slice_axis(a.arr, a.axis, end, a.size)}, a.axis);
}

// A stable sort by "is picked" moves the kept elements to the front.
Value without_every(const Along& a, int64_t first, int64_t step, int64_t count) {
  if (spec_of(a.arr).shape.size() == 0) return slice_axis(a.arr, a.axis, 0, a.size - count);  // any length
  const Value at = range(a.size) + static_cast<double>(-first);
  const auto one = [](const OpRef& op, const Value& v, int64_t s) { return call(op, {v}, {{"scalar", s}}); };
  const Value in_span = call(kMul, {one(kGreaterEqualScalar, at, 0), one(kLesserScalar, at, step * (count - 1) + 1)});
  const Value is_picked = call(kMul, {in_span, one(kEqualScalar, one(kModScalar, at, step), 0)});
  const Value order = call(kArgsort, {is_picked}, {{"axis", 0}, {"dtype", "int64"}});
  return call(kTake, {a.arr, slice_axis(order, 0, 0, a.size - count)}, {{"axis", a.axis}, {"mode", "clip"}});
}

Values delete_rule(const PlaceParams& p, const Values& in) {
  const Along a(in[0], p.axis);
  if (p.int_ind) {
    const int64_t index = checked_index(*p.int_ind, a.size, a.size - 1);
    return {without_run(a, index, index + 1)};
  }
  const Picked slice = picked(p, a.size);
  if (slice.count == 0) return {a.arr};
  const int64_t last = slice.start + (slice.count - 1) * slice.step, step = std::abs(slice.step);
  const int64_t first = std::min(slice.start, last);
  if (step == 1 || slice.count == 1) return {without_run(a, first, first + slice.count)};
  return {without_every(a, first, step, slice.count)};
}

// -------------------------------------------------------------------------------------------------------------- insert
// Casts values to the dtype of arr and adds axes up to its rank.
Value ranked(const Along& a, const Value& given) {
  Value values = cast(given, dtype_of(a.arr));
  const Shape& shape = spec_of(a.arr).shape;
  if (spec_of(values).shape.ndim() > shape.ndim())
    throw ShapeError({.input = "values",
                      .expected = "at most " + std::to_string(shape.ndim()) + " axes",
                      .given = spec_of(values).shape.str()});
  if (spec_of(values).shape.ndim() == 0) values = literal_reshape(values, Shape{1});
  while (spec_of(values).shape.ndim() < shape.ndim()) values = expand_dims(values, 0);
  return values;
}

// values as `count` slices of arr.
Value as_slices(const Along& a, const Value& values, int64_t count) {
  Shape shape = spec_of(a.arr).shape;
  shape[a.axis] = count;
  if (spec_of(values).shape == shape) return values;
  return call(kNpBroadcastTo, {values}, {{"shape", AttrValue(shape)}});
}

Value value_of(const InsertParams& p, const Along& a, const Values& in) {
  if (p.val) return cast(full(Shape{1}, DType::kFloat64, *p.val), dtype_of(a.arr));
  return in[1];
}

// Inserts a block of slices before slice `index`: the number of slices is the size of values along the axis.
Value with_block(const Along& a, int64_t index, const Value& values) {
  const Value block = as_slices(a, values, spec_of(values).shape[a.axis]);
  Values parts;
  if (index > 0) parts.push_back(slice_axis(a.arr, a.axis, 0, index));
  parts.push_back(block);
  if (index < a.size) parts.push_back(slice_axis(a.arr, a.axis, index, a.size));
  return parts.size() == 1 ? parts[0] : joined(parts, a.axis);
}

// Inserts `count` slices of values before the slices in places(), by a stable sort by place; values precede equal
// places.
template <typename Places>
Value with_slices(const Along& a, int64_t count, Places places, const Value& values) {
  if (count == 0) return a.arr;
  const Value all = joined({as_slices(a, values, count), a.arr}, a.axis);
  if (spec_of(all).shape.size() == 0) return all;  // the axis may have any length
  const Value keys = joined({places(), range(a.size)}, 0);
  const Value order = call(kArgsort, {keys}, {{"axis", 0}, {"dtype", "int64"}});
  return call(kTake, {all, order}, {{"axis", a.axis}, {"mode", "clip"}});
}

Values insert_scalar_rule(const InsertParams& p, const Values& in) {
  const Along a(in[0], p.axis);
  if (!p.int_ind) throw ParamError({.input = "int_ind", .expected = "an index", .given = "None"});
  const int64_t index = checked_index(*p.int_ind, a.size, a.size);
  Value values = ranked(a, value_of(p, a, in));
  // NumPy treats the first axis of values as the axis of the inserted slices.
  Tuple order = Tuple::scalar();
  const int ndim = spec_of(values).shape.ndim();
  for (int i = 0; i < ndim; ++i) order.push_back(i < a.axis ? i + 1 : i == a.axis ? 0 : i);
  if (a.axis > 0) values = transpose(values, order);
  return {with_block(a, index, values)};
}

Values insert_slice_rule(const InsertParams& p, const Values& in) {
  const Along a(in[0], p.axis);
  const Picked slice = picked(p, a.size);
  const Value values = ranked(a, value_of(p, a, in));
  if (slice.count == 1) return {with_block(a, slice.start, values)};
  const auto places = [&] {
    return range(slice.count) * static_cast<double>(slice.step) + static_cast<double>(slice.start);
  };
  return {with_slices(a, slice.count, places, values)};
}

Values insert_tensor_rule(const InsertParams& p, const Values& in) {
  const Along a(in[0], p.axis);
  Value places = call(kPlaces, {literal_reshape(in.back(), Shape{-1})}, {{"size", a.size}});
  const Value values = ranked(a, value_of(p, a, in));
  const int64_t along = spec_of(values).shape[a.axis];
  if (spec_of(places).shape[0] == 1 && along != 1)  // one index for all values
    places = call(kNpBroadcastTo, {places}, {{"shape", AttrValue(Shape{along})}});
  return {with_slices(
      a, spec_of(places).shape[0], [&] { return places; }, values)};
}

// Parameters of the operator that counts insertion indices from the front.
struct InsertionPlacesParams {
  int64_t size;
  static void describe(ParamSchema<InsertionPlacesParams>& schema) {
    schema.field("size", &InsertionPlacesParams::size).at_least(0).doc("Size of the axis.");
  }
};

void run_places(const InsertionPlacesParams& p, const KernelArgs& a) {
  int64_t* places = a.out[0].as<int64_t>();
  kernels::read_indices(a.in[0], places);
  for (int64_t i = 0; i < a.out[0].size(); ++i) places[i] = checked_index(places[i], p.size, p.size);
}

template <typename Rule>
auto declare_insert(OpRegistry& ops, const char* name, const char* doc, bool takes_places, Rule rule) {
  auto op = ops.declare<InsertParams>(name);
  op.doc(doc)
      .input("arr", "array of any shape")
      .optional_input("values", "the values to insert; broadcast to slices of arr");
  if (takes_places) op.optional_input("obj", "vector of the indices before which values are inserted");
  op.num_inputs([takes_places](const InsertParams& p) { return 1 + int{!p.val} + int{takes_places}; })
      .output("out", "arr with the values, dtype of arr")
      .compose(rule);
  return op;
}

}  // namespace

void register_numpy_insertion(OpRegistry& ops) {
  ops.declare<PlaceParams>("_npi_delete")
      .doc("Deletes some slices of an axis.")
      .input("arr", "array of any shape")
      .output("out", "arr without the slices, dtype of arr")
      .compose(delete_rule)
      .sample({{3, 4}}, {{"int_ind", "-2"}, {"axis", "1"}})
      .sample({{3, 4}}, {{"start", "1"}, {"stop", "3"}})
      .sample({{2, 7}}, {{"start", "1"}, {"step", "2"}, {"axis", "1"}})
      .sample({{5}}, {{"start", "4"}, {"step", "-3"}});
  declare_insert(ops, "_npi_insert_scalar", "Inserts values before one slice of an axis.", false, insert_scalar_rule)
      .sample({{3, 4}}, {{"int_ind", "1"}, {"val", "1.5"}, {"axis", "1"}})
      .sample({{3}, {2}}, {{"int_ind", "-1"}})
      .sample({{3, 4}, {2, 3}}, {{"int_ind", "4"}, {"axis", "1"}});
  declare_insert(ops, "_npi_insert_slice", "Inserts values before the slices of an axis that a slice selects.", false,
                 insert_slice_rule)
      .sample({{3, 4}}, {{"start", "1"}, {"step", "2"}, {"val", "1.5"}, {"axis", "1"}})
      .sample({{3, 4}, {3, 2}}, {{"stop", "2"}, {"axis", "1"}});
  ops.declare<InsertionPlacesParams>("_insertion_places")
      .internal()
      .doc(
          "Indices between the slices of an axis, counted from the front; raises IndexError for an index out of range.")
      .input("obj", "any shape; integers of any dtype, negative ones count from the end")
      .output("places", "int64, shape of obj")
      .infer([](const InsertionPlacesParams&, InferContext& c) {
        c.set_out_dtype(0, DType::kInt64);
        c.set_out_shape(0, c.in_shape(0));
        c.set_in_shape(0, c.out_shape(0));
      })
      .cpu(run_places)
      .may_raise()
      .gradient(kNotDifferentiable)
      .sample({.inputs = {{4}}, .attrs = {{"size", "3"}}, .low = -3, .high = 3, .integer_valued = true});
  declare_insert(ops, "_npi_insert_tensor",
                 "Inserts values before the slices of an axis whose indices are in a vector.", true, insert_tensor_rule)
      .sample({.inputs = {{4}, {2}, {2}},
               .low = 0,
               .high = 3,
               .integer_valued = true,
               .check_gradient = false,
               .note = "indices have no gradient"});
}

}  // namespace hybridnet::ops
