// Images in the users' layout: (height, width, channels), or a batch of those.
#pragma once

#include <string>

#include "hybridnet/op.h"

namespace hybridnet::ops {

struct ImageSize {
  int64_t batch, height, width, channels;
  explicit ImageSize(const Shape& s)
      : batch(s.ndim() == 4 ? s[0] : 1), height(s[s.ndim() - 3]), width(s[s.ndim() - 2]), channels(s[s.ndim() - 1]) {}
  int64_t pixels() const { return height * width; }
  int64_t elements() const { return pixels() * channels; }
};

inline void require_image(const InferContext& c, int i = 0) {
  const Shape& s = c.in_shape(i);
  if (!s.rank_known() || s.ndim() == 3 || s.ndim() == 4) return;
  throw ShapeError({.input = c.input_name(i),
                    .expected = "(height, width, channels), or a batch of those",
                    .given = "shape " + s.str()});
}

}  // namespace hybridnet::ops
