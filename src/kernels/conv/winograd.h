// Convolution with 3x3 kernels and stride 1 by Winograd's minimal filtering F(2x2, 3x3): 16 products instead of 36 for
// every four outputs. Channels-last float32 images; the transformed weights are computed once. The transforms consist
// of additions and halvings only, so results are as accurate as those of the plain sum.
//   Winograd: Arithmetic Complexity of Computations, 1980.   Lavin, Gray: Fast algorithms for convolutional neural
//   networks, 2016.
#pragma once

#include <cstdint>

#include "kernels/conv/conv_geometry.h"

namespace hybridnet::kernels {

// The transforms mix the pixels of a tile, so a NaN, an infinity or a number far above the others spoils results that
// do not depend on it. All results that do depend on it are beyond this limit, though: this identifies the images with
// doubtful results. They are recomputed as direct sums.
inline constexpr float kWinogradLimit = 1e15F;

// True if this convolution has the required form, and is large enough to gain.
bool winograd_applies(const ConvGeometry& g);

// The convolution that maps gradients of y to gradients of x: its weights are those of g with channels exchanged and
// taps reversed. For winograd_applies(); stride, dilation and grouping are ignored.
ConvGeometry mirrored(const ConvGeometry& g);

int64_t winograd_weight_bytes(const ConvGeometry& g);
// `of_mirrored`: g is mirrored(original), and w the weights of the original.
void winograd_pack(const ConvGeometry& g, const float* w, bool of_mirrored, float* packed);

int64_t winograd_workspace_bytes(const ConvGeometry& g);

struct WinogradEnd {
  const float* bias = nullptr;    // (o,), or null
  const float* addend = nullptr;  // same layout as y, or null
  bool relu = false;
  uint8_t* doubtful = nullptr;  // one per image, initially 0, or null: becomes 1 if results are doubtful
};
// y = [relu](conv(x, w) + bias + addend).
void winograd_forward(const ConvGeometry& g, const float* x, const float* packed, const WinogradEnd& end, float* y,
                      void* workspace);

// The gradient of w, by the transposed algorithm: as many products as the forward pass. Requires winograd_applies(g).
// Returns false if results are doubtful.
int64_t winograd_backward_weights_workspace_bytes(const ConvGeometry& g);
bool winograd_backward_weights(const ConvGeometry& g, const float* x, const float* dy, float* dw, void* workspace);

}  // namespace hybridnet::kernels
