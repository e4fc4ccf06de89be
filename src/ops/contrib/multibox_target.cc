// _contrib_MultiBoxTarget: the training targets of an SSD head for every anchor.
//   Liu et al.: SSD: Single Shot MultiBox Detector, ECCV 2016, section 2.2: matching strategy, hard negative mining.
#include <numeric>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/integers.h"
#include "kernels/index/stable_sort.h"
#include "ops/contrib/boxes.h"
#include "ops/cost.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct TargetParams {
  double overlap_threshold, ignore_label, negative_mining_ratio, negative_mining_thresh;
  int32_t minimum_negative_samples;
  std::vector<double> variances;
  static void describe(ParamSchema<TargetParams>& schema) {
    schema.field("overlap_threshold", &TargetParams::overlap_threshold)
        .default_value(0.5)
        .doc(
            "An anchor whose overlap with an object is larger is positive; not positive: only the best anchor of each "
            "object is.");
    schema.field("ignore_label", &TargetParams::ignore_label)
        .default_value(-1.0)
        .doc("Class target of ignored anchors.");
    schema.field("negative_mining_ratio", &TargetParams::negative_mining_ratio)
        .default_value(-1.0)
        .doc(
            "Negative anchors per positive one, chosen by the lowest background probability; not positive: all are "
            "negative.");
    schema.field("negative_mining_thresh", &TargetParams::negative_mining_thresh)
        .default_value(0.5)
        .doc("Only anchors whose overlap with every object is smaller are mined.");
    schema.field("minimum_negative_samples", &TargetParams::minimum_negative_samples)
        .default_value(0)
        .hidden()
        .doc("Without effect; MXNet ignores it, too.");
    schema.field("variances", &TargetParams::variances)
        .default_value(AttrValue::List{0.1, 0.1, 0.2, 0.2})
        .doc("Divisors of the offsets of x, y, width and height.");
    schema.check([](const TargetParams& p) {
      check_variances(p.variances);
      if (p.negative_mining_ratio > 0 && !(p.negative_mining_thresh > 0)) {
        throw ParamError({.input = "negative_mining_thresh",
                          .expected = "a positive number",
                          .given = AttrValue(p.negative_mining_thresh).str(),
                          .because = "negative_mining_ratio asks for mining"});
      }
    });
  }
};

void infer_target(const TargetParams&, InferContext& c) {
  c.unify_dtypes();
  require_ndim(c, 0, 3, "1, anchors, 4");
  require_ndim(c, 1, 3, "batch, objects, numbers of an object");
  require_ndim(c, 2, 3, "batch, classes, anchors");
  require_axis_size(c, 0, 0, 1, "all examples share the anchors");
  require_axis_size(c, 0, 2, 4, "a box has 4 coordinates");
  const auto known = [](int64_t a, int64_t b) { return a != kUnknownDim ? a : b; };
  Shape anchor = Shape::unknown(3), label = anchor, classes = anchor;
  if (c.in_shape(0).rank_known()) anchor = c.in_shape(0);
  if (c.in_shape(1).rank_known()) label = c.in_shape(1);
  if (c.in_shape(2).rank_known()) classes = c.in_shape(2);
  if (label[2] != kUnknownDim && label[2] < 5) {
    throw ShapeError({.input = "label",
                      .expected = "at least 5 numbers per object: class, left, top, right, bottom",
                      .given = "shape " + label.str()});
  }
  if (classes[1] == 0)
    throw ShapeError(
        {.input = "cls_pred", .expected = "at least the background class", .given = "shape " + classes.str()});
  const int64_t anchors = known(anchor[1], classes[2]), batch = known(label[0], classes[0]);
  c.set_in_shape(0, Shape({1, anchors, 4}));
  c.set_in_shape(1, Shape({batch, label[1], label[2]}));
  c.set_in_shape(2, Shape({batch, classes[1], anchors}));
  const int64_t numbers = anchors == kUnknownDim ? kUnknownDim : 4 * anchors;
  c.set_out_shape(0, Shape({batch, numbers}));
  c.set_out_shape(1, Shape({batch, numbers}));
  c.set_out_shape(2, Shape({batch, anchors}));
}

enum class Verdict : int8_t { kIgnored, kNegative, kPositive };

