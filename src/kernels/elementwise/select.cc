#include "kernels/elementwise/select.h"

#include <algorithm>

#include "device/stream.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/device_map.h"
#include "kernels/elementwise/pointwise.h"

namespace hybridnet::kernels {
namespace {

template <class U>
void select_span(const bool* condition, const void* x_memory, const void* y_memory, void* out_memory, int64_t n) {
  const U* x = static_cast<const U*>(x_memory);
  const U* y = static_cast<const U*>(y_memory);
  U* out = static_cast<U*>(out_memory);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const U chosen =
        static_cast<U>(-static_cast<U>(condition[i]));  // all bits or none: both sides are read, without a branch
    out[i] = static_cast<U>((x[i] & chosen) | (y[i] & static_cast<U>(~chosen)));
  }
}

using SelectFn = void (*)(const bool*, const void*, const void*, void*, int64_t);
SelectFn select_fn(int64_t item_size) {
  switch (item_size) {
    case 1:
      return select_span<uint8_t>;
    case 2:
      return select_span<uint16_t>;
    case 4:
      return select_span<uint32_t>;
    default:
      return select_span<uint64_t>;
  }
}

}  // namespace

void select(DType condition_dtype, const void* condition, int64_t item_size, const void* x, const void* y, void* out,
            int64_t n) {
  if (device::current()) return select_on_device(condition_dtype, condition, item_size, x, y, out, n);
  const SelectFn fn = select_fn(item_size);
  const ConvertFn to_bool = convert_fn(condition_dtype, DType::kBool);
  const int64_t condition_size = dtype_size(condition_dtype);
  parallel_for(n, 0.5, [&](int64_t begin, int64_t end) {
    constexpr int64_t kTile = 1024;
    bool tile[kTile];
    for (int64_t i = begin; i < end; i += kTile) {
      const int64_t m = std::min(kTile, end - i);
      to_bool(static_cast<const char*>(condition) + i * condition_size, tile, m);
      fn(tile, static_cast<const char*>(x) + i * item_size, static_cast<const char*>(y) + i * item_size,
         static_cast<char*>(out) + i * item_size, m);
    }
  });
}

}  // namespace hybridnet::kernels
