#include "kernels/elementwise/add_n.h"

#include <algorithm>
#include <cstring>

#include "device/stream.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/device_map.h"
#include "kernels/elementwise/pointwise.h"

namespace hybridnet::kernels {

void add_n(DType dtype, std::span<const void* const> in, void* out, int64_t n) {
  if (device::current()) return add_n_on_device(dtype, in, out, n);
  const bool halves = is_half(dtype);
  const DType through = halves ? DType::kFloat32 : dtype;
  const SpanFn add = loops(Pointwise::kAdd).fn[0][static_cast<int>(through)];
  const ConvertFn widen = convert_fn(dtype, through), narrow = convert_fn(through, dtype);
  const int64_t size = dtype_size(dtype);
  const double cost = 0.12 * static_cast<double>(in.size());
  parallel_for(n, cost, [&](int64_t begin, int64_t end) {
    constexpr int64_t kTile = 1024;
    alignas(64) double sum[kTile], next[kTile];  // room for any dtype
    for (int64_t i = begin; i < end; i += kTile) {
      const int64_t m = std::min(kTile, end - i);
      const auto part = [&](size_t k) { return static_cast<const char*>(in[k]) + i * size; };
      widen(part(0), sum, m);
      for (size_t k = 1; k < in.size(); ++k) {
        const void* operand = part(k);
        if (halves) {
          widen(operand, next, m);
          operand = next;
        }
        const void* pair[2] = {sum, operand};
        add(pair, sum, m, nullptr);
      }
      narrow(sum, static_cast<char*>(out) + i * size, m);
    }
  });
}

}  // namespace hybridnet::kernels