// The decisions about the anchors of one example.
struct Matching {
  Temporary<float> overlaps;    // (anchors, objects)
  Temporary<Verdict> verdicts;  // per anchor
  Temporary<int64_t> objects;   // per anchor: index of its object
  int64_t anchors, count;       // count: number of objects
  int64_t positives = 0;
  Matching(int64_t anchors, int64_t count)
      : overlaps(static_cast<size_t>(anchors * count)),
        verdicts(static_cast<size_t>(anchors), Verdict::kIgnored),
        objects(static_cast<size_t>(anchors), -1),
        anchors(anchors),
        count(count) {}
  const float* row(int64_t anchor) const { return overlaps.data() + anchor * count; }
  Verdict& verdict(int64_t anchor) { return verdicts[static_cast<size_t>(anchor)]; }
  void accept(int64_t anchor, int64_t object) {
    verdict(anchor) = Verdict::kPositive;
    objects[static_cast<size_t>(anchor)] = object;
    ++positives;
  }
};

// Matches each object with the free anchor that overlaps it most, the best pair of all first.
void match_objects(Matching& m) {
  Temporary<bool> served(static_cast<size_t>(m.count), false);
  for (int64_t round = 0; round < m.count; ++round) {
    int64_t best_anchor = -1, best_object = -1;
    float best = 1e-6f;
    for (int64_t j = 0; j < m.anchors; ++j) {
      if (m.verdict(j) == Verdict::kPositive) continue;
      for (int64_t k = 0; k < m.count; ++k) {
        if (served[static_cast<size_t>(k)] || !(m.row(j)[k] > best)) continue;
        best = m.row(j)[k];
        best_anchor = j;
        best_object = k;
      }
    }
    if (best_anchor < 0) return;
    m.accept(best_anchor, best_object);
    served[static_cast<size_t>(best_object)] = true;
  }
}

void match_anchors(Matching& m, float threshold) {
  for (int64_t j = 0; j < m.anchors; ++j) {
    if (m.verdict(j) == Verdict::kPositive) continue;
    const float* best = std::max_element(m.row(j), m.row(j) + m.count);
    if (*best > threshold) m.accept(j, best - m.row(j));
  }
}

// Softmax probability of the background class for anchor j.
template <typename T>
double background_probability(const T* predictions, int64_t classes, int64_t anchors, int64_t j) {
  using A = accumulator_t<T>;
  A largest = static_cast<A>(predictions[j]), total = 0;
  for (int64_t k = 1; k < classes; ++k) largest = std::max(largest, static_cast<A>(predictions[k * anchors + j]));
  for (int64_t k = 0; k < classes; ++k) total += std::exp(static_cast<A>(predictions[k * anchors + j]) - largest);
  return static_cast<double>(std::exp(static_cast<A>(predictions[j]) - largest) / total);
}

template <typename T>
void mine_negatives(const TargetParams& p, Matching& m, const T* predictions, int64_t classes) {
  const double wanted = static_cast<double>(m.positives) * p.negative_mining_ratio;
  Temporary<std::pair<double, int64_t>> found;  // background probability, anchor
  for (int64_t j = 0; j < m.anchors; ++j) {
    if (m.verdict(j) == Verdict::kPositive) continue;
    if (*std::max_element(m.row(j), m.row(j) + m.count) >= static_cast<float>(p.negative_mining_thresh)) continue;
    const double background = background_probability(predictions, classes, m.anchors, j);
    if (background == background) found.emplace_back(background, j);
  }
  kernels::stable_sort(found, [](const auto& a, const auto& b) { return a.first < b.first; });
  const size_t take = std::min<size_t>(found.size(), std::max<int64_t>(kernels::to_integer(wanted), 0));
  for (size_t i = 0; i < take; ++i) m.verdict(found[i].second) = Verdict::kNegative;
}

template <typename T, typename A>
void encode_offset(const TargetParams& p, const T* anchor, const T* object, T* out) {
  const Box<A> a = Box<A>::load(anchor, BoxFormat::kCorner), g = Box<A>::load(object, BoxFormat::kCorner);
  const A offsets[4] = {((g.left + g.right) - (a.left + a.right)) / 2 / a.width(),
                        ((g.top + g.bottom) - (a.top + a.bottom)) / 2 / a.height(), std::log(g.width() / a.width()),
                        std::log(g.height() / a.height())};
  for (size_t k = 0; k < 4; ++k) out[k] = static_cast<T>(offsets[k] / static_cast<A>(p.variances[k]));
}

template <typename T>
struct Example {
  const T *anchors, *labels, *predictions;
  T *loc_target, *loc_mask, *cls_target;
  int64_t num_anchors, num_labels, label_width, num_classes;

  // The number of objects: they come first, and class -1 ends them.
  int64_t objects() const {
    int64_t n = 0;
    while (n < num_labels && static_cast<float>(labels[n * label_width]) != -1.0f) ++n;
    return n;
  }

