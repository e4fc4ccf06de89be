// Loops of reductions over rows and columns.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/reduce_loops.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/integers.h"
#include "kernels/reduce/reduce.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The operations of a reduction on an element (map) and on two accumulators (combine), for scalars and for vectors.
struct Identity {
  template <class A>
  static HWY_INLINE A map(A x) {
    return x;
  }
  template <class D, class V>
  static HWY_INLINE V map(D, V x) {
    return x;
  }
};
struct SumStep : Identity {
  static constexpr bool kSelects = false;
  template <class A>
  static A identity() {
    return A(0);
  }
  template <class A>
  static HWY_INLINE A combine(A a, A b) {
    return a + b;
  }
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Add(a, b);
  }
};
struct SumAbsStep : SumStep {
  template <class A>
  static HWY_INLINE A map(A x) {
    return x < A(0) ? static_cast<A>(A(0) - wrapping_t<A>(x)) : x;
  }
  template <class D, class V>
  static HWY_INLINE V map(D, V x) {
    return hn::Abs(x);
  }
};
struct SumSquaresStep : SumStep {
  template <class A>
  static HWY_INLINE A map(A x) {
    return static_cast<A>(wrapping_t<A>(x) * wrapping_t<A>(x));
  }
  template <class D, class V>
  static HWY_INLINE V map(D, V x) {
    return hn::Mul(x, x);
  }
};
struct NansumStep : SumStep {
  template <class A>
  static HWY_INLINE A map(A x) {
    return x == x ? x : A(0);
  }
  template <class D, class V>
  static HWY_INLINE V map(D d, V x) {
    return hn::IfThenElse(hn::Eq(x, x), x, hn::Zero(d));
  }
};
struct ProdStep : Identity {
  static constexpr bool kSelects = false;
  template <class A>
  static A identity() {
    return A(1);
  }
  template <class A>
  static HWY_INLINE A combine(A a, A b) {
    return a * b;
  }
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Mul(a, b);
  }
};
struct NanprodStep : ProdStep {
  template <class A>
  static HWY_INLINE A map(A x) {
    return x == x ? x : A(1);
  }
  template <class D, class V>
  static HWY_INLINE V map(D d, V x) {
    return hn::IfThenElse(hn::Eq(x, x), x, hn::Set(d, 1));
  }
};
struct MaxStep : Identity {
  static constexpr bool kSelects = true;  // the result is one of the elements: no wider accumulator
  template <class A>
  static A identity() {
    if constexpr (std::is_floating_point_v<A>) return -std::numeric_limits<A>::infinity();
    return std::numeric_limits<A>::lowest();
  }
  template <class A>
  static HWY_INLINE A combine(A a, A b) {
    return b > a || b != b ? b : a;
  }
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
  }
};
struct MinStep : Identity {
  static constexpr bool kSelects = true;
  template <class A>
  static A identity() {
    if constexpr (std::is_floating_point_v<A>) return std::numeric_limits<A>::infinity();
    return std::numeric_limits<A>::max();
  }
  template <class A>
  static HWY_INLINE A combine(A a, A b) {
    return b < a || b != b ? b : a;
  }
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
  }
};

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

template <class Step, class T>
using Accumulator = std::conditional_t<
    kIsHalf<T>, std::conditional_t<Step::kSelects, float, double>,
    std::conditional_t<Step::kSelects, T, std::conditional_t<std::is_floating_point_v<T>, double, int64_t>>>;

template <class Step, class A>
HWY_INLINE A combine(A a, A b) {
  if constexpr (Step::kSelects) {
    return Step::combine(a, b);
  } else {
    return static_cast<A>(Step::combine(static_cast<wrapping_t<A>>(a), static_cast<wrapping_t<A>>(b)));
  }
}

template <class A, class T, class D>
HWY_INLINE hn::Vec<D> load_as(D d, const T* in) {
  if constexpr (std::is_same_v<A, T>) {
    return hn::LoadU(d, in);
  } else {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), in));
  }
}

template <class Step, class T, class A>
HWY_INLINE A float_row(const T* in, int64_t n) {
  const hn::ScalableTag<A> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  A result = Step::template identity<A>();
  int64_t i = 0;
  if (n >= lanes) {
    // Four independent sums hide the latency of an addition.
    auto a0 = hn::Set(d, result), a1 = a0, a2 = a0, a3 = a0;
    const auto step = [&](auto& acc, int64_t at)
                          HWY_ATTR { acc = Step::combine(d, acc, Step::map(d, load_as<A>(d, in + at))); };
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      step(a0, i), step(a1, i + lanes), step(a2, i + 2 * lanes), step(a3, i + 3 * lanes);
    }
    for (; i + lanes <= n; i += lanes) step(a0, i);
    HWY_ALIGN A parts[HWY_MAX_BYTES / sizeof(A)];
    hn::Store(Step::combine(d, Step::combine(d, a0, a1), Step::combine(d, a2, a3)), d, parts);
    // Halving keeps the order of additions balanced.
    for (int64_t m = lanes / 2; m > 0; m /= 2)
      for (int64_t j = 0; j < m; ++j) parts[j] = Step::combine(parts[j], parts[j + m]);
    result = parts[0];
  }
  for (; i < n; ++i) result = Step::combine(result, Step::map(static_cast<A>(in[i])));
  return result;
}

