// Loops over contiguous rows for kernels that Highway compiles once per SIMD target: whole vectors, then one partial
// vector. Included once per target, hence the toggled guard.
#if defined(HYBRIDNET_VECTOR_ROWS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_VECTOR_ROWS_H_
#undef HYBRIDNET_VECTOR_ROWS_H_
#else
#define HYBRIDNET_VECTOR_ROWS_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// True if masked loads and stores at p never fault. On AVX2, masked-out lanes may count as read or written on some
// machines, which matters only if the vector extends into the next page.
template <class D>
HWY_INLINE bool masks_cannot_fault(D d, const void* p) {
#if !HWY_MEM_OPS_MIGHT_FAULT
  (void)d, (void)p;
  return true;
#elif HWY_TARGET == HWY_AVX2 && !HWY_IS_MSAN
  constexpr uintptr_t kPage = 4096;
  return reinterpret_cast<uintptr_t>(p) % kPage <= kPage - sizeof(hn::TFromD<D>) * hn::Lanes(d);
#else
  (void)d, (void)p;
  return false;
#endif
}

// Loads the first `count` lanes from memory and sets the others to `rest`. Never reads beyond the count.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_part(D d, const T* from, int64_t count, T rest) {
  if (HWY_LIKELY(masks_cannot_fault(d, from))) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(count));
    return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, from), hn::Set(d, rest));
  }
  HWY_ALIGN T lanes[hn::MaxLanes(D())];
  std::fill_n(lanes, hn::Lanes(d), rest);
  std::copy_n(from, count, lanes);
  return hn::Load(d, lanes);
}

template <class D, typename T = hn::TFromD<D>>
HWY_INLINE void store_part(hn::Vec<D> v, D d, T* to, int64_t count) {
  if (HWY_LIKELY(masks_cannot_fault(d, to))) {
    hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, to);
    return;
  }
  HWY_ALIGN T lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  std::copy_n(lanes, count, to);
}

// Reads rows of n elements; one accessor for whole vectors, one for the last partial vector.
template <class D>
struct WholeVector {
  using T = hn::TFromD<D>;
  D d;
  HWY_INLINE hn::Vec<D> load(const T* from, T = T(0)) const { return hn::LoadU(d, from); }
  HWY_INLINE void store(hn::Vec<D> v, T* to) const { hn::StoreU(v, d, to); }
  // Lanes outside the row become `rest`.
  HWY_INLINE hn::Vec<D> keep(hn::Vec<D> v, T) const { return v; }
};
template <class D>
struct PartialVector {
  using T = hn::TFromD<D>;
  D d;
  int64_t count;
  HWY_INLINE hn::Vec<D> load(const T* from, T rest = T(0)) const { return load_part(d, from, count, rest); }
  HWY_INLINE void store(hn::Vec<D> v, T* to) const { store_part(v, d, to, count); }
  HWY_INLINE hn::Vec<D> keep(hn::Vec<D> v, T rest) const {
    return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(count)), v, hn::Set(d, rest));
  }
};

// Calls f(accessor, offset) along a row of n elements.
template <typename T, typename F>
HWY_INLINE void along_row(int64_t n, F&& f) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(WholeVector<decltype(d)>{d}, i);
  if (i < n) f(PartialVector<decltype(d)>{d, n - i}, i);
}

// Joins f(accessor, offset) along a row by join(vector, vector) into one vector, with four interleaved chains of joins.
// `start` must be neutral, and f must return neutral values for lanes outside the row. The order depends on n only.
template <typename T, class V, typename Join, typename F>
HWY_INLINE V join_row(int64_t n, V start, Join&& join, F&& f) {
  const hn::ScalableTag<T> d;
  const WholeVector<decltype(d)> whole{d};
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V a = start, b = start, c = start, e = start;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = join(a, f(whole, i));
    b = join(b, f(whole, i + lanes));
    c = join(c, f(whole, i + 2 * lanes));
    e = join(e, f(whole, i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = join(a, f(whole, i));
  if (i < n) b = join(b, f(PartialVector<decltype(d)>{d, n - i}, i));
  return join(join(a, b), join(c, e));
}

// Sum of f(accessor, offset) along a row; lanes outside the row must be zero (they are, if f keeps loaded zeros zero).
template <typename T, typename F>
HWY_INLINE T sum_row(int64_t n, F&& f) {
  const hn::ScalableTag<T> d;
  const auto add = [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
  return hn::GetLane(hn::SumOfLanes(d, join_row<T>(n, hn::Zero(d), add, f)));
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
