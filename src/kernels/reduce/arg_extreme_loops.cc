// Loops of argmax and argmin: every lane keeps its best element and that element's position.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/arg_extreme_loops.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "kernels/reduce/arg_extreme.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// True if x is better than the best element so far. NaN beats everything but NaN.
template <Extreme E, class T>
HWY_INLINE bool beats(T x, T best) {
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return best == best;
  }
  return E == Extreme::kMax ? x > best : x < best;
}
template <Extreme E, class D, class V>
HWY_INLINE hn::Mask<D> beats(D, V x, V best) {
  const auto further = E == Extreme::kMax ? hn::Gt(x, best) : hn::Lt(x, best);
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
    return hn::Or(further, hn::And(hn::IsNaN(x), hn::Eq(best, best)));
  } else {
    return further;
  }
}

template <Extreme E, class T>
void merge(const void* candidates, const int64_t* their_positions, int64_t n, void* values, int64_t* positions) {
  const T* theirs = static_cast<const T*>(candidates);
  T* best = static_cast<T*>(values);
  for (int64_t i = 0; i < n; ++i) {
    if (!beats<E>(theirs[i], best[i])) continue;
    best[i] = theirs[i];
    positions[i] = their_positions[i];
  }
}

template <Extreme E, class T>
void row(const void* memory, int64_t count, void* value, int64_t* position) {
  using I = hwy::MakeSigned<T>;
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* in = static_cast<const T*>(memory);
  T best = in[0];
  int64_t at = 0, i = 0;
  if (count >= lanes) {
    auto most = hn::LoadU(d, in);
    auto here = hn::Iota(di, 0), where = here;
    const auto step = hn::Set(di, static_cast<I>(lanes));
    for (i = lanes; i + lanes <= count; i += lanes) {
      here = hn::Add(here, step);
      const auto x = hn::LoadU(d, in + i);
      const auto taken = beats<E>(d, x, most);
      most = hn::IfThenElse(taken, x, most);
      where = hn::IfThenElse(hn::RebindMask(di, taken), here, where);
    }
    HWY_ALIGN T values[HWY_MAX_BYTES / sizeof(T)];
    HWY_ALIGN I positions[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(most, d, values);
    hn::Store(where, di, positions);
    best = values[0];
    at = positions[0];
    for (int64_t j = 1; j < lanes; ++j) {
      const bool equal = !beats<E>(values[j], best) && !beats<E>(best, values[j]);
      if (beats<E>(values[j], best) || (equal && positions[j] < at)) best = values[j], at = positions[j];
    }
  }
  for (; i < count; ++i) {
    if (beats<E>(in[i], best)) best = in[i], at = i;
  }
  *static_cast<T*>(value) = best;
  *position = at;
}

template <Extreme E, class T>
void columns(const void* memory, int64_t count, int64_t stride, int64_t width, void* values, int64_t* positions) {
  using I = hwy::MakeSigned<T>;
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* in = static_cast<const T*>(memory);
  T* best = static_cast<T*>(values);
  HWY_ALIGN I at[ArgExtremeLoops::kMaxWidth];
  std::copy_n(in, width, best);
  std::fill_n(at, width, I(0));
  for (int64_t r = 1; r < count; ++r) {
    const T* p = in + r * stride;
    const auto here = hn::Set(di, static_cast<I>(r));
    int64_t j = 0;
    for (; j + lanes <= width; j += lanes) {
      const auto x = hn::LoadU(d, p + j), most = hn::LoadU(d, best + j);
      const auto taken = beats<E>(d, x, most);
      hn::StoreU(hn::IfThenElse(taken, x, most), d, best + j);
      hn::StoreU(hn::IfThenElse(hn::RebindMask(di, taken), here, hn::LoadU(di, at + j)), di, at + j);
    }
    for (; j < width; ++j) {
      if (beats<E>(p[j], best[j])) best[j] = p[j], at[j] = static_cast<I>(r);
    }
  }
  for (int64_t j = 0; j < width; ++j) positions[j] = at[j];
}

template <Extreme E>
void fill_row(ArgExtremeLoops* loops) {
  const auto set = [loops]<class T>(T) {
    loops[static_cast<int>(dtype_of<T>::value)] = {&row<E, T>, &columns<E, T>, &merge<E, T>};
  };
  set(float{}), set(double{}), set(int32_t{}), set(int64_t{});
}

void fill_arg_extreme(ArgExtremeTable& table) {
  fill_row<Extreme::kMax>(table[static_cast<int>(Extreme::kMax)]);
  fill_row<Extreme::kMin>(table[static_cast<int>(Extreme::kMin)]);
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
HWY_EXPORT(fill_arg_extreme);
void fill_arg_extreme(ArgExtremeTable& table) { HWY_DYNAMIC_DISPATCH(fill_arg_extreme)(table); }
}  // namespace hybridnet::kernels
#endif
