// Turns functors into span functions, once per SIMD target. Included by kernels/elementwise/*_loops.cc inside Highway's
// per-target compilation (hwy/foreach_target.h), hence the toggled guard.
//
// A functor is either plain, `template <class T> T operator()(T...) const`, compiled for all its dtypes and vectorized
// by the compiler, or a vector functor (kVector), `template <class D, class V> V operator()(D, V...) const`, for
// float32 and float64. Functors with parameters are templates over the element type and constructed from `const double*
// scalars`, of which they read kScalars.
//
// Devices compile the same functors (kernels/elementwise/device_map.h): the tables keep their names, too.
#if defined(HYBRIDNET_SPAN_LOOPS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_SPAN_LOOPS_H_
#undef HYBRIDNET_SPAN_LOOPS_H_
#else
#define HYBRIDNET_SPAN_LOOPS_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "kernels/elementwise/pointwise.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class F>
F make_functor(const double* scalars) {
  if constexpr (requires { F(scalars); }) {
    return F(scalars);
  } else {
    return F();
  }
}

template <bool kRepeated, class D, class T>
HWY_INLINE hn::Vec<D> load(D d, const T* in, int64_t i) {
  if constexpr (kRepeated) {
    return hn::Set(d, in[0]);
  } else {
    return hn::LoadU(d, in + i);
  }
}

// For fewer elements than a vector has lanes.
template <class F, class T, int kRepeatMask, size_t... K>
void short_span(const F& f, const void* const* in, T* out, int64_t n, std::index_sequence<K...>) {
  const hn::ScalableTag<T> d;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  const auto wanted = hn::FirstN(d, static_cast<size_t>(n));
  const auto part = [&](const T* from, bool repeated)
                        HWY_ATTR { return repeated ? hn::Set(d, from[0]) : hn::MaskedLoad(wanted, d, from); };
  hn::BlendedStore(f(d, part(static_cast<const T*>(in[K]), (kRepeatMask >> K & 1) != 0)...), wanted, d, out);
#else
  HWY_ALIGN T part[sizeof...(K)][HWY_MAX_BYTES / sizeof(T)];
  HWY_ALIGN T result[HWY_MAX_BYTES / sizeof(T)];
  const auto fill = [&](T* to, const T* from, bool repeated) HWY_ATTR {
    hn::Store(hn::Set(d, from[0]), d, to);
    for (int64_t j = 1; j < n && !repeated; ++j) to[j] = from[j];
  };
  (fill(part[K], static_cast<const T*>(in[K]), (kRepeatMask >> K & 1) != 0), ...);
  hn::Store(f(d, hn::Load(d, part[K])...), d, result);
  for (int64_t j = 0; j < n; ++j) out[j] = result[j];
#endif
}

// kRepeatMask: if bit k is set, input k is a single element.
template <class F, class T, int kRepeatMask, size_t... K>
void vector_span(const void* const* in, void* out_memory, int64_t n, const double* scalars, std::index_sequence<K...>) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const F f = make_functor<F>(scalars);
  T* out = static_cast<T*>(out_memory);
  if (n < lanes) return short_span<F, T, kRepeatMask>(f, in, out, n, std::index_sequence<K...>());
  const auto at = [&](int64_t i) HWY_ATTR {
    return f(d, load<(kRepeatMask >> K & 1) != 0>(d, static_cast<const T*>(in[K]), i)...);
  };
  // The last, overlapping vector is computed before anything is written (out may be an input) and stored at the end.
  const bool rest = n % lanes != 0;
  const auto last = rest ? at(n - lanes) : hn::Zero(d);
  for (int64_t i = 0; i + lanes <= n; i += lanes) hn::StoreU(at(i), d, out + i);
  if (rest) hn::StoreU(last, d, out + n - lanes);
}

