// Normalization per channel over all other axes. The layout is (outer, channels, inner): inner == 1 is channels-last.
// Sums are computed over blocks of fixed size and combined in fixed order, so the bits do not depend on the number of
// cores. Instantiated for float and double.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hybridnet::kernels {

struct ChannelShape {
  int64_t outer = 0, channels = 0, inner = 1;
  int64_t size() const { return outer * channels * inner; }
  int64_t per_channel() const { return outer * inner; }
};

// The blocks that partial sums cover: few enough elements for the second-level cache.
constexpr int64_t kChannelBlockElements = 32768;
struct ChannelBlocks {
  explicit ChannelBlocks(const ChannelShape& s) {
    if (s.inner == 1) {
      block_rows = std::max<int64_t>(1, kChannelBlockElements / std::max<int64_t>(s.channels, 1));
      blocks = (s.outer + block_rows - 1) / block_rows;
    } else {
      of_plane = std::max<int64_t>(1, (s.inner + kChannelBlockElements - 1) / kChannelBlockElements);
      blocks = s.outer * of_plane;
    }
  }
  int64_t blocks;                              // partial sums per channel
  int64_t block_rows = kChannelBlockElements;  // rows of a block (channels-last), or elements of a plane
  int64_t of_plane = 1;                        // blocks of a plane
};

// The bytes of scratch memory of the two functions that sum.
int64_t channel_sums_workspace(const ChannelShape& s, int64_t element_size);

// Computes the mean and biased variance of each channel (one pass over memory; blocks combined by the formula of Chan,
// Golub and LeVeque).
template <typename T>
void channel_mean_variance(const ChannelShape& s, const T* x, T* mean, T* variance, void* workspace);

// y = (x - mean) * scale + shift, then max(y, 0) if relu. y may alias x.
template <typename T>
void channel_normalize(const ChannelShape& s, const T* x, const T* mean, const T* scale, const T* shift, bool relu,
                       T* y);

// With relu, dy counts only if (x - mean) * scale + shift > 0; without it, scale and shift may be null.
template <typename T>
struct ChannelGradient {
  const T *x, *dy, *mean, *scale, *shift;
  bool relu;
};
// sum_dy = sum of dy; sum_product = sum of dy * (x - mean).
template <typename T>
void channel_gradient_sums(const ChannelShape& s, const ChannelGradient<T>& g, T* sum_dy, T* sum_product,
                           void* workspace);
// dx = factor * (dy - offset - (x - mean) * slope). dx may alias dy.
template <typename T>
void channel_gradient_apply(const ChannelShape& s, const ChannelGradient<T>& g, const T* factor, const T* offset,
                            const T* slope, T* dx);

}  // namespace hybridnet::kernels
