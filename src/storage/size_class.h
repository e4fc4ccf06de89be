// Block sizes of the pool. Each request is rounded up to one of them, so that freed blocks fit later requests.
//
// Up to 4 KiB the step is 64 bytes. Above, each doubling has four steps (5, 6, 7, 8 KiB, 10, 12, ...), so at most 25 %
// of a block is unused. Above 64 MiB, where 25 % is much memory, sizes are multiples of 16 MiB without a class.
#pragma once

#include <bit>
#include <cstdint>

namespace hybridnet {

inline constexpr int64_t kAlignment = 64;
inline constexpr int64_t kFineLimit = 4096;                // multiples of 64 up to here
inline constexpr int64_t kCachedLimit = 64 * 1024;         // thread caches hold blocks up to here
inline constexpr int64_t kClassLimit = int64_t{64} << 20;  // numbered classes end here
inline constexpr int64_t kHugeStep = int64_t{16} << 20;
inline constexpr int kFineClasses = kFineLimit / kAlignment;  // 64
inline constexpr int kCachedClasses = kFineClasses + 4 * 4;   // 4 doublings from 4 KiB to 64 KiB
inline constexpr int kClasses = kFineClasses + 4 * 14;        // 14 doublings from 4 KiB to 64 MiB

// The class that serves `bytes`, 1 <= bytes <= kClassLimit.
constexpr int size_class(int64_t bytes) {
  if (bytes <= kFineLimit) return static_cast<int>((bytes - 1) / kAlignment);
  const uint64_t last = static_cast<uint64_t>(bytes - 1);
  const int doubling = std::bit_width(last) - 1;  // 2^doubling <= last
  const int quarter = static_cast<int>(last >> (doubling - 2) & 3);
  return kFineClasses + 4 * (doubling - 12) + quarter;
}

constexpr int64_t class_bytes(int size_class) {
  if (size_class < kFineClasses) return (size_class + 1) * kAlignment;
  const int doubling = 12 + (size_class - kFineClasses) / 4;
  const int quarter = (size_class - kFineClasses) % 4;
  return (int64_t{5} + quarter) << (doubling - 2);
}

// The size of the block for a request of 1 <= bytes <= INT64_MAX - kHugeStep.
constexpr int64_t rounded_bytes(int64_t bytes) {
  if (bytes <= kClassLimit) return class_bytes(size_class(bytes));
  return (bytes + kHugeStep - 1) / kHugeStep * kHugeStep;
}

static_assert(class_bytes(size_class(1)) == 64 && class_bytes(size_class(4096)) == 4096);
static_assert(class_bytes(size_class(4097)) == 5 * 1024 && class_bytes(size_class(8192)) == 8192);
static_assert(size_class(kCachedLimit) == kCachedClasses - 1 && size_class(kClassLimit) == kClasses - 1);

}  // namespace hybridnet
