// _contrib_box_encode and _contrib_box_decode: boxes as offsets from anchors, and back.
//   Girshick et al.: Rich feature hierarchies for accurate object detection, CVPR 2014, appendix C.
#include "device/memory.h"
#include "hybridnet/declare.h"
#include "hybridnet/storage.h"
#include "hybridnet/threads.h"
#include "kernels/device/box_arguments.h"
#include "kernels/index/indices.h"
#include "ops/contrib/boxes.h"
#include "ops/device_launch.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct BoxDecodeParams {
  double std0, std1, std2, std3, clip;
  BoxFormat format;
  static void describe(ParamSchema<BoxDecodeParams>& schema) {
    schema.field("std0", &BoxDecodeParams::std0).default_value(1.0).doc("Factor of the first encoded number, x.");
    schema.field("std1", &BoxDecodeParams::std1).default_value(1.0).doc("Factor of the second, y.");
    schema.field("std2", &BoxDecodeParams::std2).default_value(1.0).doc("Factor of the third, width.");
    schema.field("std3", &BoxDecodeParams::std3).default_value(1.0).doc("Factor of the fourth, height.");
    schema.field("clip", &BoxDecodeParams::clip)
        .default_value(-1.0)
        .doc("Upper bound of the log sizes; not positive: no bound.");
    box_format_field(schema, "format", &BoxDecodeParams::format)
        .default_value("center")
        .doc("Coordinates of the anchors: corner (left, top, right, bottom) or center (x, y, width, height).");
  }
};

void infer_box_encode(const NoParams&, InferContext& c) {
  c.unify_dtypes();
  require_ndim(c, 0, 2, "batch, boxes");
  require_ndim(c, 1, 2, "batch, boxes");
  require_ndim(c, 2, 3, "batch, boxes, 4");
  require_ndim(c, 3, 3, "batch, references, 4");
  require_axis_size(c, 2, 2, 4, "a box has 4 coordinates");
  require_axis_size(c, 3, 2, 4, "a box has 4 coordinates");
  c.set_in_shape(4, Shape({4}));
  c.set_in_shape(5, Shape({4}));
  Shape boxes = Shape::unknown(3);
  boxes[2] = 4;
  c.set_in_shape(2, boxes);
  for (int i = 0; i < 2; ++i) {
    c.set_out_shape(i, c.in_shape(2));
    c.set_in_shape(2, c.out_shape(i));
  }
  const Shape& anchors = c.in_shape(2);
  c.set_in_shape(0, Shape({anchors[0], anchors[1]}));
  c.set_in_shape(1, Shape({anchors[0], anchors[1]}));
  c.set_in_shape(3, Shape({anchors[0], kUnknownDim, 4}));
}

template <typename T, typename A>
void encode(const T* anchor, const T* reference, const T* means, const T* stds, T* out) {
  const Extent<A> a = Extent<A>::load(anchor, BoxFormat::kCorner), r = Extent<A>::load(reference, BoxFormat::kCorner);
  const A encoded[4] = {(r.x - a.x) / a.w, (r.y - a.y) / a.h, std::log(r.w / a.w), std::log(r.h / a.h)};
  for (int k = 0; k < 4; ++k)
    out[k] = static_cast<T>((encoded[k] - static_cast<A>(means[k])) / static_cast<A>(stds[k]));
}

[[noreturn]] void bad_match(int64_t match, int64_t references) {
  throw IndexError({.input = "matches",
                    .expected = "for positive samples a reference in [0, " + std::to_string(references - 1) + "]",
                    .given = std::to_string(match)});
}

// Waits for the kernel, which finds a match out of range.
void encode_on_device(const KernelArgs& a, const kernels::Indices& matches) {
  const int64_t count = a.in[0].size();
  if (count == 0) return;
  const OwnedBlock wrong(count, device::current()->device());
  const device::EncodeArguments encoded{.samples = a.in[0].data,
                                        .matches = matches.data(),
                                        .anchors = a.in[2].data,
                                        .references = a.in[3].data,
                                        .means = a.in[4].data,
                                        .deviations = a.in[5].data,
                                        .targets = a.out[0].data,
                                        .masks = a.out[1].data,
                                        .wrong = static_cast<uint8_t*>(wrong.data()),
                                        .count = count,
                                        .boxes = (*a.in[0].shape)[1],
                                        .reference_count = (*a.in[3].shape)[1]};
  on_device::launch("boxes.cuh", "EncodeArguments", on_device::with_dtype("encode_boxes", a.in[0].dtype), count,
                    encoded);
  Temporary<uint8_t> found(static_cast<size_t>(count));
  device::copy_to_host(found.data(), wrong.data(), count);
  const auto first = std::find(found.begin(), found.end(), uint8_t{1});
  if (first != found.end()) bad_match(matches.on_host()[first - found.begin()], encoded.reference_count);
}

void run_box_encode(const NoParams&, const KernelArgs& a) {
  const int64_t count = a.in[0].size(), boxes = (*a.in[0].shape)[1], references = (*a.in[3].shape)[1];
  kernels::Indices matches(a.in[1]);
  if (device::current()) return encode_on_device(a, matches);
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = accumulator_t<T>;
    const T *samples = a.in[0].as<T>(), *anchors = a.in[2].as<T>(), *refs = a.in[3].as<T>();
    T *targets = a.out[0].as<T>(), *masks = a.out[1].as<T>();
    for (int64_t i = 0; i < count; ++i) {
      const bool positive = static_cast<A>(samples[i]) > A(0.5);
      std::fill_n(masks + 4 * i, 4, static_cast<T>(positive ? 1.0f : 0.0f));
      std::fill_n(targets + 4 * i, 4, static_cast<T>(0.0f));
      if (!positive) continue;
      if (matches[i] < 0 || matches[i] >= references) bad_match(matches[i], references);
      encode<T, A>(anchors + 4 * i, refs + 4 * (i / boxes * references + matches[i]), a.in[4].as<T>(), a.in[5].as<T>(),
                   targets + 4 * i);
    }
  });
}