  void run(const TargetParams& p) const {
    using A = accumulator_t<T>;
    std::fill_n(loc_target, 4 * num_anchors, static_cast<T>(0.0f));
    std::fill_n(loc_mask, 4 * num_anchors, static_cast<T>(0.0f));
    std::fill_n(cls_target, num_anchors, static_cast<T>(static_cast<A>(p.ignore_label)));
    Matching m(num_anchors, objects());
    if (m.count == 0) return;
    for (int64_t j = 0; j < num_anchors; ++j) {
      const Box<A> anchor = Box<A>::load(anchors + 4 * j, BoxFormat::kCorner);
      for (int64_t k = 0; k < m.count; ++k) {
        const Box<A> object = Box<A>::load(labels + k * label_width + 1, BoxFormat::kCorner);
        m.overlaps[static_cast<size_t>(j * m.count + k)] = static_cast<float>(overlap(anchor, object));
      }
    }
    match_objects(m);
    if (p.overlap_threshold > 0) match_anchors(m, static_cast<float>(p.overlap_threshold));
    if (p.negative_mining_ratio > 0) {
      mine_negatives(p, m, predictions, num_classes);
    } else {
      for (Verdict& v : m.verdicts) v = v == Verdict::kPositive ? v : Verdict::kNegative;
    }
    write(p, m);
  }

  void write(const TargetParams& p, Matching& m) const {
    using A = accumulator_t<T>;
    for (int64_t j = 0; j < num_anchors; ++j) {
      if (m.verdict(j) == Verdict::kNegative) cls_target[j] = static_cast<T>(0.0f);
      if (m.verdict(j) != Verdict::kPositive) continue;
      const T* object = labels + m.objects[static_cast<size_t>(j)] * label_width;
      cls_target[j] = static_cast<T>(static_cast<A>(object[0]) + A(1));  // 0 is background
      std::fill_n(loc_mask + 4 * j, 4, static_cast<T>(1.0f));
      encode_offset<T, A>(p, anchors + 4 * j, object + 1, loc_target + 4 * j);
    }
  }
};

void run_target(const TargetParams& p, const KernelArgs& a) {
  const Shape &label = *a.in[1].shape, &classes = *a.in[2].shape;
  const int64_t anchors = classes[2];
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(label[0], 20.0 * static_cast<double>(anchors * label[1]), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        Example<T>{a.in[0].as<T>(),
                   a.in[1].as<T>() + b * label[1] * label[2],
                   a.in[2].as<T>() + b * classes[1] * anchors,
                   a.out[0].as<T>() + b * 4 * anchors,
                   a.out[1].as<T>() + b * 4 * anchors,
                   a.out[2].as<T>() + b * anchors,
                   anchors,
                   label[1],
                   label[2],
                   classes[1]}
            .run(p);
      }
    });
  });
}

}  // namespace

void register_multibox_target(OpRegistry& ops) {
  Sample s;
  s.inputs = {{1, 5, 4}, {2, 2, 5}, {2, 3, 5}};
  s.low = 0.0;
  s.high = 1.0;
  s.check_gradient = false;
  s.note = "gradients are zero by definition: outputs are training targets";
  Sample mined = s;
  mined.attrs = {{"negative_mining_ratio", "3"},
                 {"overlap_threshold", "0.1"},
                 {"ignore_label", "-2"},
                 {"variances", "(1, 1, 1, 1)"}};
  ops.declare<TargetParams>("_contrib_MultiBoxTarget")
      .alias("_npx_multibox_target")
      .doc(
          "Training targets of anchors: every object is matched with the anchor that overlaps it most, then every "
          "anchor with an object that it overlaps enough; the others are background. Gradients are zero.")
      .input("anchor", "(1, anchors, 4): left, top, right, bottom")
      .input("label",
             "(batch, objects, 5 or more): class, left, top, right, bottom; class -1 ends the objects of an example")
      .input("cls_pred", "(batch, classes, anchors): scores, class 0 is background; for mining")
      .output("loc_target", "(batch, anchors * 4): offsets from the anchors")
      .output("loc_mask", "(batch, anchors * 4): 1 for positive anchors")
      .output("cls_target", "(batch, anchors): class + 1, 0 for background, ignore_label for ignored anchors")
      .infer(infer_target)
      .cpu(run_target, kFloating)
      .gradient([](const TargetParams&, const GradientContext&) { return Values{}; }, Saves::nothing())
      .cost([](const TargetParams&, auto in, auto out) {
        (void)out;
        return 500 + length(in[1], 0) * length(in[2], 2) * (length(in[1], 1) + 1) * 5;
      })
      .amp(AmpType::kFloat)
      .sample(s)
      .sample(mined);
}

}  // namespace hybridnet::ops
