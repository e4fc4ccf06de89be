#include "kernels/dnnl/post_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "hybridnet/threads.h"
#include "kernels/elementwise/convert.h"

namespace hybridnet::onednn {
void apply(const Activation& a, DType dtype, void* data, int64_t n) {
  if (a.kind == ActivationKind::kNone) return;
  const double scalars[] = {a.alpha, a.beta};
  const void* const in[] = {data};
  kernels::apply_parallel(loops_of(a.kind), dtype, in, data, n, scalars);
}

void apply_where_not_finite(const Activation& a, DType dtype, const void* sums, void* out, int64_t n) {
  const auto bytes = static_cast<int64_t>(dtype_size(dtype));
  const double scalars[] = {a.alpha, a.beta};
  parallel_for(n, 0.5, [&](int64_t begin, int64_t end) {
    constexpr int64_t kBlock = 512;
    float before[kBlock], after[kBlock], wrong[kBlock];
    char results[kBlock * sizeof(float)];
    const void* const in[] = {before};
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t count = std::min(kBlock, end - at);
      kernels::convert(dtype, static_cast<const char*>(sums) + at * bytes, DType::kFloat32, before, count);
      kernels::convert(dtype, static_cast<const char*>(out) + at * bytes, DType::kFloat32, wrong, count);
      const auto stays = [&](int64_t i) { return std::isfinite(before[i]) && std::isfinite(wrong[i]); };
      int64_t first = 0;
      while (first < count && stays(first)) ++first;
      if (first == count) continue;
      kernels::apply(loops_of(a.kind), DType::kFloat32, in, after, count, scalars);
      kernels::convert(DType::kFloat32, after, dtype, results, count);
      for (int64_t i = first; i < count; ++i) {
        if (stays(i)) continue;
        std::memcpy(static_cast<char*>(out) + (at + i) * bytes, results + i * bytes, static_cast<size_t>(bytes));
      }
    }
  });
}

}  // namespace hybridnet::onednn
