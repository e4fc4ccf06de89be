// _contrib_Proposal and _contrib_MultiProposal: regions that may contain objects, from scores and offsets of anchors.
//   Ren et al.: Faster R-CNN, NIPS 2015, section 3.
#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/integers.h"
#include "kernels/index/stable_sort.h"
#include "ops/contrib/boxes.h"
#include "ops/cost.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct ProposalParams {
  int32_t rpn_pre_nms_top_n, rpn_post_nms_top_n, rpn_min_size, feature_stride;
  double threshold;
  std::vector<double> scales, ratios;
  bool output_score, iou_loss;
  static void describe(ParamSchema<ProposalParams>& schema) {
    schema.field("rpn_pre_nms_top_n", &ProposalParams::rpn_pre_nms_top_n)
        .default_value(6000)
        .doc("Number of best anchors that take part; not positive: all.");
    schema.field("rpn_post_nms_top_n", &ProposalParams::rpn_post_nms_top_n)
        .default_value(300)
        .at_least(0)
        .doc("Number of regions per image.");
    schema.field("threshold", &ProposalParams::threshold)
        .default_value(0.7)
        .doc("A region is removed if its overlap with a better one is larger.");
    schema.field("rpn_min_size", &ProposalParams::rpn_min_size)
        .default_value(16)
        .doc("Minimum height and width of a region, in input pixels.");
    schema.field("scales", &ProposalParams::scales)
        .default_value(AttrValue::List{4.0, 8.0, 16.0, 32.0})
        .doc("Sizes of anchors, in strides.");
    schema.field("ratios", &ProposalParams::ratios)
        .default_value(AttrValue::List{0.5, 1.0, 2.0})
        .doc("Height divided by width of anchors.");
    schema.field("feature_stride", &ProposalParams::feature_stride)
        .default_value(16)
        .at_least(1)
        .doc("Image pixels per pixel of the scores.");
    schema.field("output_score", &ProposalParams::output_score)
        .default_value(false)
        .doc("Whether the scores are a second output.");
    schema.field("iou_loss", &ProposalParams::iou_loss)
        .default_value(false)
        .doc("Whether the offsets refer to corners, not to center and log size.");
  }
  int64_t anchors() const { return static_cast<int64_t>(scales.size() * ratios.size()); }
};

void infer_proposal(const ProposalParams& p, InferContext& c, bool one_image) {
  c.unify_dtypes();
  c.set_in_shape(0, Shape({one_image ? 1 : kUnknownDim, 2 * p.anchors(), kUnknownDim, kUnknownDim}));
  const Shape& scores = c.in_shape(0);
  c.set_in_shape(1, Shape({scores[0], 4 * p.anchors(), scores[2], scores[3]}));
  c.set_in_shape(0, Shape({c.in_shape(1)[0], 2 * p.anchors(), c.in_shape(1)[2], c.in_shape(1)[3]}));
  c.set_in_shape(2, Shape({c.in_shape(0)[0], 3}));
  const int64_t rows =
      c.in_shape(0)[0] == kUnknownDim ? kUnknownDim : checked_times(c.in_shape(0)[0], p.rpn_post_nms_top_n);
  c.set_out_shape(0, Shape({rows, 5}));
  c.set_out_shape(1, Shape({rows, 1}));
}

// Anchors around the first pixel. Sizes count pixels, so a box from 0 to 15 has width 16.
Temporary<Box<float>> base_anchors(const ProposalParams& p) {
  Temporary<Box<float>> anchors;
  const float stride = static_cast<float>(p.feature_stride), center = 0.5f * (stride - 1);
  for (double ratio : p.ratios) {
    for (double scale : p.scales) {
      const float width = std::floor(std::sqrt(std::floor(stride * stride / static_cast<float>(ratio))) + 0.5f);
      const float height = std::floor(width * static_cast<float>(ratio) + 0.5f);
      const float half_w = 0.5f * (width * static_cast<float>(scale) - 1),
                  half_h = 0.5f * (height * static_cast<float>(scale) - 1);
      anchors.push_back({center - half_w, center - half_h, center + half_w, center + half_h});
    }
  }
  return anchors;
}

