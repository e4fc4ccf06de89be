// _contrib_MultiBoxDetection: boxes from the predictions of an SSD head.
//   Liu et al.: SSD: Single Shot MultiBox Detector, ECCV 2016.
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/index/stable_sort.h"
#include "ops/contrib/boxes.h"
#include "ops/cost.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct DetectionParams {
  bool clip, force_suppress;
  double threshold, nms_threshold;
  int32_t background_id, nms_topk;
  std::vector<double> variances;
  static void describe(ParamSchema<DetectionParams>& schema) {
    schema.field("clip", &DetectionParams::clip).default_value(true).doc("Whether boxes are clipped to the image.");
    schema.field("threshold", &DetectionParams::threshold)
        .default_value(0.01)
        .doc("Minimum probability of a detection.");
    schema.field("background_id", &DetectionParams::background_id)
        .default_value(0)
        .hidden()
        .doc("Without effect: class 0 is background.");
    schema.field("nms_threshold", &DetectionParams::nms_threshold)
        .default_value(0.5)
        .doc("A box is removed if it overlaps a better box by this or more; outside (0, 1]: no box is removed.");
    schema.field("force_suppress", &DetectionParams::force_suppress)
        .default_value(false)
        .doc("Whether a box is suppressed by boxes of other classes, too.");
    schema.field("nms_topk", &DetectionParams::nms_topk)
        .default_value(-1)
        .doc("Number of best boxes that are kept; not positive: all.");
    schema.field("variances", &DetectionParams::variances)
        .default_value(AttrValue::List{0.1, 0.1, 0.2, 0.2})
        .doc("Factors of the offsets of x, y, width and height.");
    schema.check([](const DetectionParams& p) { check_variances(p.variances); });
  }
};

void infer_detection(const DetectionParams&, InferContext& c) {
  c.unify_dtypes();
  require_ndim(c, 0, 3, "batch, classes, anchors");
  require_ndim(c, 1, 2, "batch, anchors * 4");
  require_ndim(c, 2, 3, "1, anchors, 4");
  Shape classes = Shape::unknown(3), anchor = classes;
  if (c.in_shape(0).rank_known()) classes = c.in_shape(0);
  if (c.in_shape(2).rank_known()) anchor = c.in_shape(2);
  const int64_t anchors = classes[2] != kUnknownDim ? classes[2] : anchor[1];
  c.set_in_shape(0, Shape({classes[0], classes[1], anchors}));
  c.set_in_shape(1, Shape({classes[0], anchors == kUnknownDim ? kUnknownDim : 4 * anchors}));
  c.set_in_shape(2, Shape({1, anchors, 4}));
  c.set_out_shape(0, Shape({classes[0], anchors, 6}));
}

template <typename A>
struct Detection {
  A id, score;
  Box<A> box;
};

template <typename T, typename A>
Box<A> decode(const DetectionParams& p, const T* anchor, const T* offset) {
  const Box<A> a = Box<A>::load(anchor, BoxFormat::kCorner);
  const A x = static_cast<A>(offset[0]) * static_cast<A>(p.variances[0]) * a.width() + (a.left + a.right) / 2;
  const A y = static_cast<A>(offset[1]) * static_cast<A>(p.variances[1]) * a.height() + (a.top + a.bottom) / 2;
  const A w = std::exp(static_cast<A>(offset[2]) * static_cast<A>(p.variances[2])) * a.width() / 2;
  const A h = std::exp(static_cast<A>(offset[3]) * static_cast<A>(p.variances[3])) * a.height() / 2;
  const auto cut = [&](A v) { return p.clip ? std::max(A(0), std::min(A(1), v)) : v; };
  return {cut(x - w), cut(y - h), cut(x + w), cut(y + h)};
}

// Finds the most probable class of every anchor except the background.
template <typename T, typename A>
Temporary<Detection<A>> detect(const DetectionParams& p, const T* probabilities, const T* offsets, const T* anchors,
                               int64_t classes, int64_t count) {
  Temporary<Detection<A>> found;
  for (int64_t i = 0; i < count; ++i) {
    A score = -1;
    int64_t id = 0;
    for (int64_t k = 1; k < classes; ++k) {
      const A probability = static_cast<A>(probabilities[k * count + i]);
      if (!(probability > score)) continue;
      score = probability;
      id = k;
    }
    if (id == 0 || score < static_cast<A>(p.threshold)) continue;
    found.push_back({static_cast<A>(id - 1), score, decode<T, A>(p, anchors + 4 * i, offsets + 4 * i)});
  }
  return found;
}

