#include "kernels/elementwise/finite.h"

#include <algorithm>
#include <atomic>

#include "hybridnet/threads.h"
#include "kernels/elementwise/pointwise.h"

namespace hybridnet::kernels {
namespace {

// Infinite and NaN have all bits of the exponent set. Counting instead of an early exit lets the compiler vectorize the
// loop.
template <class Bits>
bool is_span_finite(const void* memory, int64_t n, Bits exponent) {
  constexpr int64_t kTile = 8192;
  const Bits* in = static_cast<const Bits*>(memory);
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t end = std::min(n, i + kTile);
    Bits found = 0;
    for (int64_t j = i; j < end; ++j) found |= static_cast<Bits>((in[j] & exponent) == exponent ? 1 : 0);
    if (found != 0) return false;
  }
  return true;
}

bool is_span_finite(DType dtype, const void* in, int64_t n) {
  switch (dtype) {
    case DType::kFloat32:
      return is_span_finite<uint32_t>(in, n, 0x7F800000u);
    case DType::kFloat64:
      return is_span_finite<uint64_t>(in, n, 0x7FF0000000000000u);
    case DType::kFloat16:
      return is_span_finite<uint16_t>(in, n, 0x7C00u);
    case DType::kBFloat16:
      return is_span_finite<uint16_t>(in, n, 0x7F80u);
    default:
      return true;
  }
}

}  // namespace

bool all_finite(DType dtype, const void* in, int64_t n) {
  std::atomic<bool> finite{true};
  const int64_t size = dtype_size(dtype);
  parallel_for(n, 0.2, [&](int64_t begin, int64_t end) {
    if (!finite.load(std::memory_order_relaxed)) return;
    if (!is_span_finite(dtype, static_cast<const char*>(in) + begin * size, end - begin))
      finite.store(false, std::memory_order_relaxed);
  });
  return finite.load();
}

}  // namespace hybridnet::kernels
