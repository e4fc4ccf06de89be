// _contrib_box_nms: non-maximum suppression, which keeps the box with the highest score of several that overlap.
#include <numeric>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/integers.h"
#include "kernels/index/stable_sort.h"
#include "kernels/memory/strided_copy.h"
#include "ops/contrib/boxes.h"
#include "ops/emit.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

const OpRef kSelect{"_box_nms_select"}, kBackward{"_backward_contrib_box_nms"};

struct BoxNmsParams {
  double overlap_thresh, valid_thresh;
  int32_t topk, coord_start, score_index, id_index, background_id;
  bool force_suppress;
  BoxFormat in_format, out_format;
  static void describe(ParamSchema<BoxNmsParams>& schema) {
    schema.field("overlap_thresh", &BoxNmsParams::overlap_thresh)
        .default_value(0.5)
        .doc("A box is removed if its intersection over union with a better box is larger.");
    schema.field("valid_thresh", &BoxNmsParams::valid_thresh)
        .default_value(0.0)
        .doc("Only boxes whose score is larger take part.");
    schema.field("topk", &BoxNmsParams::topk)
        .default_value(-1)
        .doc("Number of best boxes that take part; negative: all; 0: the output is data.");
    schema.field("coord_start", &BoxNmsParams::coord_start)
        .default_value(2)
        .at_least(0)
        .doc("Index of the first of the 4 coordinates of a box.");
    schema.field("score_index", &BoxNmsParams::score_index)
        .default_value(1)
        .at_least(0)
        .doc("Index of the score of a box.");
    schema.field("id_index", &BoxNmsParams::id_index)
        .default_value(-1)
        .doc("Index of the class of a box; negative: boxes have no class.");
    schema.field("background_id", &BoxNmsParams::background_id)
        .default_value(-1)
        .doc("Boxes of this class do not take part.");
    schema.field("force_suppress", &BoxNmsParams::force_suppress)
        .default_value(false)
        .doc("Whether a box is suppressed by boxes of other classes, too.");
    box_format_field(schema, "in_format", &BoxNmsParams::in_format)
        .default_value("corner")
        .doc("Coordinates of data: corner (left, top, right, bottom) or center (x, y, width, height).");
    box_format_field(schema, "out_format", &BoxNmsParams::out_format)
        .default_value("corner")
        .doc("Coordinates of the output.");
  }
};

// Parameters of the operators that move kept boxes to their output rows, and gradients back.
struct SelectParams {
  int32_t coord_start;
  BoxFormat in_format, out_format;
  static void describe(ParamSchema<SelectParams>& schema) {
    schema.field("coord_start", &SelectParams::coord_start)
        .default_value(2)
        .at_least(0)
        .doc("Same as in _contrib_box_nms.");
    box_format_field(schema, "in_format", &SelectParams::in_format)
        .default_value("corner")
        .doc("Same as in _contrib_box_nms.");
    box_format_field(schema, "out_format", &SelectParams::out_format)
        .default_value("corner")
        .doc("Same as in _contrib_box_nms.");
  }
};

void check_columns(const BoxNmsParams& p, int64_t width) {
  const auto complain = [&](const char* field, int64_t value, const char* because) {
    throw ParamError({.input = field,
                      .expected = "a column in [0, " + std::to_string(width - 1) + "] of its own",
                      .given = std::to_string(value),
                      .because = because});
  };
  const auto among_coordinates = [&](int32_t i) { return i >= p.coord_start && i < p.coord_start + 4; };
  if (p.coord_start >= width - 3) complain("coord_start", p.coord_start, "4 columns hold the coordinates");
  if (p.score_index >= width) complain("score_index", p.score_index, "a box has that many numbers");
  if (among_coordinates(p.score_index)) complain("score_index", p.score_index, "the coordinates stand there");
  if (p.id_index >= width) complain("id_index", p.id_index, "a box has that many numbers");
  if (p.id_index >= 0 && among_coordinates(p.id_index)) complain("id_index", p.id_index, "the coordinates stand there");
  if (p.id_index == p.score_index) complain("id_index", p.id_index, "the score stands there");
}

