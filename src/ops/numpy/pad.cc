// _npi_pad: pads arrays with constants or with values of the array, for any rank and width.
#include <algorithm>
#include <charconv>
#include <vector>

#include "hybridnet/declare.h"
#include "ops/numpy/promote.h"

namespace hybridnet::ops {
namespace {

const OpRef kPad{"Pad"}, kSliceAxis{"slice_axis"}, kReverse{"reverse"}, kMax{"max"}, kMin{"min"},
    kBroadcastAxis{"broadcast_axis"};

enum class Mode : int32_t { kConstant, kEdge, kReflect, kSymmetric, kWrap, kMaximum, kMinimum };

struct NumpyPadParams {
  std::string pad_width;
  Mode mode;
  double constant_value;
  std::string reflect_type;
  static void describe(ParamSchema<NumpyPadParams>& schema) {
    schema.field("pad_width", &NumpyPadParams::pad_width)
        .doc("((before, after), ...), a pair per axis; one pair, or one number, serves all axes.");
    schema.field("mode", &NumpyPadParams::mode)
        .choice("constant", Mode::kConstant)
        .choice("edge", Mode::kEdge)
        .choice("reflect", Mode::kReflect)
        .choice("symmetric", Mode::kSymmetric)
        .choice("wrap", Mode::kWrap)
        .choice("maximum", Mode::kMaximum)
        .choice("minimum", Mode::kMinimum)
        .default_value("constant")
        .doc(
            "The padding values: constant_value; the nearest element; the array mirrored at its last elements "
            "(reflect) or after them (symmetric), or repeated (wrap); an extreme along the axis.");
    schema.field("constant_value", &NumpyPadParams::constant_value).default_value(0.0).doc("Value in mode constant.");
    schema.field("reflect_type", &NumpyPadParams::reflect_type)
        .default_value("even")
        .one_of({"even"})
        .doc("Kind of mirroring; only the plain kind is supported.");
  }
};

[[noreturn]] void wrong_width(const std::string& given, int ndim) {
  throw ParamError({.input = "pad_width",
                    .expected = "a number, a pair, or a pair for each of " + std::to_string(ndim) +
                                " axes, of integers that are not negative",
                    .given = given});
}

// Parses the numbers in the text; brackets are ignored.
std::vector<int64_t> numbers_in(const std::string& text, int ndim) {
  std::vector<int64_t> found;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    int64_t number = 0;
    if (std::string_view("()[], ").find(*at) != std::string_view::npos) {
      ++at;
      continue;
    }
    const auto [next, problem] = std::from_chars(at, end, number);
    if (problem != std::errc() || number < 0) wrong_width(text, ndim);
    found.push_back(number);
    at = next;
  }
  return found;
}

// (before, after) of every axis in turn.
std::vector<int64_t> widths(const NumpyPadParams& p, int ndim) {
  std::vector<int64_t> given = numbers_in(p.pad_width, ndim);
  const auto all = static_cast<size_t>(2 * ndim);
  if (given.size() == 1) given.push_back(given[0]);
  if (given.size() == 2)
    while (given.size() < all) given.insert(given.end(), {given[0], given[1]});
  if (ndim == 0) return {};
  if (given.size() != all) wrong_width(p.pad_width, ndim);
  return given;
}

Value part(const Value& a, int axis, int64_t begin, int64_t end) {
  return call(kSliceAxis, {a}, {{"axis", axis}, {"begin", begin}, {"end", end}});
}

Value times(const Value& one, int axis, int64_t count) {
  return call(kBroadcastAxis, {one}, {{"axis", axis}, {"size", count}});
}

Value mirrored(const Value& a, int axis) { return call(kReverse, {a}, {{"axis", axis}}); }

int64_t size_along(const Value& a, int axis) { return spec_of(a).shape[axis]; }

// The values before (or after) the array: its part next to the border, mirrored, or its opposite end.
Value continuation(const Value& a, int axis, Mode mode, int64_t width, bool before) {
  const int64_t size = size_along(a, axis), skip = mode == Mode::kReflect ? 1 : 0;
  if (mode == Mode::kWrap) return before ? part(a, axis, size - width, size) : part(a, axis, 0, width);
  return mirrored(before ? part(a, axis, skip, skip + width) : part(a, axis, size - skip - width, size - skip), axis);
}

Value continued(const Value& a, int axis, Mode mode, int64_t before, int64_t after) {
  Values parts{a};
  if (before > 0) parts.insert(parts.begin(), continuation(a, axis, mode, before, true));
  if (after > 0) parts.push_back(continuation(a, axis, mode, after, false));
  return concat(parts, axis);
}

// Padding wider than the array extends the array by a whole continuation on both sides; the borders of the extended
// array are again mirrors, or ends of a period.
Value extended(const Value& a, int axis, Mode mode, int64_t before, int64_t after) {
  const int64_t size = size_along(a, axis), room = mode == Mode::kReflect ? size - 1 : size;
  if (before <= room && after <= room) return continued(a, axis, mode, before, after);
  const int64_t lead = std::max<int64_t>(before - room, 0), trail = std::max<int64_t>(after - room, 0);
  const Value longer = extended(continued(a, axis, mode, room, room), axis, mode, lead, trail);
  const int64_t begin = room + lead - before;
  return part(longer, axis, begin, begin + before + size + after);
}

Value statistic(const Value& a, int axis, Mode mode) {
  const OpRef& op = mode == Mode::kMaximum ? kMax : kMin;
  const DType dtype = spec_of(a).dtype;
  return cast(call(op, {cast(a, arithmetic(dtype))}, {{"axis", axis}, {"keepdims", true}}), dtype);
}

// Repeats the edge element or the extreme over the width of the padding on each side.
Value bordered(const Value& a, int axis, Mode mode, int64_t before, int64_t after) {
  const int64_t size = size_along(a, axis);
  const bool edge = mode == Mode::kEdge;
  const Value same = edge ? Value{} : statistic(a, axis, mode);
  Values parts;
  if (before > 0) parts.push_back(times(edge ? part(a, axis, 0, 1) : same, axis, before));
  parts.push_back(a);
  if (after > 0) parts.push_back(times(edge ? part(a, axis, size - 1, size) : same, axis, after));
  return concat(parts, axis);
}

Value padded_axis(const Value& a, int axis, Mode mode, int64_t before, int64_t after) {
  if (before == 0 && after == 0) return a;
  const int64_t size = size_along(a, axis);
  if (size == 0)
    throw ShapeError(
        {.input = "data",
         .expected = "a size above 0 in axis " + std::to_string(axis) + ", for the frame is taken from the data",
         .given = spec_of(a).shape.str(),
         .fix = "use mode='constant'"});
  if (mode == Mode::kReflect && size == 1) mode = Mode::kEdge;  // the mirror image of one element is the element
  if (mode == Mode::kEdge || mode >= Mode::kMaximum) return bordered(a, axis, mode, before, after);
  return extended(a, axis, mode, before, after);
}

Values pad_rule(const NumpyPadParams& p, const Values& in) {
  const int ndim = spec_of(in[0]).shape.ndim();
  const std::vector<int64_t> width = widths(p, ndim);
  if (std::all_of(width.begin(), width.end(), [](int64_t w) { return w == 0; })) return {in[0]};
  if (p.mode == Mode::kConstant) {
    Tuple all = Tuple::scalar();
    for (const int64_t w : width) all.push_back(w);
    return {call(kPad, {in[0]},
                 {{"mode", "constant"}, {"pad_width", AttrValue(all)}, {"constant_value", p.constant_value}})};
  }
  Value a = in[0];
  for (int axis = 0; axis < ndim; ++axis) {
    const auto at = static_cast<size_t>(2 * axis);
    a = padded_axis(a, axis, p.mode, width[at], width[at + 1]);
  }
  return {a};
}

}  // namespace

void register_numpy_pad(OpRegistry& ops) {
  auto op = ops.declare<NumpyPadParams>("_npi_pad");
  op.doc("Pads data with values around its edges.")
      .input("data", "any shape, any dtype")
      .names_its_input()
      .output("out", "sizes of data plus the widths of the padding")
      .compose(pad_rule)
      .sample({{2, 3}}, {{"pad_width", "((1, 2), (0, 3))"}, {"constant_value", "1.5"}})
      .sample({{3}}, {{"pad_width", "((7, 4),)"}, {"mode", "reflect"}})
      .sample({{3, 1}}, {{"pad_width", "((4, 8), (2, 0))"}, {"mode", "symmetric"}})
      .sample({{3, 2}}, {{"pad_width", "((1, 2), (5, 0))"}, {"mode", "wrap"}});
  for (const char* mode : {"edge", "maximum", "minimum"})
    op.sample({{3, 2}}, {{"pad_width", "((1, 2), (3, 0))"}, {"mode", mode}});
}

}  // namespace hybridnet::ops
