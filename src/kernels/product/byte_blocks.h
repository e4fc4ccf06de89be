// The layout of packed 8-bit weights (byte_product.h): blocks of up to 64 columns, each for the full depth. A block
// holds, for each four elements of the depth, the four bytes of each of its columns. After all blocks follow, for each
// column, 128 times the sum of its weights: the excess of a product with bytes that were shifted by 128.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/product/byte_product.h"

namespace hybridnet::kernels {

constexpr int64_t kByteUnit = 16;  // columns are padded to a multiple of it
constexpr int64_t kByteQuad = 4;   // elements of the depth that are stored together

inline int64_t byte_quads(int64_t depth) { return (depth + kByteQuad - 1) / kByteQuad; }
inline int64_t padded_columns(int64_t columns) { return (columns + kByteUnit - 1) / kByteUnit * kByteUnit; }

template <typename Packed>
auto byte_shifts(Packed* packed, int64_t depth, int64_t columns) {
  using Shift = std::conditional_t<std::is_const_v<Packed>, const int32_t, int32_t>;
  using Byte = std::conditional_t<std::is_const_v<Packed>, const char, char>;
  return reinterpret_cast<Shift*>(static_cast<Byte*>(packed) + padded_columns(columns) * byte_quads(depth) * kByteQuad);
}

// Prefetches weights for the next part of the depth while a tile computes: kBytes for each quad, `pitch` apart. Tiles
// of several rows read a part of each line only, which the hardware does not take for a sequence.
template <int64_t kBytes>
class Ahead {
 public:
  Ahead(const int8_t* weights, bool wanted, int64_t offset, int64_t pitch)
      : at_(weights + offset), pitch_(wanted && weights ? pitch : 0) {}
  void fetch() {
    if (pitch_ == 0) return;
    for (int64_t i = 0; i < kBytes; i += 64) __builtin_prefetch(at_ + i);
    at_ += pitch_;
  }

 private:
  const int8_t* at_;
  int64_t pitch_;
};

// One block of weights and the rows to multiply with it.
struct ByteBlock {
  const int8_t* weights;
  int64_t columns, quads;  // columns: a multiple of kByteUnit
  const char* rows;        // in the form that the kernel reads
  int64_t row_bytes, count;
  const int32_t* shift;           // subtracted from the sums of each row; or null
  int32_t* sums;                  // rows of kByteTileColumns
  bool adds = false;              // to the sums that are there
  const int8_t* ahead = nullptr;  // the weights to prefetch; or null
};

}  // namespace hybridnet::kernels