void infer_box_nms(const BoxNmsParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  c.set_out_dtype(1, DType::kInt64);
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) return;
  if (data.ndim() < 2) {
    throw ShapeError(
        {.input = "data", .expected = "at least 2 dimensions: boxes and the numbers of a box", .given = data.str()});
  }
  if (data[data.ndim() - 1] != kUnknownDim) check_columns(p, data[data.ndim() - 1]);
  Shape record = data;
  record[data.ndim() - 1] = 1;
  c.set_out_shape(1, record);
}

struct Batches {
  int64_t count, boxes, width;
  explicit Batches(const Shape& s) : count(s.size(0, s.ndim() - 2)), boxes(s[s.ndim() - 2]), width(s[s.ndim() - 1]) {}
};

template <typename A>
struct Candidate {
  Box<A> box;
  A area, score;
  int64_t row, id;
  bool kept;
};

// Returns the boxes that take part, sorted from best to worst; equal scores keep the order of data.
template <typename T, typename A>
Temporary<Candidate<A>> candidates(const BoxNmsParams& p, const T* data, const Batches& s) {
  Temporary<Candidate<A>> found;
  for (int64_t row = 0; row < s.boxes; ++row) {
    const T* one = data + row * s.width;
    const A score = static_cast<A>(one[p.score_index]);
    if (!(score > static_cast<A>(p.valid_thresh))) continue;
    const A id = p.id_index >= 0 ? static_cast<A>(one[p.id_index]) : A(0);
    if (p.id_index >= 0 && id == static_cast<A>(p.background_id)) continue;
    const Box<A> box = Box<A>::load(one + p.coord_start, p.in_format);
    found.push_back({box, box.area(), score, row, kernels::to_integer(static_cast<double>(id)), true});
  }
  kernels::stable_sort(found, [](const auto& a, const auto& b) { return a.score > b.score; });
  if (p.topk >= 0 && static_cast<int64_t>(found.size()) > p.topk) found.resize(static_cast<size_t>(p.topk));
  return found;
}

template <typename A>
void suppress(const BoxNmsParams& p, Temporary<Candidate<A>>& found) {
  const bool any_class = p.force_suppress || p.id_index < 0;
  const A limit = static_cast<A>(p.overlap_thresh);
  for (size_t i = 0; i < found.size(); ++i) {
    const Candidate<A>& best = found[i];
    if (!best.kept) continue;
    for (size_t j = i + 1; j < found.size(); ++j) {
      Candidate<A>& other = found[j];
      if (!other.kept || (!any_class && other.id != best.id)) continue;
      const A common = intersection(best.box, other.box);
      if (common / (best.area + other.area - common) > limit) other.kept = false;
    }
  }
}

template <typename A, typename T>
void change_format(T* box, BoxFormat from, BoxFormat to) {
  if (from == to) return;
  const A a = static_cast<A>(box[0]), b = static_cast<A>(box[1]), c = static_cast<A>(box[2]),
          d = static_cast<A>(box[3]);
  const bool center = to == BoxFormat::kCenter;
  box[0] = static_cast<T>(center ? (a + c) / 2 : a - c / 2);
  box[1] = static_cast<T>(center ? (b + d) / 2 : b - d / 2);
  box[2] = static_cast<T>(center ? c - a : a + c / 2);
  box[3] = static_cast<T>(center ? d - b : b + d / 2);
}

// The adjoint of change_format.
template <typename A, typename T>
void change_gradient(T* box, BoxFormat from, BoxFormat to) {
  if (from == to) return;
  const A a = static_cast<A>(box[0]), b = static_cast<A>(box[1]), c = static_cast<A>(box[2]),
          d = static_cast<A>(box[3]);
  const bool center = to == BoxFormat::kCenter;
  box[0] = static_cast<T>(center ? a / 2 - c : a + c);
  box[1] = static_cast<T>(center ? b / 2 - d : b + d);
  box[2] = static_cast<T>(center ? a / 2 + c : (c - a) / 2);
  box[3] = static_cast<T>(center ? b / 2 + d : (d - b) / 2);
}

