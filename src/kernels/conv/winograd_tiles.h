// Winograd's short convolution F(4x4, 3x3): 3x3 kernels over channels-last float32 images with a quarter of the
// multiplications. A tile of 6x6 pixels gives 4x4 results through 36 independent products per pair of channels:
//   y = A' [ (G w G') * (B' x B) ] A
// Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016. Rounding errors are larger than those of
// the direct sum: about 1e-6 of the largest result.
#pragma once

#include <cstdint>

namespace hybridnet::kernels {

// The limit has the purpose of winograd.h's for F(2x2, 3x3): the transforms spread a NaN, an infinity, and the rounding
// of large numbers over a tile. Results that depend on such a number are beyond this limit; its image is recomputed
// directly.
inline constexpr float kWinogradTileLimit = 1e15F;

constexpr int64_t kWinogradTile = 4, kWinogradPatch = 6, kWinogradProducts = 36;

// An image tensor (batch, height, width, channels), divided into tiles of 4x4. Tile t covers rows 4 i.. and columns 4
// j.. where t = (n * tiles_down + i) * tiles_across + j.
struct WinogradImage {
  int64_t batch = 0, height = 0, width = 0, channels = 0;
};
struct WinogradGrid {
  int64_t batch = 0, down = 0, across = 0;
  int64_t tiles() const { return batch * down * across; }
};

// Whole vectors of channels only.
constexpr bool winograd_channels(int64_t channels) { return channels % 16 == 0; }

// products[p][t - begin][c] = (B' patch B)[p], p = 0..35, for tiles [begin, end); a patch starts pad rows and columns
// before its tile and is zero outside of the image. `stride`: elements between products.
void winograd_input(const WinogradImage& x, const WinogradGrid& grid, int64_t pad_rows, int64_t pad_columns,
                    const float* data, int64_t begin, int64_t end, float* products, int64_t stride);

// Operations on the results before they are stored.
struct WinogradEpilogue {
  const float* bias = nullptr;    // per channel, or null
  const float* addend = nullptr;  // same layout as the result, or null
  bool relu = false;
  uint8_t* doubtful = nullptr;  // one per image, initially 0, or null: becomes 1 if results are doubtful
};
// y tile = A' products A for tiles [begin, end), clipped to the image.
void winograd_output(const WinogradImage& y, const WinogradGrid& grid, const WinogradEpilogue& epilogue,
                     const float* products, int64_t stride, int64_t begin, int64_t end, float* data);

// products = A tile A', the transpose of winograd_output: the contribution of each product to the gradient dy.
void winograd_output_gradient(const WinogradImage& y, const WinogradGrid& grid, const float* dy, int64_t begin,
                              int64_t end, float* products, int64_t stride);

// Weights (o, c, 3, 3), dense. transformed[p][i][j] = (G w G')[p] with i = c, j = o; for the gradient of the data i =
// o, j = c and the kernels are rotated by 180 degrees.
struct WinogradWeights {
  int64_t outputs = 0, inputs = 0;
  bool backward = false;
};
void winograd_weights(const WinogradWeights& w, const float* weights, float* transformed);
// gradient = G' products G for products[p][c][o]. Returns false if results are doubtful.
bool winograd_weights_gradient(const WinogradWeights& w, const float* products, float* gradient);
// Sums of dy over all pixels.
void winograd_bias_gradient(const WinogradImage& y, const float* dy, float* gradient);

}  // namespace hybridnet::kernels