Box<float> moved(const Box<float>& a, const float (&d)[4], bool corners) {
  if (corners) return {a.left + d[0], a.top + d[1], a.right + d[2], a.bottom + d[3]};
  const float width = a.right - a.left + 1, height = a.bottom - a.top + 1;
  const float x = d[0] * width + a.left + 0.5f * (width - 1), y = d[1] * height + a.top + 0.5f * (height - 1);
  const float half_w = 0.5f * (std::exp(d[2]) * width - 1), half_h = 0.5f * (std::exp(d[3]) * height - 1);
  return {x - half_w, y - half_h, x + half_w, y + half_h};
}

struct Region {
  Box<float> box;
  float score;
};

float pixel_area(const Box<float>& b) { return (b.right - b.left + 1) * (b.bottom - b.top + 1); }

float pixel_overlap(const Box<float>& a, const Box<float>& b) {
  const float w = std::min(a.right, b.right) - std::max(a.left, b.left) + 1,
              h = std::min(a.bottom, b.bottom) - std::max(a.top, b.top) + 1;
  const float common = std::max(w, 0.0f) * std::max(h, 0.0f);
  return common / (pixel_area(a) + pixel_area(b) - common);
}

// All anchors of one image, displaced by their offsets and clipped to the image. Anchors outside the unpadded image and
// anchors that are too small get score -1; the latter are enlarged.
template <typename T>
Temporary<Region> all_regions(const ProposalParams& p, const T* scores, const T* offsets, const T* info, int64_t height,
                              int64_t width) {
  const Temporary<Box<float>> anchors = base_anchors(p);
  const int64_t pixels = height * width, count = static_cast<int64_t>(anchors.size());
  const float image_h = static_cast<float>(info[0]), image_w = static_cast<float>(info[1]);
  const float stride = static_cast<float>(p.feature_stride),
              least = static_cast<float>(p.rpn_min_size) * static_cast<float>(info[2]);
  const int64_t real_h = kernels::to_integer(image_h / stride), real_w = kernels::to_integer(image_w / stride);
  Temporary<Region> regions;
  regions.reserve(static_cast<size_t>(pixels * count));
  for (int64_t i = 0; i < pixels; ++i) {
    const float y = static_cast<float>(i / width) * stride, x = static_cast<float>(i % width) * stride;
    for (int64_t k = 0; k < count; ++k) {
      const Box<float>& a = anchors[static_cast<size_t>(k)];
      float d[4];
      for (int64_t j = 0; j < 4; ++j) d[j] = static_cast<float>(offsets[(4 * k + j) * pixels + i]);
      const Box<float> m = moved({a.left + x, a.top + y, a.right + x, a.bottom + y}, d, p.iou_loss);
      const auto cut = [](float v, float size) { return std::max(std::min(v, size - 1), 0.0f); };
      Region r{{cut(m.left, image_w), cut(m.top, image_h), cut(m.right, image_w), cut(m.bottom, image_h)},
               static_cast<float>(scores[(count + k) * pixels + i])};
      if (i / width >= real_h || i % width >= real_w) r.score = -1;
      if (r.box.right - r.box.left + 1 < least || r.box.bottom - r.box.top + 1 < least) {
        r.box = {r.box.left - least / 2, r.box.top - least / 2, r.box.right + least / 2, r.box.bottom + least / 2};
        r.score = -1;
      }
      regions.push_back(r);
    }
  }
  return regions;
}

// NaN scores come last, which makes the order total.
bool better(const Region& a, const Region& b) {
  if (std::isnan(b.score)) return !std::isnan(a.score);
  return a.score > b.score;
}

Temporary<Region> best_regions(const ProposalParams& p, Temporary<Region> regions) {
  kernels::stable_sort(regions, better);
  if (p.rpn_pre_nms_top_n > 0 && regions.size() > static_cast<size_t>(p.rpn_pre_nms_top_n))
    regions.resize(static_cast<size_t>(p.rpn_pre_nms_top_n));
  const float limit = static_cast<float>(p.threshold);
  Temporary<Region> kept;
  for (const Region& r : regions) {
    if (kept.size() == static_cast<size_t>(p.rpn_post_nms_top_n)) break;
    const bool goes =
        std::any_of(kept.begin(), kept.end(), [&](const Region& k) { return pixel_overlap(k.box, r.box) > limit; });
    if (!goes) kept.push_back(r);
  }
  return kept;
}