template <class Step, class T, class A>
HWY_INLINE A any_row(const T* in, int64_t n) {
  if constexpr (std::is_floating_point_v<T>) {
    return float_row<Step, T, A>(in, n);
  } else if constexpr (kIsHalf<T>) {
    constexpr int64_t kTile = 1024;
    float tile[kTile];
    A result = Step::template identity<A>();
    for (int64_t i = 0; i < n; i += kTile) {
      const int64_t m = std::min(kTile, n - i);
      convert(dtype_of<T>::value, in + i, DType::kFloat32, tile, m);
      result = Step::combine(result, float_row<Step, float, A>(tile, m));
    }
    return result;
  } else {
    A result = Step::template identity<A>();
    for (int64_t i = 0; i < n; ++i) result = combine<Step>(result, Step::map(static_cast<A>(in[i])));
    return result;
  }
}

template <class Step, class T>
void rows(const void* in_memory, int64_t count, int64_t length, void* acc_memory) {
  using A = Accumulator<Step, T>;
  const T* in = static_cast<const T*>(in_memory);
  A* acc = static_cast<A*>(acc_memory);
  for (int64_t r = 0; r < count; ++r) acc[r] = any_row<Step, T, A>(in + r * length, length);
}

// kMap: false if the rows are accumulators.
template <class Step, class T, class A, bool kMap>
void column_span(const T* in, int64_t count, int64_t stride, int64_t width, A* acc) {
  const auto value = [](T x) { return kMap ? Step::map(static_cast<A>(x)) : static_cast<A>(x); };
  int64_t r = 0;
  if constexpr (std::is_floating_point_v<T>) {
    const hn::ScalableTag<A> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto load = [&](const T* from) HWY_ATTR {
      const auto x = load_as<A>(d, from);
      if constexpr (kMap)
        return Step::map(d, x);
      else
        return x;
    };
    for (; r + 4 <= count; r += 4) {  // four rows at a time, so that accumulators are read and written once for them
      const T *p0 = in + r * stride, *p1 = p0 + stride, *p2 = p1 + stride, *p3 = p2 + stride;
      int64_t j = 0;
      for (; j + lanes <= width; j += lanes) {
        const auto first = Step::combine(d, load(p0 + j), load(p1 + j));
        const auto second = Step::combine(d, load(p2 + j), load(p3 + j));
        hn::StoreU(Step::combine(d, hn::LoadU(d, acc + j), Step::combine(d, first, second)), d, acc + j);
      }
      for (; j < width; ++j) {
        const A first = Step::combine(value(p0[j]), value(p1[j])), second = Step::combine(value(p2[j]), value(p3[j]));
        acc[j] = Step::combine(acc[j], Step::combine(first, second));
      }
    }
    for (; r < count; ++r) {
      const T* p = in + r * stride;
      int64_t j = 0;
      for (; j + lanes <= width; j += lanes) {
        hn::StoreU(Step::combine(d, hn::LoadU(d, acc + j), load(p + j)), d, acc + j);
      }
      for (; j < width; ++j) acc[j] = Step::combine(acc[j], value(p[j]));
    }
  } else {
    for (; r < count; ++r) {
      const T* p = in + r * stride;
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) acc[j] = combine<Step>(acc[j], value(p[j]));
    }
  }
}

template <class Step, class T>
void columns(const void* in_memory, int64_t count, int64_t stride, int64_t width, void* acc_memory) {
  using A = Accumulator<Step, T>;
  const T* in = static_cast<const T*>(in_memory);
  A* acc = static_cast<A*>(acc_memory);
  if constexpr (kIsHalf<T>) {
    float tile[ReduceLoops::kMaxWidth];
    for (int64_t r = 0; r < count; ++r) {
      convert(dtype_of<T>::value, in + r * stride, DType::kFloat32, tile, width);
      column_span<Step, float, A, true>(tile, 1, 0, width, acc);
    }
  } else {
    column_span<Step, T, A, true>(in, count, stride, width, acc);
  }
}

template <class Step, class A>
void merge(const void* in, int64_t count, int64_t stride, int64_t width, void* acc) {
  column_span<Step, A, A, false>(static_cast<const A*>(in), count, stride, width, static_cast<A*>(acc));
}

template <class Step, class A>
void clear(void* acc, int64_t n) {
  std::fill_n(static_cast<A*>(acc), n, Step::template identity<A>());
}

template <class Step>
void fill_row(ReduceLoops* row) {
  const auto set = [row]<class T>(T) {
    using A = Accumulator<Step, T>;
    ReduceLoops& loops = row[static_cast<int>(dtype_of<T>::value)];
    loops.accumulator = dtype_of<A>::value;
    loops.rows = &rows<Step, T>;
    loops.columns = &columns<Step, T>;
    loops.merge = &merge<Step, A>;
    loops.clear = &clear<Step, A>;
  };
  set(float{}), set(double{}), set(float16{}), set(bfloat16{}), set(int8_t{}), set(uint8_t{}), set(int32_t{}),
      set(int64_t{});
}

void fill_reduce(ReduceTable& table) {
  const auto row = [&table](Reduction r) { return table[static_cast<int>(r)]; };
  fill_row<SumStep>(row(Reduction::kSum));
  fill_row<NansumStep>(row(Reduction::kNansum));
  fill_row<ProdStep>(row(Reduction::kProd));
  fill_row<NanprodStep>(row(Reduction::kNanprod));
  fill_row<MaxStep>(row(Reduction::kMax));
  fill_row<MinStep>(row(Reduction::kMin));
  fill_row<SumAbsStep>(row(Reduction::kSumAbs));
  fill_row<SumSquaresStep>(row(Reduction::kSumSquares));
  // A bool is a byte of 0 or 1.
  for (auto& loops : table) loops[static_cast<int>(DType::kBool)] = loops[static_cast<int>(DType::kUInt8)];
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
HWY_EXPORT(fill_reduce);
void fill_reduce(ReduceTable& table) { HWY_DYNAMIC_DISPATCH(fill_reduce)(table); }
}  // namespace hybridnet::kernels
#endif
