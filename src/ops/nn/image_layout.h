// The positions of the batch, channel and spatial axes in the logical shape of an image tensor.
#pragma once

#include <optional>
#include <string>

#include "hybridnet/op.h"

namespace hybridnet::ops {

enum class ImageLayout : int32_t { kNCW, kNCHW, kNCDHW, kNWC, kNHWC, kNDHWC };

constexpr bool is_channels_last(ImageLayout l) {
  return l == ImageLayout::kNWC || l == ImageLayout::kNHWC || l == ImageLayout::kNDHWC;
}
constexpr int spatial_dims(ImageLayout l) {
  return l == ImageLayout::kNCW || l == ImageLayout::kNWC     ? 1
         : l == ImageLayout::kNCHW || l == ImageLayout::kNHWC ? 2
                                                              : 3;
}
// Describes a field of this type further: its names, None by default.
inline FieldBuilder with_layouts(FieldBuilder field) {
  return field.none_by_default()
      .choice("NCW", ImageLayout::kNCW)
      .choice("NCHW", ImageLayout::kNCHW)
      .choice("NCDHW", ImageLayout::kNCDHW)
      .choice("NWC", ImageLayout::kNWC)
      .choice("NHWC", ImageLayout::kNHWC)
      .choice("NDHWC", ImageLayout::kNDHWC);
}
inline bool is_channels_last(const std::optional<ImageLayout>& l) { return l && is_channels_last(*l); }

struct ImageAxes {
  int spatial;  // number of spatial axes
  int channel;  // axis of the channels
  int first;    // first spatial axis
  ImageAxes(int spatial_count, bool channels_last)
      : spatial(spatial_count), channel(channels_last ? spatial_count + 1 : 1), first(channels_last ? 1 : 2) {}
  int ndim() const { return spatial + 2; }
};

// Requires that data has `axes.ndim()` dimensions, or sets them if unknown. Throws ShapeError.
inline void require_image(InferContext& c, int input, const ImageAxes& axes) {
  const Shape& shape = c.in_shape(input);
  if (shape.rank_known() && shape.ndim() != axes.ndim()) {
    ErrorFields e;
    e.input = c.input_name(input);
    e.expected =
        std::to_string(axes.ndim()) + " dimensions: batch, channels and " + std::to_string(axes.spatial) + " of space";
    e.given = "shape " + shape.str();
    e.because = "kernel has " + std::to_string(axes.spatial) + (axes.spatial == 1 ? " size" : " sizes");
    throw ShapeError(std::move(e));
  }
  c.set_in_shape(input, Shape::unknown(axes.ndim()));
}

// True if the images of this node have channels-last memory. Only nodes whose logical layout has the channels second
// can have it.
inline bool linked_channels_last(const LinkContext& c) {
  for (Format f : c.in_format)
    if (f == Format::kChannelsLast) return true;
  for (Format f : c.out_format)
    if (f == Format::kChannelsLast) return true;
  return false;
}

// Cross-field check of a layout attribute against the number of kernel sizes.
inline void check_layout(const std::optional<ImageLayout>& layout, int kernel_sizes) {
  if (!layout || kernel_sizes == 0 || spatial_dims(*layout) == kernel_sizes) return;
  throw ParamError({.input = "layout",
                    .expected = "a layout of " + std::to_string(kernel_sizes) + " spatial axes",
                    .given = "one of " + std::to_string(spatial_dims(*layout)),
                    .because = "kernel has " + std::to_string(kernel_sizes) + " sizes"});
}

// Element `i` of an optional tuple parameter, or `otherwise` if it is absent.
inline int64_t tuple_at(const Tuple& t, int i, int64_t otherwise) { return i < t.ndim() ? t[i] : otherwise; }

inline void check_tuple(const char* name, const Tuple& t, int sizes, int64_t at_least) {
  if (t.ndim() <= 0) return;
  const auto fail = [&](std::string expected) {
    throw ParamError({.input = name,
                      .expected = std::move(expected),
                      .given = t.str(),
                      .because = "kernel has " + std::to_string(sizes) + " sizes"});
  };
  if (t.ndim() != sizes) fail(std::to_string(sizes) + " numbers");
  constexpr int64_t kMax = INT32_MAX;  // keeps sums and products of these far below 2**63
  for (int64_t v : t) {
    if (v < at_least) fail("numbers of at least " + std::to_string(at_least));
    if (v > kMax) fail("numbers of at most " + std::to_string(kMax));
  }
}

}  // namespace hybridnet::ops
