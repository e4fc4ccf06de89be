#include "kernels/norm/log_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/log_rows.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "kernels/elementwise/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

template <class F>
HWY_INLINE void for_lanes(int64_t n, const F& f) {
  const hn::ScalableTag<double> d;
  const hn::CappedTag<double, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(d, i);
  for (; i < n; ++i) f(one, i);
}

void sum3(const double* a, const double* b, const double* c, const double* gate, const double* add, int64_t n,
          double* out) {
  for_lanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto x = hn::LoadU(d, a + i), y = hn::LoadU(d, b + i),
               z = hn::Add(hn::LoadU(d, c + i), hn::LoadU(d, gate + i));
    // If all three are -infinity, a finite shift avoids -infinity - -infinity.
    const auto shift = hn::Max(hn::Max(hn::Max(x, y), z), constant(d, -1e300));
    const auto total =
        hn::Add(hn::Add(exp(d, hn::Sub(x, shift)), exp(d, hn::Sub(y, shift))), exp(d, hn::Sub(z, shift)));
    hn::StoreU(hn::Add(hn::Add(log(d, total), shift), hn::LoadU(d, add + i)), d, out + i);
  });
}

void exponentials(const double* a, double shift, int64_t n, double* out) {
  for_lanes(n, [&](auto d, int64_t i)
                   HWY_ATTR { hn::StoreU(exp(d, hn::Sub(hn::LoadU(d, a + i), hn::Set(d, shift))), d, out + i); });
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {

HWY_EXPORT(sum3);
HWY_EXPORT(exponentials);

void log_sum3(const double* a, const double* b, const double* c, const double* gate, const double* add, int64_t n,
              double* out) {
  HWY_DYNAMIC_DISPATCH(sum3)(a, b, c, gate, add, n, out);
}
void exp_row(const double* a, double shift, int64_t n, double* out) {
  HWY_DYNAMIC_DISPATCH(exponentials)(a, shift, n, out);
}

}  // namespace hybridnet::kernels
#endif
