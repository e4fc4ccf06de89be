#include "kernels/index/row_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "hybridnet/threads.h"
#include "storage/temporary.h"

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

constexpr int64_t kFewShare = 16;        // at most one of so many elements is wanted: one pass with a heap
constexpr int64_t kPartElements = 8192;  // of a long row, which the cores share
constexpr int64_t kRunElements = 32;     // compared with the heap together

template <typename Key>
struct Candidate {
  Key key;
  int64_t position;
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.key != b.key ? a.key < b.key : a.position < b.position;
  }
};

// Writes the k smallest of the elements [begin, end) to `best`, as a heap. Most runs have none of them.
template <typename Key, typename T>
void find_few(const T* row, int64_t begin, int64_t end, int64_t stride, Key turn, int64_t k, Candidate<Key>* best) {
  const auto key_at = [&](int64_t i) { return static_cast<Key>(key_of(row[i * stride]) ^ turn); };
  for (int64_t i = 0; i < k; ++i) best[i] = {key_at(begin + i), begin + i};
  std::make_heap(best, best + k);
  for (int64_t first = begin + k; first < end; first += kRunElements) {
    const int64_t last = std::min(end, first + kRunElements);
    Key least = static_cast<Key>(~Key{0});
    for (int64_t i = first; i < last; ++i) least = std::min(least, key_at(i));
    if (least >= best[0].key) continue;
    for (int64_t i = first; i < last; ++i) {
      if (key_at(i) >= best[0].key) continue;  // the first of equal elements precedes
      std::pop_heap(best, best + k);
      best[k - 1] = {key_at(i), i};
      std::push_heap(best, best + k);
    }
  }
}

// The positions of the k smallest elements, in order.
template <typename Key, typename T>
void order_few(const T* row, int64_t size, int64_t stride, Key turn, int64_t k, int64_t* order) {
  const int64_t parts = std::max<int64_t>(1, size / std::max(kPartElements, k * kFewShare));
  Temporary<Candidate<Key>> best(static_cast<size_t>(parts * k));
  parallel_for(parts, 0.5 * static_cast<double>(size / parts), [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part)
      find_few(row, size * part / parts, size * (part + 1) / parts, stride, turn, k, best.data() + part * k);
  });
  std::partial_sort(best.begin(), best.begin() + k, best.end());
  for (int64_t i = 0; i < k; ++i) order[i] = best[static_cast<size_t>(i)].position;
}

}  // namespace

// Partitions and sorts.
template <typename Item>
void RowOrder::select(Temporary<Item>& items, int64_t k) {
  const int64_t n = static_cast<int64_t>(items.size());
  const auto middle = items.begin() + k;
  if (k >= n) return std::sort(items.begin(), items.end());
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
  if (k > 0 && k * kFewShare <= size) {
    order_few(row, size, stride, turn, k, order_.data());
    return order_.data();
  }
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
