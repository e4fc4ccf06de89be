// Colors of pixels in double precision, on CPUs and devices.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace hybridnet::kernels {

// Luminance of red, green and blue: ITU-R BT.601. A pixel with one channel is its own luminance.
inline double luminance(const double* pixel, int64_t channels) {
  return channels == 1 ? pixel[0] : pixel[0] * 0.299 + pixel[1] * 0.587 + pixel[2] * 0.114;
}

struct Hls {
  double hue, lightness, saturation;  // hue in sixths of a turn
};

inline Hls to_hls(double r, double g, double b) {
  const double high = std::max(std::max(r, g), b), low = std::min(std::min(r, g), b), range = high - low;
  Hls out{0.0, (high + low) / 2, 0.0};
  if (range <= std::numeric_limits<double>::epsilon()) return out;
  out.saturation = out.lightness < 0.5 ? range / (high + low) : range / (2.0 - high - low);
  if (high == r)
    out.hue = (g - b) / range;
  else if (high == g)
    out.hue = (b - r) / range + 2.0;
  else
    out.hue = (r - g) / range + 4.0;
  return out;
}

// The value of one primary, whose own hue is `offset` sixths away.
inline double primary(const Hls& color, double offset) {
  if (color.saturation == 0.0) return color.lightness;
  const double l = color.lightness, s = color.saturation;
  const double high = l <= 0.5 ? l * (1 + s) : l + s - l * s, low = 2 * l - high;
  double h = std::fmod(color.hue + offset, 6.0);
  if (h < 0) h += 6.0;
  if (h < 1) return low + (high - low) * h;
  if (h < 3) return high;
  return h < 4 ? low + (high - low) * (4 - h) : low;
}

// The color of a pixel, in [0, 255], after a rotation of its hue by turns of the color circle.
inline void rotate_hue(double* pixel, double turns) {
  Hls color = to_hls(pixel[0] / 255.0, pixel[1] / 255.0, pixel[2] / 255.0);
  color.hue += turns * 6.0;
  pixel[0] = primary(color, 2.0) * 255.0;
  pixel[1] = primary(color, 0.0) * 255.0;
  pixel[2] = primary(color, 4.0) * 255.0;
}

}  // namespace hybridnet::kernels