void infer_box_decode(const BoxDecodeParams&, InferContext& c) {
  c.unify_dtypes();
  require_ndim(c, 0, 3, "batch, boxes, 4");
  require_ndim(c, 1, 3, "1, boxes, 4");
  require_axis_size(c, 0, 2, 4, "a box has 4 numbers");
  require_axis_size(c, 1, 0, 1, "all examples share the anchors");
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  if (c.in_shape(0).rank_known()) c.set_in_shape(1, Shape({1, c.in_shape(0)[1], 4}));
}

void run_box_decode(const BoxDecodeParams& p, const KernelArgs& a) {
  const int64_t count = a.in[0].size() / 4, boxes = (*a.in[0].shape)[1];
  if (device::current()) {
    const device::DecodeArguments decoded{.in = a.in[0].data,
                                          .anchors = a.in[1].data,
                                          .out = a.out[0].data,
                                          .count = count,
                                          .boxes = boxes,
                                          .factor = {p.std0, p.std1, p.std2, p.std3},
                                          .clip = p.clip,
                                          .format = p.format};
    return on_device::launch("boxes.cuh", "DecodeArguments", on_device::with_dtype("decode_boxes", a.in[0].dtype),
                             count, decoded);
  }
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = accumulator_t<T>;
    parallel_for(count, 20.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* x = a.in[0].as<T>() + 4 * i;
        T* out = a.out[0].as<T>() + 4 * i;
        const Extent<A> anchor = Extent<A>::load(a.in[1].as<T>() + 4 * (i % boxes), p.format);
        const A cx = static_cast<A>(x[0]) * static_cast<A>(p.std0) * anchor.w + anchor.x;
        const A cy = static_cast<A>(x[1]) * static_cast<A>(p.std1) * anchor.h + anchor.y;
        A log_w = static_cast<A>(x[2]) * static_cast<A>(p.std2), log_h = static_cast<A>(x[3]) * static_cast<A>(p.std3);
        if (p.clip > 0) {
          log_w = std::min(log_w, static_cast<A>(p.clip));
          log_h = std::min(log_h, static_cast<A>(p.clip));
        }
        const A half_w = std::exp(log_w) * anchor.w / 2, half_h = std::exp(log_h) * anchor.h / 2;
        out[0] = static_cast<T>(cx - half_w);
        out[1] = static_cast<T>(cy - half_h);
        out[2] = static_cast<T>(cx + half_w);
        out[3] = static_cast<T>(cy + half_h);
      }
    });
  });
}

}  // namespace

void register_box_coding(OpRegistry& ops) {
  const char* note = "gradients are zero by definition, as MXNet has them";
  Sample encode;
  encode.inputs = {{2, 3}, {2, 3}, {2, 3, 4}, {2, 2, 4}, {4}, {4}};
  encode.low = 0.1;
  encode.high = 1.9;
  encode.check_gradient = false;
  encode.note = "logarithms of sizes that may be negative give NaN, here as in the reference; " + std::string(note);
  ops.declare("_contrib_box_encode")
      .doc(
          "Boxes as offsets from anchors: ((x - ax) / aw, (y - ay) / ah, log(w / aw), log(h / ah)), minus means, by "
          "stds; zero for "
          "anchors without a positive sample. Gradients are zero.")
      .input("samples", "(batch, boxes): 1 positive, -1 negative, 0 ignored")
      .input("matches", "(batch, boxes): index of the reference matched with each anchor")
      .input("anchors", "(batch, boxes, 4): left, top, right, bottom")
      .input("refs", "(batch, references, 4): left, top, right, bottom")
      .input("means", "(4,), subtracted from the offsets")
      .input("stds", "(4,), divide the offsets")
      .output("targets", "(batch, boxes, 4)")
      .output("masks", "(batch, boxes, 4): 1 for positive samples, else 0")
      .infer(infer_box_encode)
      .cpu(run_box_encode, kFloating)
      .any_device()
      .waits_on_gpu()
      .may_raise()
      .gradient([](const NoParams&, const GradientContext&) { return Values{}; }, Saves::nothing())
      .output_names(OutputNames::kNumberedSeveral)
      .sample(encode);
  Sample decode;
  decode.inputs = {{2, 3, 4}, {1, 3, 4}};
  decode.check_gradient = false;
  decode.note = note;
  Sample corner = decode;
  corner.attrs = {{"format", "corner"}, {"clip", "0.5"}, {"std0", "0.1"},
                  {"std1", "0.1"},      {"std2", "0.2"}, {"std3", "0.2"}};
  ops.declare<BoxDecodeParams>("_contrib_box_decode")
      .doc(
          "Boxes (left, top, right, bottom) from offsets and anchors: the inverse of _contrib_box_encode. Gradients "
          "are zero.")
      .input("data", "(batch, boxes, 4): offsets")
      .input("anchors", "(1, boxes, 4)")
      .output("output", "(batch, boxes, 4)")
      .infer(infer_box_decode)
      .cpu(run_box_decode, kFloating)
      .any_device()
      .gradient([](const BoxDecodeParams&, const GradientContext&) { return Values{}; }, Saves::nothing())
      .sample(decode)
      .sample(corner);
}

}  // namespace hybridnet::ops
