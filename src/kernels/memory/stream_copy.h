// Copies to memory past the caches: for results larger than the caches, whose cache lines would be read only to be
// overwritten.
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hybridnet::kernels {

// Other threads can read the bytes after stream_fence(). The ranges must not overlap.
inline void stream_copy(void* to, const void* from, int64_t bytes) {
#if defined(__SSE2__)
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  const auto odd = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(target) & 15);
  if (const int64_t head = odd < bytes ? odd : bytes; head > 0) {
    std::memcpy(target, source, static_cast<size_t>(head));
    target += head, source += head, bytes -= head;
  }
  for (; bytes >= 64; bytes -= 64, target += 64, source += 64) {
    for (int i = 0; i < 64; i += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i)));
  }
  if (bytes > 0) std::memcpy(target, source, static_cast<size_t>(bytes));
#else
  std::memcpy(to, from, static_cast<size_t>(bytes));
#endif
}

inline void stream_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace hybridnet::kernels