// Sets the id to -1 for all boxes but the best nms_topk, and for each box that overlaps a better one. All boxes stay in
// the output.
template <typename A>
void suppress(const DetectionParams& p, Temporary<Detection<A>>& found) {
  const Temporary<Detection<A>> unsorted = found;
  kernels::stable_sort(found, [](const auto& a, const auto& b) { return a.score > b.score; });
  size_t keep = found.size();
  if (p.nms_topk > 0 && static_cast<size_t>(p.nms_topk) < keep) keep = static_cast<size_t>(p.nms_topk);
  for (size_t i = keep; i < found.size(); ++i) {
    found[i] = unsorted[i];
    found[i].id = -1;
  }
  for (size_t i = 0; i < keep; ++i) {
    if (found[i].id < 0) continue;
    for (size_t j = i + 1; j < keep; ++j) {
      if (found[j].id < 0 || (!p.force_suppress && found[j].id != found[i].id)) continue;
      if (overlap(found[i].box, found[j].box) >= static_cast<A>(p.nms_threshold)) found[j].id = -1;
    }
  }
}

template <typename T>
void detections_of_one(const DetectionParams& p, const T* probabilities, const T* offsets, const T* anchors,
                       int64_t classes, int64_t count, T* out) {
  using A = accumulator_t<T>;
  std::fill_n(out, 6 * count, static_cast<T>(-1.0f));
  Temporary<Detection<A>> found = detect<T, A>(p, probabilities, offsets, anchors, classes, count);
  if (p.nms_threshold > 0 && p.nms_threshold <= 1) suppress(p, found);
  for (const Detection<A>& d : found) {
    const A numbers[6] = {d.id, d.score, d.box.left, d.box.top, d.box.right, d.box.bottom};
    for (A number : numbers) *out++ = static_cast<T>(number);
  }
}

void run_detection(const DetectionParams& p, const KernelArgs& a) {
  const Shape& s = *a.in[0].shape;
  const int64_t classes = s[1], count = s[2];
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(s[0], 5.0 * static_cast<double>(classes * count), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        detections_of_one(p, a.in[0].as<T>() + b * classes * count, a.in[1].as<T>() + b * 4 * count, a.in[2].as<T>(),
                          classes, count, a.out[0].as<T>() + b * 6 * count);
      }
    });
  });
}

}  // namespace

void register_multibox_detection(OpRegistry& ops) {
  Sample s;
  s.inputs = {{2, 3, 5}, {2, 20}, {1, 5, 4}};
  s.low = 0.0;
  s.high = 1.0;
  s.check_gradient = false;
  s.note = "gradients are zero by definition, as MXNet has them";
  Sample few = s;
  few.attrs = {
      {"nms_topk", "3"}, {"threshold", "0.3"}, {"force_suppress", "True"}, {"nms_threshold", "0.2"}, {"clip", "False"}};
  Sample all = s;
  all.attrs = {{"nms_threshold", "0"}};
  ops.declare<DetectionParams>("_contrib_MultiBoxDetection")
      .alias("_npx_multibox_detection")
      .doc(
          "Boxes of the most probable classes, sorted by falling probability; class -1 marks boxes that overlap a "
          "better box of their class and, at the end, unused rows. Gradients are zero.")
      .input("cls_prob", "(batch, classes, anchors); class 0 is background")
      .input("loc_pred", "(batch, anchors * 4): offsets from the anchors")
      .input("anchor", "(1, anchors, 4): left, top, right, bottom")
      .output("output", "(batch, anchors, 6): class - 1, probability, left, top, right, bottom")
      .infer(infer_detection)
      .cpu(run_detection, kFloating)
      .gradient([](const DetectionParams&, const GradientContext&) { return Values{}; }, Saves::nothing())
      .cost([](const DetectionParams&, auto in, auto out) {
        (void)out;
        return 500 + elements(in[0]) * 2 + length(in[0], 0) * length(in[0], 2) * (20 + length(in[0], 2) / 8);
      })
      .amp(AmpType::kFloat)
      .sample(s)
      .sample(few)
      .sample(all);
}

}  // namespace hybridnet::ops