void run_proposal(const ProposalParams& p, const KernelArgs& a) {
  const Shape& s = *a.in[0].shape;
  const int64_t height = s[2], width = s[3], per_image = s[1] * height * width, rows = p.rpn_post_nms_top_n;
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(s[0], 20.0 * static_cast<double>(per_image), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const Temporary<Region> kept =
            best_regions(p, all_regions(p, a.in[0].as<T>() + n * per_image, a.in[1].as<T>() + 2 * n * per_image,
                                        a.in[2].as<T>() + 3 * n, height, width));
        for (int64_t i = 0; i < rows; ++i) {
          T *out = a.out[0].as<T>() + (n * rows + i) * 5, *score = a.out[1].as<T>() + n * rows + i;
          // If there are fewer regions than rows, the regions repeat. Without pixels there is no region to repeat.
          const Region r = kept.empty() ? Region{{0, 0, 0, 0}, -1} : kept[static_cast<size_t>(i) % kept.size()];
          const float numbers[5] = {static_cast<float>(n), r.box.left, r.box.top, r.box.right, r.box.bottom};
          for (int k = 0; k < 5; ++k) out[k] = static_cast<T>(numbers[k]);
          *score = static_cast<T>(r.score);
        }
      }
    });
  });
}

void declare_proposal(OpRegistry& ops, const char* name, bool one_image) {
  const int64_t images = one_image ? 1 : 2;
  Sample s;
  s.inputs = {{images, 4, 3, 4}, {images, 8, 3, 4}, {images, 3}};
  s.attrs = {{"scales", "(1, 2)"},        {"ratios", "(1,)"},    {"feature_stride", "2"},
             {"rpn_post_nms_top_n", "6"}, {"rpn_min_size", "1"}, {"output_score", "True"}};
  s.low = 0.1;
  s.high = 1.0;
  s.check_gradient = false;
  s.note = "gradients are zero by definition, as MXNet has them";
  Sample corners = s;
  corners.attrs = {{"scales", "(2,)"},          {"ratios", "(0.5, 2)"},     {"feature_stride", "1"},
                   {"rpn_post_nms_top_n", "4"}, {"rpn_pre_nms_top_n", "9"}, {"rpn_min_size", "0"},
                   {"iou_loss", "True"},        {"threshold", "0.5"}};
  ops.declare<ProposalParams>(name)
      .doc(
          "Regions of interest from a region proposal network: anchors displaced by predicted offsets, of which "
          "non-maximum suppression keeps the best. Gradients are zero.")
      .input("cls_prob", "(batch, 2 * anchors, height, width): scores of background, then of objects")
      .input("bbox_pred", "(batch, 4 * anchors, height, width): offsets")
      .input("im_info", "(batch, 3): height and width of the image without padding, and its scale")
      .output("output", "(batch * rpn_post_nms_top_n, 5): image, left, top, right, bottom")
      .output("score", "(batch * rpn_post_nms_top_n, 1)")
      .num_visible_outputs([](const ProposalParams& p) { return p.output_score ? 2 : 1; })
      .infer([one_image](const ProposalParams& p, InferContext& c) { infer_proposal(p, c, one_image); })
      .cpu(run_proposal, kFloating)
      .cost([](const ProposalParams& p, auto in, auto out) {
        (void)out;
        return 1000 + elements(in[0]) * (50 + p.rpn_post_nms_top_n / 4);
      })
      .gradient([](const ProposalParams&, const GradientContext&) { return Values{}; }, Saves::nothing())
      .amp(AmpType::kWidest)
      .sample(s)
      .sample(corners);
}

}  // namespace

void register_proposal(OpRegistry& ops) {
  declare_proposal(ops, "_contrib_Proposal", true);
  declare_proposal(ops, "_contrib_MultiProposal", false);
}

}  // namespace hybridnet::ops
