// Products of bfloat16 with packed weights in the tile registers of AMX: summed in float32, rounded once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hybridnet/base.h"
#include "kernels/product/packed.h"

namespace hybridnet::kernels {

bool has_tile_products();

// The packed copy of weights (columns, depth), padded by zeros: its size in bytes, its layout and its restoring.
int64_t packed_tile_weights(int64_t depth, int64_t columns);
void pack_tile_weights(const bfloat16* weights, int64_t depth, int64_t columns, void* packed);
void unpack_tile_weights(const void* packed, int64_t depth, int64_t columns, bfloat16* weights);
std::string tile_packing(int64_t depth, int64_t columns);
std::vector<Unpacking> tile_unpacking(int64_t depth, int64_t columns);

// Changes the sums of a tile in place, on the thread that computed them, before they are rounded.
class TileProductEnds {
 public:
  virtual void end(float* sums, int64_t count) const = 0;

 protected:
  ~TileProductEnds() = default;
};

// out = end(rows * weights + bias + addend). Uses the cores of the calling thread; the bits do not depend on their
// number.
struct TileProduct {
  const void* packed = nullptr;
  int64_t depth = 0, columns = 0;
  const bfloat16* rows = nullptr;  // (count, depth)
  int64_t count = 0;
  bfloat16* out = nullptr;           // (count, columns)
  const bfloat16* bias = nullptr;    // (columns), or null
  const bfloat16* addend = nullptr;  // (count, columns), or null; may alias out
  const TileProductEnds* ends = nullptr;
  void* workspace = nullptr;
};
int64_t tile_product_workspace(int64_t depth, int64_t count);
void tile_product(const TileProduct& p);

}  // namespace hybridnet::kernels
