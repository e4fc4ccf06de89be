#include "kernels/index/row_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace hybridnet::kernels {
namespace {

// Unsigned integers in the same order as the values. The bits of positive floats are in order already, the bits of
// negative ones in reversed order.
uint32_t ordered_bits(float v) {
  if (v != v) return ~uint32_t{0};
  const uint32_t bits = std::bit_cast<uint32_t>(v + 0.0f);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
uint64_t ordered_bits(double v) {
  if (v != v) return ~uint64_t{0};
  const uint64_t bits = std::bit_cast<uint64_t>(v + 0.0);
  return bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
}
uint64_t ordered_bits(int64_t v) {
  return static_cast<uint64_t>(v) ^ uint64_t { 1 } << 63;
}

template <typename T>
auto key_of(T v) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, int64_t>)
    return ordered_bits(v);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<uint32_t>(static_cast<int32_t>(v)) ^ 0x80000000u;
  else
    return ordered_bits(static_cast<float>(v));
}

constexpr int64_t kRadixFrom = 400;  // elements; below, comparing is faster

}  // namespace

// Uses a heap of k elements if k is small, else partition and sort.
template <typename Item>
void RowOrder::select(Temporary<Item>& items, int64_t k) {
  const int64_t n = static_cast<int64_t>(items.size());
  const auto middle = items.begin() + k;
  if (k >= n) return std::sort(items.begin(), items.end());
  if (k * 16 <= n) return std::partial_sort(items.begin(), middle, items.end());
  std::nth_element(items.begin(), middle, items.end());
  std::sort(items.begin(), middle);
}

// Stable counting sorts by 11, 11 and 10 bits of the key, the least significant ones first; positions are ascending at
// the start.
void RowOrder::radix_sort() {
  constexpr int kBits = 11;
  constexpr size_t kBuckets = size_t{1} << kBits;
  const size_t n = packed_.size();
  spare_.resize(n);
  std::array<std::array<uint32_t, kBuckets>, 3> counts{};
  const auto digit = [](uint64_t item, size_t pass) { return item >> (32 + kBits * pass) & (kBuckets - 1); };
  for (uint64_t item : packed_)
    for (size_t pass = 0; pass < 3; ++pass) ++counts[pass][digit(item, pass)];
  for (size_t pass = 0; pass < 3; ++pass) {
    std::array<uint32_t, kBuckets>& starts = counts[pass];
    if (starts[digit(packed_[0], pass)] == n) continue;  // all digits are equal
    uint32_t sum = 0;
    for (uint32_t& start : starts) sum += std::exchange(start, sum);
    for (uint64_t item : packed_) spare_[starts[digit(item, pass)]++] = item;
    packed_.swap(spare_);
  }
}

template <typename T>
const int64_t* RowOrder::find(const T* row, int64_t size, int64_t stride, int64_t k, bool ascending) {
  using Key = decltype(key_of(T{}));
  const Key turn = ascending ? Key{0} : static_cast<Key>(~Key{0});
  order_.resize(static_cast<size_t>(k));
  if (sizeof(Key) == 8 || size > std::numeric_limits<uint32_t>::max()) {
    wide_.resize(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i)
      wide_[static_cast<size_t>(i)] = {static_cast<uint64_t>(key_of(row[i * stride]) ^ turn), i};
    select(wide_, k);
    for (int64_t i = 0; i < k; ++i) order_[static_cast<size_t>(i)] = wide_[static_cast<size_t>(i)].position;
    return order_.data();
  }
  packed_.resize(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i)
    packed_[static_cast<size_t>(i)] =
        static_cast<uint64_t>(key_of(row[i * stride]) ^ turn) << 32 | static_cast<uint64_t>(i);
  if (k == size && size >= kRadixFrom)
    radix_sort();
  else
    select(packed_, k);
  for (int64_t i = 0; i < k; ++i)
    order_[static_cast<size_t>(i)] = static_cast<int64_t>(packed_[static_cast<size_t>(i)] & 0xffffffffu);
  return order_.data();
}

template const int64_t* RowOrder::find(const float*, int64_t, int64_t, int64_t, bool);
template const int64_t* RowOrder::find(const double*, int64_t, int64_t, int64_t, bool);
template const int64_t* RowOrder::find(const float16*, int64_t, int64_t, int64_t, bool);
template const int64_t* RowOrder::find(const bfloat16*, int64_t, int64_t, int64_t, bool);
template const int64_t* RowOrder::find(const uint8_t*, int64_t, int64_t, int64_t, bool);
template const int64_t* RowOrder::find(const int8_t*, int64_t, int64_t, int64_t, bool);
template const int64_t* RowOrder::find(const int32_t*, int64_t, int64_t, int64_t, bool);
template const int64_t* RowOrder::find(const int64_t*, int64_t, int64_t, int64_t, bool);
template const int64_t* RowOrder::find(const bool*, int64_t, int64_t, int64_t, bool);

}  // namespace hybridnet::kernels
