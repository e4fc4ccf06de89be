// Products of rows with packed 8-bit weights: rows of bytes with exact 32-bit sums, and rows of float32.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/product/gemm.h"
#include "kernels/product/packed.h"

namespace hybridnet::kernels {

// The packed copy of weights (columns, depth): the bytes, with columns and depth padded by zeros to multiples of 16 and
// 4, and a 32-bit sum per column. The same for all instruction sets.
int64_t packed_byte_weights(int64_t depth, int64_t columns);  // its size in bytes
void pack_byte_weights(const int8_t* weights, int64_t depth, int64_t columns, void* packed);
// The inverse.
void unpack_byte_weights(const void* packed, int64_t depth, int64_t columns, int8_t* weights);
// The copy for kernels that keep it (packed.h): the name of its layout, and the restoring of all weights from it.
std::string byte_packing(int64_t depth, int64_t columns);
std::vector<Unpacking> byte_unpacking(int64_t depth, int64_t columns);

// Receives the sums of a tile on the thread that computed them. The sums of its first row are at sums[0], those of the
// next row `stride` later.
class ByteProductEnds {
 public:
  virtual void end(const GemmTile& tile, const int32_t* sums, int64_t stride) const = 0;

 protected:
  ~ByteProductEnds() = default;
};
inline constexpr int64_t kByteTileColumns = 64;  // the most columns of a tile

// rows (count, depth) times weights, modulo 2^32: exact for each result that fits into 32 bits. Uses the cores of the
// calling thread.
struct ByteProduct {
  const void* packed = nullptr;
  int64_t depth = 0, columns = 0;
  const void* rows = nullptr;  // int8_t or uint8_t
  bool is_signed = false;
  int64_t count = 0;
  void* workspace = nullptr;
  const ByteProductEnds* ends = nullptr;
};
int64_t byte_product_workspace(int64_t depth, int64_t count);
void byte_product(const ByteProduct& p);

// out = (rows * weights) * scale + bias, with rows (count, depth) of floats; the weights are converted in registers.
// Each result is summed in float32 in the order of the depth: its bits depend on neither the other rows nor the cores.
struct FloatByteProduct {
  const void* packed = nullptr;
  int64_t depth = 0, columns = 0;
  const float* rows = nullptr;
  int64_t count = 0;
  const float* scale = nullptr;  // (columns)
  const float* bias = nullptr;   // (columns), or null
  float* out = nullptr;          // (count, columns)
  void* workspace = nullptr;
};
int64_t float_byte_product_workspace(int64_t depth, int64_t count);
void float_byte_product(const FloatByteProduct& p);

}  // namespace hybridnet::kernels