template <typename T>
void nms_of_one(const BoxNmsParams& p, const Batches& s, const T* data, T* out, int64_t* record) {
  using A = accumulator_t<T>;
  std::fill_n(out, s.boxes * s.width, static_cast<T>(-1.0f));
  std::fill_n(record, s.boxes, int64_t{-1});
  Temporary<Candidate<A>> found = candidates<T, A>(p, data, s);
  suppress(p, found);
  for (const Candidate<A>& one : found) {
    if (!one.kept) continue;
    std::copy_n(data + one.row * s.width, s.width, out);
    change_format<A>(out + p.coord_start, p.in_format, p.out_format);
    *record++ = one.row;
    out += s.width;
  }
}

void run_box_nms(const BoxNmsParams& p, const KernelArgs& a) {
  const Batches s(*a.in[0].shape);
  int64_t* record = a.out[1].as<int64_t>();
  if (p.topk == 0) {
    kernels::copy_bytes(a.in[0].data, a.out[0].data, a.in[0].size() * dtype_size(a.in[0].dtype));
    for (int64_t b = 0; b < s.count; ++b) std::iota(record + b * s.boxes, record + (b + 1) * s.boxes, int64_t{0});
    return;
  }
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const int64_t step = s.boxes * s.width;
    parallel_for(s.count, 10.0 * static_cast<double>(s.boxes), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        nms_of_one(p, s, a.in[0].as<T>() + b * step, a.out[0].as<T>() + b * step, record + b * s.boxes);
    });
  });
}

void infer_select(const SelectParams&, InferContext& c) {
  c.unify_dtypes({0}, {0});
  c.set_in_dtype(1, DType::kInt64);
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  Shape record = c.in_shape(0);
  if (record.rank_known() && record.ndim() >= 2) record[record.ndim() - 1] = 1;
  c.set_in_shape(1, record);
}

// Zeroes the output and calls f(box of input 0, box of the output) for each kept box. Forward: a kept box moves to the
// row of its record; backward: from that row to the box named by the record.
template <typename Change>
void move_boxes(const KernelArgs& a, bool forward, Change&& change) {
  const Batches s(*a.in[0].shape);
  const int64_t* record = a.in[1].as<int64_t>();
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* in = a.in[0].as<T>();
    T* out = a.out[0].as<T>();
    std::fill_n(out, a.out[0].size(), static_cast<T>(0.0f));
    for (int64_t i = 0; i < s.count * s.boxes; ++i) {
      if (record[i] < 0 || record[i] >= s.boxes) continue;
      const int64_t named = i / s.boxes * s.boxes + record[i];
      T* to = out + (forward ? i : named) * s.width;
      std::copy_n(in + (forward ? named : i) * s.width, s.width, to);
      change(to);
    }
  });
}

void run_select(const SelectParams& p, const KernelArgs& a) {
  if (p.in_format == p.out_format) return move_boxes(a, true, [](auto*) {});
  move_boxes(a, true, [&]<typename T>(T* box) {
    change_format<accumulator_t<T>>(box + p.coord_start, p.in_format, p.out_format);
  });
}

void run_backward(const SelectParams& p, const KernelArgs& a) {
  if (p.in_format == p.out_format) return move_boxes(a, false, [](auto*) {});
  move_boxes(a, false, [&]<typename T>(T* box) {
    change_gradient<accumulator_t<T>>(box + p.coord_start, p.in_format, p.out_format);
  });
}

Values through(const OpRef& op, const SelectParams& p, const Value& gradient, const Value& record) {
  if (!gradient) return {};
  return {call(op, {gradient, record}, ParamSchema<SelectParams>::box(p)), Value{}};
}

