// Image operations for data loaders, on the caller's memory: height x width x channels without gaps. Each function runs
// on the calling thread alone, since loaders have a thread per image. Sizes are positive; callers check arguments.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet {

struct ImageShape {
  int64_t height, width, channels;
  int64_t elements() const { return height * width * channels; }
};

// Interpolation methods, numbered as in OpenCV.
enum class Interpolation : int32_t { kNearest = 0, kLinear = 1, kCubic = 2, kArea = 3, kLanczos = 4 };

// Resizes the image. Pixel centers are half-integers and filters are not widened when shrinking, as in OpenCV.
void resize_image(const void* from, DType dtype, const ImageShape& shape, int64_t height, int64_t width,
                  Interpolation method, void* to);

// Applies an affine map: pixel (x, y) of the height x width result is the input at `source` * (x, y, 1), `source` being
// two rows of three, and `fill` outside of the input. Positions are rounded to 1/32 of a pixel, as in OpenCV. kArea
// counts as kLinear.
void warp_image(const uint8_t* from, const ImageShape& shape, const double (&source)[6], int64_t height, int64_t width,
                Interpolation method, uint8_t fill, uint8_t* to);

// Adds numbers to hue (half degrees, 0 to 180), lightness and saturation (0 to 255) of red, green and blue pixels, and
// clips. The intermediate hue, lightness and saturation are integers, as in OpenCV for bytes.
void shift_hls(const uint8_t* from, int64_t pixels, int hue, int lightness, int saturation, uint8_t* to);

// Maps red, green and blue of each pixel to matrix (three rows) times them, plus offset; rounds and clips bytes.
void map_colors(const uint8_t* from, int64_t pixels, const float (&matrix)[9], const float (&offset)[3], uint8_t* to);
void map_colors(const float* from, int64_t pixels, const float (&matrix)[9], const float (&offset)[3], float* to);
// Computes factor * v + offset for every value.
void scale_values(const uint8_t* from, int64_t n, float factor, float offset, uint8_t* to);
void scale_values(const float* from, int64_t n, float factor, float offset, float* to);

// Writes ((v - mean) * factor + offset) * scale as planes, channels x height x width. mean: one value per channel, or,
// with `mean_is_image`, one per value of the image; scale: one per channel.
void image_to_planes(const uint8_t* from, const ImageShape& shape, const float* mean, bool mean_is_image, float factor,
                     float offset, const float* scale, float* to);

}  // namespace hybridnet
