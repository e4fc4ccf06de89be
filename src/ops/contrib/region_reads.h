// Pooling of regions as sums of weighted pixels, listed per bin of a region. Forward and backward passes use the same
// lists: the forward pass reads the pixels, the backward pass adds to them.
#pragma once

#include <cmath>
#include <cstdint>

#include "hybridnet/op.h"
#include "hybridnet/threads.h"
#include "storage/temporary.h"

namespace hybridnet::ops {

template <typename A>
struct RegionReads {
  int64_t image = 0;
  Temporary<int64_t> index;  // pixels of one plane
  Temporary<A> weight;
  Temporary<size_t> first{0};  // bin b has the entries [first[b], first[b + 1])

  void add(int64_t pixel, A w) {
    index.push_back(pixel);
    weight.push_back(w);
  }
  void end_bin() { first.push_back(index.size()); }
  size_t bins() const { return first.size() - 1; }
};

// The image index in the first number of a region.
template <typename T>
int64_t image_of_region(const T* region, int64_t batch) {
  const double given = std::trunc(static_cast<double>(region[0]));
  if (given >= 0 && given < static_cast<double>(batch)) return static_cast<int64_t>(given);
  throw IndexError({.input = "rois",
                    .expected = "image numbers in [0, " + std::to_string(batch - 1) + "] in the first column",
                    .given = AttrValue(given).str()});
}

// Computes pooled (regions, channels out, bins) from data (batch, channels, pixels). reads_of(region) returns a
// RegionReads; plane_of(channel, bin) returns the channel of data that a bin of an output channel reads.
template <typename T, typename ReadsOf, typename PlaneOf>
void pool_regions(int64_t regions, int64_t channels_out, int64_t channels, int64_t pixels, const T* data, T* pooled,
                  ReadsOf&& reads_of, PlaneOf&& plane_of) {
  using A = accumulator_t<T>;
  parallel_for(regions, 10.0 * static_cast<double>(channels_out), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const RegionReads<A> reads = reads_of(r);
      for (int64_t c = 0; c < channels_out; ++c) {
        for (size_t b = 0; b < reads.bins(); ++b) {
          const T* plane = data + (reads.image * channels + plane_of(c, static_cast<int64_t>(b))) * pixels;
          A sum = 0;
          for (size_t i = reads.first[b]; i < reads.first[b + 1]; ++i)
            sum += reads.weight[i] * static_cast<A>(plane[reads.index[i]]);
          pooled[(r * channels_out + c) * static_cast<int64_t>(reads.bins()) + static_cast<int64_t>(b)] =
              static_cast<T>(sum);
        }
      }
    }
  });
}

// The adjoint: overwrites data. Runs on one thread because regions share pixels.
template <typename T, typename ReadsOf, typename PlaneOf>
void spread_regions(int64_t regions, int64_t channels_out, int64_t channels, int64_t pixels, int64_t batch,
                    const T* pooled, T* data, ReadsOf&& reads_of, PlaneOf&& plane_of) {
  using A = accumulator_t<T>;
  Temporary<A> sums(static_cast<size_t>(batch * channels * pixels), A(0));
  for (int64_t r = 0; r < regions; ++r) {
    const RegionReads<A> reads = reads_of(r);
    for (int64_t c = 0; c < channels_out; ++c) {
      for (size_t b = 0; b < reads.bins(); ++b) {
        A* plane = sums.data() + (reads.image * channels + plane_of(c, static_cast<int64_t>(b))) * pixels;
        const A value = static_cast<A>(
            pooled[(r * channels_out + c) * static_cast<int64_t>(reads.bins()) + static_cast<int64_t>(b)]);
        for (size_t i = reads.first[b]; i < reads.first[b + 1]; ++i) plane[reads.index[i]] += reads.weight[i] * value;
      }
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) data[i] = static_cast<T>(sums[i]);
}

}  // namespace hybridnet::ops