Sample boxes_sample(Shape data, std::vector<std::pair<std::string, std::string>> attrs) {
  Sample s;
  s.inputs = {std::move(data)};
  s.attrs = std::move(attrs);
  s.low = 0.1;
  s.high = 1.0;
  return s;
}

void register_moves(OpRegistry& ops) {
  Sample moved;
  moved.inputs = {{2, 2, 6}, {2, 2, 1}};
  moved.dtypes = {DType::kUnknown, DType::kInt64};
  moved.low = 0.0;
  moved.high = 0.9;
  moved.note = "one box of each batch is kept twice";
  moved.check_gradient = false;
  Sample changed = moved;
  changed.attrs = {{"coord_start", "1"}, {"in_format", "center"}};
  ops.declare<SelectParams>("_box_nms_select")
      .doc("Moves boxes to the rows where _contrib_box_nms put them: the output as a linear map of data.")
      .input("data", "shape (..., boxes, numbers of a box)")
      .input("record", "(..., boxes, 1) int64: index of the box in this row, -1: none")
      .output("output", "shape of data")
      .infer(infer_select)
      .cpu(run_select, kFloating)
      .gradient([](const SelectParams& p,
                   const GradientContext& g) { return through(kBackward, p, g.output_grad(0), g.input(1)); },
                Saves::of({1}))
      .internal()
      .sample(moved)
      .sample(changed);
  ops.declare<SelectParams>("_backward_contrib_box_nms")
      .doc("Gradient of _contrib_box_nms: moves the gradients of kept boxes back; 0 for the others.")
      .input("output_grad", "shape (..., boxes, numbers of a box)")
      .input("record", "(..., boxes, 1) int64: index of the box in this row, -1: none")
      .output("output", "shape of output_grad")
      .infer(infer_select)
      .cpu(run_backward, kFloating)
      .gradient([](const SelectParams& p,
                   const GradientContext& g) { return through(kSelect, p, g.output_grad(0), g.input(1)); },
                Saves::of({1}))
      .internal()
      .sample(moved)
      .sample(changed);
}

}  // namespace

void register_box_nms(OpRegistry& ops) {
  ops.declare<BoxNmsParams>("_contrib_box_nms")
      .alias("_contrib_box_non_maximum_suppression")
      .doc(
          "Non-maximum suppression: boxes sorted by falling score, without those that overlap a better one of their "
          "class; the rows left over at the end are filled with -1. Gradients flow to the kept boxes.")
      .input("data", "shape (..., boxes, numbers of a box): coordinates, score, class and anything else")
      .output("output", "shape of data")
      .output("record", "(..., boxes, 1) int64: index of the box in this row, -1: none")
      .visible_outputs(1)
      .infer(infer_box_nms)
      .cpu(run_box_nms, kFloating)
      .gradient(
          [](const BoxNmsParams& p, const GradientContext& g) {
            return through(kBackward, {p.coord_start, p.in_format, p.out_format}, g.output_grad(0), g.output(1));
          },
          Saves::of({}, {1}))
      .cost([](const BoxNmsParams&, auto in, auto out) {
        (void)out;
        const Batches s(in[0].shape);
        return 300 + static_cast<double>(s.count * s.boxes) * (20 + static_cast<double>(s.boxes) / 8);
      })
      .amp(AmpType::kWidest)
      .output_names(OutputNames::kNumberedSeveral)
      .sample(boxes_sample({6, 6}, {{"overlap_thresh", "0.3"}}))
      .sample(
          boxes_sample({2, 5, 6}, {{"id_index", "0"}, {"valid_thresh", "0.3"}, {"topk", "3"}, {"in_format", "center"}}))
      .sample(boxes_sample(
          {2, 5, 5}, {{"score_index", "0"}, {"coord_start", "1"}, {"out_format", "center"}, {"overlap_thresh", "0.1"}}))
      .sample(boxes_sample({3, 6}, {{"topk", "0"}}));
  register_moves(ops);
}

}  // namespace hybridnet::ops
