#include "kernels/product/dynamic_byte_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product/dynamic_byte_product.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "hybridnet/threads.h"
#include "kernels/product/byte_blocks.h"

#ifndef HYBRIDNET_DYNAMIC_BYTE_PRODUCT_
#define HYBRIDNET_DYNAMIC_BYTE_PRODUCT_
namespace hybridnet::kernels {
namespace {

constexpr float kMaxByte = 255.0f;

// A tile of sums with bytes that still contain the zero of their row, and what makes results of them.
struct SumsOfTile {
  const int32_t* sums;
  int64_t stride;  // from one row of sums to the next
  int64_t rows, count;
  const RowGrid* grids;
  const int32_t* shifts;  // 128 times the sum of the weights of each column
  const float* scale;
  const float* bias;    // or null
  const float* addend;  // or null
  float* out;
  int64_t columns;  // from one row of out, and of the addend, to the next
};

}  // namespace
}  // namespace hybridnet::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using D32 = hn::RebindToSigned<DF>;
using DBytes = hn::Rebind<uint8_t, DF>;

RowGrid grid_of(const float* row, int64_t depth) {
  const DF d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto low = hn::Zero(d), high = hn::Zero(d), unbounded = hn::Zero(d);  // x - x is NaN unless x is finite
  int64_t k = 0;
  for (; k + lanes <= depth; k += lanes) {
    const auto x = hn::LoadU(d, row + k);
    low = hn::Min(low, x);
    high = hn::Max(high, x);
    unbounded = hn::Add(unbounded, hn::Sub(x, x));
  }
  float least = hn::GetLane(hn::MinOfLanes(d, low)), most = hn::GetLane(hn::MaxOfLanes(d, high));
  float other = hn::GetLane(hn::SumOfLanes(d, unbounded));
  for (; k < depth; ++k) {
    least = std::min(least, row[k]);
    most = std::max(most, row[k]);
    other += row[k] - row[k];
  }
  if (std::isnan(other)) return {other, 0};
  // The difference of the ends may exceed the largest float, and the inverse of a smaller step, too.
  const float step = std::max(most / kMaxByte - least / kMaxByte, std::numeric_limits<float>::min());
  return {step, static_cast<int32_t>(std::nearbyint(-least * (1.0f / step)))};
}

void round_row(const float* row, int64_t depth, const RowGrid& grid, uint8_t* bytes) {
  const DF d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float inverse = 1.0f / grid.step;
  const auto factor = hn::Set(d, inverse);
  const auto zero = hn::Set(D32(), grid.zero);
  int64_t k = 0;
  for (; k + lanes <= depth; k += lanes) {
    const auto byte = hn::Add(hn::NearestInt(hn::Mul(hn::LoadU(d, row + k), factor)), zero);
    hn::StoreU(hn::DemoteTo(DBytes(), byte), DBytes(), bytes + k);  // saturates
  }
  for (; k < depth; ++k) {
    const int32_t byte = static_cast<int32_t>(std::nearbyint(row[k] * inverse)) + grid.zero;
    bytes[k] = static_cast<uint8_t>(std::clamp(byte, 0, 255));
  }
}

void quantize_row(const float* row, int64_t depth, uint8_t* bytes, RowGrid* grid) {
  *grid = grid_of(row, depth);
  if (std::isnan(grid->step)) {
    std::memset(bytes, 0, static_cast<size_t>(depth));
  } else {
    round_row(row, depth, *grid, bytes);
  }
}

HWY_INLINE void finish_row(const SumsOfTile& r, const RowGrid& grid) {
  const DF d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto step = hn::Set(d, grid.step);
  const auto zero = hn::Set(D32(), grid.zero);
  int64_t j = 0;
  for (; j + lanes <= r.count; j += lanes) {
    const auto excess = hn::Mul(hn::ShiftRight<7>(hn::LoadU(D32(), r.shifts + j)), zero);
    const auto sum = hn::ConvertTo(d, hn::Sub(hn::LoadU(D32(), r.sums + j), excess));
    auto result = hn::Mul(hn::Mul(sum, step), hn::LoadU(d, r.scale + j));
    if (r.bias) result = hn::Add(result, hn::LoadU(d, r.bias + j));
    if (r.addend) result = hn::Add(result, hn::LoadU(d, r.addend + j));
    hn::StoreU(result, d, r.out + j);
  }
  for (; j < r.count; ++j) {
    const int32_t sum = r.sums[j] - (r.shifts[j] >> 7) * grid.zero;
    r.out[j] = static_cast<float>(sum) * grid.step * r.scale[j] + (r.bias ? r.bias[j] : 0.0f) +
               (r.addend ? r.addend[j] : 0.0f);
  }
}

void finish_tile(SumsOfTile t) {
  for (int64_t r = 0; r < t.rows; ++r) {
    finish_row(t, t.grids[r]);
    t.sums += t.stride;
    t.out += t.columns;
    if (t.addend) t.addend += t.columns;
  }
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {

HWY_EXPORT(quantize_row);
HWY_EXPORT(finish_tile);

class Ends final : public ByteProductEnds {
 public:
  explicit Ends(const DynamicByteProduct& p, const RowGrid* grids)
      : p_(p), grids_(grids), shifts_(byte_shifts(p.packed, p.depth, p.columns)) {}

  void end(const GemmTile& tile, const int32_t* sums, int64_t stride) const override {
    const int64_t at = tile.row * p_.columns + tile.column;
    HWY_DYNAMIC_DISPATCH(finish_tile)
    ({.sums = sums,
      .stride = stride,
      .rows = tile.rows,
      .count = tile.columns,
      .grids = grids_ + tile.row,
      .shifts = shifts_ + tile.column,
      .scale = p_.scale + tile.column,
      .bias = p_.bias ? p_.bias + tile.column : nullptr,
      .addend = p_.addend ? p_.addend + at : nullptr,
      .out = p_.out + at,
      .columns = p_.columns});
    if (p_.ends) p_.ends->end(tile);
  }

 private:
  const DynamicByteProduct& p_;
  const RowGrid* grids_;
  const int32_t* shifts_;
};

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

void quantize_rows(const float* rows, int64_t count, int64_t depth, uint8_t* bytes, RowGrid* grids) {
  // Twice the time that a row takes, as the product wakes the team in any case.
  parallel_for(count, 0.5 * static_cast<double>(depth) + 40, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      HWY_DYNAMIC_DISPATCH(quantize_row)(rows + r * depth, depth, bytes + r * depth, grids + r);
  });
}

int64_t dynamic_byte_product_workspace(int64_t depth, int64_t count) {
  return aligned(count * depth) + aligned(count * static_cast<int64_t>(sizeof(RowGrid))) +
         byte_product_workspace(depth, count);
}

void dynamic_byte_product(const DynamicByteProduct& p) {
  auto* const bytes = static_cast<uint8_t*>(p.workspace);
  auto* const grids = reinterpret_cast<RowGrid*>(bytes + aligned(p.count * p.depth));
  quantize_rows(p.rows, p.count, p.depth, bytes, grids);
  const Ends ends(p, grids);
  byte_product({.packed = p.packed,
                .depth = p.depth,
                .columns = p.columns,
                .rows = bytes,
                .is_signed = false,
                .count = p.count,
                .workspace = grids + aligned(p.count * static_cast<int64_t>(sizeof(RowGrid))) / sizeof(RowGrid),
                .ends = &ends});
}

}  // namespace hybridnet::kernels
#endif