template <class F, class T, int kRepeatMask, size_t... K>
void plain_span(const void* const* in, void* out_memory, int64_t n, const double* scalars, std::index_sequence<K...>) {
  const F f = make_functor<F>(scalars);
  T* out = static_cast<T*>(out_memory);
  const T* inputs[] = {static_cast<const T*>(in[K])...};
  const T first[] = {inputs[K][0]...};
  // If the output is exactly one of the inputs, there is no dependence between iterations.
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<T>(f(((kRepeatMask >> K & 1) != 0 ? first[K] : inputs[K][i])...));
  }
}

template <class F, class T, int kArity, int kRepeatMask>
void span(const void* const* in, void* out, int64_t n, const double* scalars) {
  if (n <= 0) return;
  if constexpr (requires { F::kVector; }) {
    vector_span<F, T, kRepeatMask>(in, out, n, scalars, std::make_index_sequence<kArity>());
  } else {
    plain_span<F, T, kRepeatMask>(in, out, n, scalars, std::make_index_sequence<kArity>());
  }
}

// The name of a functor without namespaces and template arguments, "Exp" or "Leaky", from the name that the compiler
// gives to a function of it: "... [with F = hybridnet::kernels::N_AVX2::Leaky<float>; ...]".
template <class F>
consteval std::string_view find_functor_name() {
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("F = ") + 4);
  name = name.substr(0, name.find_first_of(";<]"));
  return name.substr(name.rfind(':') + 1);
}
template <class F>
struct FunctorName {
  static constexpr auto kText = [] {
    std::array<char, find_functor_name<F>().size() + 1> text{};
    std::ranges::copy(find_functor_name<F>(), text.begin());
    return text;
  }();
};

template <class T, class F, int kArity>
void set_loops(SpanLoops& loops) {
  constexpr int code = static_cast<int>(dtype_of<T>::value);
  loops.functor[code] = FunctorName<F>::kText.data();
  if constexpr (requires { F::kScalars; }) loops.scalars = F::kScalars;
  loops.fn[0][code] = &span<F, T, kArity, 0>;
  if constexpr (kArity == 2) {
    loops.fn[1][code] = &span<F, T, kArity, 1>;
    loops.fn[2][code] = &span<F, T, kArity, 2>;
  }
}

// The sets of dtypes that get loops of their own.
struct Floats {};
struct FloatsAndIntegers {};
struct AllTypes {};
struct IntegerTypes {};  // integers and bool

// add<Functor, arity>(table, id, cost, types): the functor is the same type for every dtype.
template <class F, int kArity, class Types>
void add(SpanLoops* table, Pointwise id, double cost_ns, Types) {
  SpanLoops& loops = table[static_cast<int>(id)];
  loops.arity = kArity;
  loops.cost_ns = static_cast<float>(cost_ns);
  if constexpr (!std::is_same_v<Types, IntegerTypes>) {
    set_loops<float, F, kArity>(loops);
    set_loops<double, F, kArity>(loops);
  }
  if constexpr (!std::is_same_v<Types, Floats>) {
    set_loops<int8_t, F, kArity>(loops);
    set_loops<uint8_t, F, kArity>(loops);
    set_loops<int32_t, F, kArity>(loops);
    set_loops<int64_t, F, kArity>(loops);
  }
  if constexpr (std::is_same_v<Types, AllTypes> || std::is_same_v<Types, IntegerTypes>)
    set_loops<bool, F, kArity>(loops);
}

// add_typed<Functor, arity>: Functor<T> is constructed from the scalars.
template <template <class> class F, int kArity, class Types>
void add_typed(SpanLoops* table, Pointwise id, double cost_ns, Types) {
  SpanLoops& loops = table[static_cast<int>(id)];
  loops.arity = kArity;
  loops.cost_ns = static_cast<float>(cost_ns);
  set_loops<float, F<float>, kArity>(loops);
  set_loops<double, F<double>, kArity>(loops);
  if constexpr (!std::is_same_v<Types, Floats>) {
    set_loops<int8_t, F<int8_t>, kArity>(loops);
    set_loops<uint8_t, F<uint8_t>, kArity>(loops);
    set_loops<int32_t, F<int32_t>, kArity>(loops);
    set_loops<int64_t, F<int64_t>, kArity>(loops);
  }
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
