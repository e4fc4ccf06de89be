#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/pooling.cc"
#include "kernels/conv/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/float_watch.h"
#include "device/stream.h"
#include "hwy/foreach_target.h"  // compiles this file once per SIMD target
#include "hwy/highway.h"
#include "hybridnet/threads.h"
#include "kernels/conv/device_pooling.h"
#include "storage/temporary.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Position = std::array<int64_t, 3>;

constexpr int64_t kChannelBlock = 64;  // the channels that one task of a channels-last backward pass owns

Position position_at(int64_t index, const Position& sizes) {
  return {index / (sizes[1] * sizes[2]), index / sizes[2] % sizes[1], index % sizes[2]};
}

// Advances to the next position; returns true if that is the start of the next image. Divisions would cost more than a
// small window.
bool advance(Position& at, const Position& sizes) {
  for (size_t axis = 3; axis-- > 0;) {
    if (++at[axis] < sizes[axis]) return false;
    at[axis] = 0;
  }
  return true;
}

struct Window {
  Position first, last;
  Window(const PoolGeometry& g, const Position& o) {
    for (int a = 0; a < 3; ++a) {
      first[static_cast<size_t>(a)] = g.first(a, o[static_cast<size_t>(a)]);
      last[static_cast<size_t>(a)] = g.last(a, o[static_cast<size_t>(a)]);
    }
  }
  // f(index of the input position)
  template <typename F>
  void for_each(const PoolGeometry& g, F&& f) const {
    for (int64_t i = first[0]; i < last[0]; ++i)
      for (int64_t j = first[1]; j < last[1]; ++j)
        for (int64_t k = first[2]; k < last[2]; ++k) f((i * g.in[1] + j) * g.in[2] + k);
  }
};

template <typename T>
T factor_at(const PoolGeometry& g, const Position& o) {
  if (g.type != PoolType::kAvg) return T(1);
  const int64_t count = g.counted(0, o[0]) * g.counted(1, o[1]) * g.counted(2, o[2]);
  return count > 0 ? T(1) / static_cast<T>(count) : T(0);
}

template <typename T>
T start_value(const PoolGeometry& g) {
  return g.type == PoolType::kMax ? -std::numeric_limits<T>::infinity() : T(0);
}

// The larger of two; with kKeepsNan a NaN is returned, the first one if there are two.
template <bool kKeepsNan, class V>
HWY_INLINE V larger(V acc, V x) {
  if constexpr (kKeepsNan) {
    return hn::IfThenElse(hn::IsNaN(acc), acc, hn::IfThenElse(hn::IsNaN(x), x, hn::Max(acc, x)));
  } else {
    return hn::Max(acc, x);
  }
}

template <bool kKeepsNan, class V>
HWY_INLINE V combine(const PoolGeometry& g, V acc, V x) {
  switch (g.type) {
    case PoolType::kMax:
      return larger<kKeepsNan>(acc, x);
    case PoolType::kLp:
      return g.power == 1 ? hn::Add(acc, x) : g.power == 2 ? hn::MulAdd(x, x, acc) : hn::MulAdd(hn::Mul(x, x), x, acc);
    default:
      return hn::Add(acc, x);
  }
}

template <typename T>
T finish(const PoolGeometry& g, T value, T factor) {
  switch (g.type) {
    case PoolType::kMax:
      return value;
    case PoolType::kLp:
      return g.power == 1 ? value : g.power == 2 ? std::sqrt(value) : std::cbrt(value);
    default:
      return value * factor;
  }
}

// Calls f(tag, offset) over n elements: whole vectors, then single elements.
template <typename T, typename F>
HWY_INLINE void for_each_vector(int64_t n, F&& f) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(d, i);
  for (; i < n; ++i) f(hn::CappedTag<T, 1>(), i);
}

// ---- forward

// Reduces kCount vectors of channels of a window at a time, at offsets `at`, so that their loads overlap.
template <int kCount, typename T, typename Join>
HWY_INLINE void summarize(const PoolGeometry& g, const Window& window, const T* from, const int64_t* at, T factor,
                          T* to, Join& join) {
  const hn::ScalableTag<T> d;
  auto a0 = hn::Set(d, start_value<T>(g)), a1 = a0, a2 = a0, a3 = a0;
  window.for_each(g, [&](int64_t i) HWY_ATTR {
    const T* element = from + i * g.c;
    a0 = join(a0, hn::LoadU(d, element + at[0]));
    if constexpr (kCount > 1) a1 = join(a1, hn::LoadU(d, element + at[1]));
    if constexpr (kCount > 2) a2 = join(a2, hn::LoadU(d, element + at[2]));
    if constexpr (kCount > 3) a3 = join(a3, hn::LoadU(d, element + at[3]));
  });
  const auto by = hn::Set(d, factor);  // 1, except for averages
  hn::StoreU(hn::Mul(a0, by), d, to + at[0]);
  if constexpr (kCount > 1) hn::StoreU(hn::Mul(a1, by), d, to + at[1]);
  if constexpr (kCount > 2) hn::StoreU(hn::Mul(a2, by), d, to + at[2]);
  if constexpr (kCount > 3) hn::StoreU(hn::Mul(a3, by), d, to + at[3]);
}

// Reduces all channels of a window. The last vector ends at the last channel, so it may repeat channels of the vector
// before.
template <typename T, typename Join>
HWY_INLINE void summarize_channels(const PoolGeometry& g, const Window& window, const T* from, T factor, T* to,
                                   Join& join) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (g.c < lanes) {
    return for_each_vector<T>(g.c, [&](auto tag, int64_t c) HWY_ATTR {
      auto acc = hn::Set(tag, start_value<T>(g));
      window.for_each(g, [&](int64_t i) HWY_ATTR { acc = join(acc, hn::LoadU(tag, from + i * g.c + c)); });
      hn::StoreU(hn::Mul(acc, hn::Set(tag, factor)), tag, to + c);
    });
  }
  for (int64_t c = 0; c < g.c; c += 4 * lanes) {
    const int64_t last = g.c - lanes;
    const int64_t at[] = {std::min(c, last), std::min(c + lanes, last), std::min(c + 2 * lanes, last),
                          std::min(c + 3 * lanes, last)};
    switch ((std::min(g.c - c, 4 * lanes) + lanes - 1) / lanes) {
      case 1:
        summarize<1>(g, window, from, at, factor, to, join);
        break;
      case 2:
        summarize<2>(g, window, from, at, factor, to, join);
        break;
      case 3:
        summarize<3>(g, window, from, at, factor, to, join);
        break;
      default:
        summarize<4>(g, window, from, at, factor, to, join);
    }
  }
}

// join(so far, element).
template <typename T, typename Join>
HWY_INLINE void forward_last(const PoolGeometry& g, const T* x, T* y, Join&& join) {
  const int64_t outputs = g.out_size();
  parallel_for(g.n * outputs, 0.1 * static_cast<double>(1 + g.kernel_size() * g.c), [&](int64_t begin, int64_t end) {
    Position o = position_at(begin % outputs, g.out);
    int64_t image = begin / outputs;
    for (int64_t t = begin; t < end; ++t) {
      T* to = y + t * g.c;
      const T factor = factor_at<T>(g, o);
      summarize_channels(g, Window(g, o), x + image * g.in_size() * g.c, factor, to, join);
      if (g.type == PoolType::kLp && g.power > 1)
        for (int64_t k = 0; k < g.c; ++k) to[k] = finish(g, to[k], factor);
      if (advance(o, g.out)) ++image;
    }
  });
}

template <bool kKeepsNan, typename T>
void forward_last(const PoolGeometry& g, const T* x, T* y) {
  switch (g.type) {
    case PoolType::kMax:
      return forward_last(g, x, y, [](auto acc, auto v) HWY_ATTR { return larger<kKeepsNan>(acc, v); });
    case PoolType::kLp:
      return forward_last(g, x, y, [&g](auto acc, auto v) HWY_ATTR { return combine<false>(g, acc, v); });
    default:
      return forward_last(g, x, y, [](auto acc, auto v) HWY_ATTR { return hn::Add(acc, v); });
  }
}

// True if the window is the whole image: each plane has one output.
bool is_global(const PoolGeometry& g) {
  return g.out_size() == 1 && g.kernel == g.in && g.pad == Position{0, 0, 0} && !g.channels_last;
}

template <bool kKeepsNan, typename T>
void forward_global(const PoolGeometry& g, const T* x, T* y) {
  const int64_t size = g.in_size();
  const T factor = factor_at<T>(g, {0, 0, 0});
  parallel_for(g.n * g.c, 0.3 * static_cast<double>(size), [&](int64_t begin, int64_t end) {
    const hn::ScalableTag<T> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t plane = begin; plane < end; ++plane) {
      const T* from = x + plane * size;
      auto acc = hn::Set(d, start_value<T>(g));
      int64_t i = 0;
      for (; i + lanes <= size; i += lanes) acc = combine<kKeepsNan>(g, acc, hn::LoadU(d, from + i));
      const bool takes_sum = g.type != PoolType::kMax || (kKeepsNan && !hn::AllFalse(d, hn::IsNaN(acc)));  // NaN stays
      T value = hn::GetLane(takes_sum ? hn::SumOfLanes(d, acc) : hn::MaxOfLanes(d, acc));
      const hn::CappedTag<T, 1> one;
      for (; i < size; ++i) value = hn::GetLane(combine<kKeepsNan>(g, hn::Set(one, value), hn::LoadU(one, from + i)));
      y[plane] = finish(g, value, factor);
    }
  });
}

// Reduces first the rows of a window, as vectors along the row; then the columns, one output at a time.
template <bool kKeepsNan, typename T>
void forward_plain(const PoolGeometry& g, const T* x, T* y) {
  if (is_global(g)) return forward_global<kKeepsNan>(g, x, y);
  const int64_t width = g.in[2];
  parallel_for(g.n * g.c, 0.3 * static_cast<double>(g.in_size()), [&](int64_t begin, int64_t end) {
    Temporary<T> rows(static_cast<size_t>(width));
    for (int64_t plane = begin; plane < end; ++plane) {
      const T* from = x + plane * g.in_size();
      T* to = y + plane * g.out_size();
      for (int64_t r = 0; r < g.out[0] * g.out[1]; ++r) {
        Position o{r / g.out[1], r % g.out[1], 0};
        const Window window(g, o);
        std::fill(rows.begin(), rows.end(), start_value<T>(g));
        for (int64_t i = window.first[0]; i < window.last[0]; ++i) {
          for (int64_t j = window.first[1]; j < window.last[1]; ++j) {
            const T* row = from + (i * g.in[1] + j) * width;
            for_each_vector<T>(width, [&](auto d, int64_t k) {
              hn::StoreU(combine<kKeepsNan>(g, hn::LoadU(d, rows.data() + k), hn::LoadU(d, row + k)), d,
                         rows.data() + k);
            });
          }
        }
        for (o[2] = 0; o[2] < g.out[2]; ++o[2]) {
          T value = start_value<T>(g);
          const int64_t last = g.last(2, o[2]);
          if (g.type == PoolType::kMax) {
            for (int64_t k = g.first(2, o[2]); k < last; ++k) {
              const T next = rows[static_cast<size_t>(k)];
              value = value < next || (kKeepsNan && next != next && value == value) ? next : value;
            }
          } else {
            for (int64_t k = g.first(2, o[2]); k < last; ++k) value += rows[static_cast<size_t>(k)];
          }
          *to++ = finish(g, value, factor_at<T>(g, o));
        }
      }
    }
  });
}

// ---- maximum

// A maximum of vectors loses NaN, and one that keeps NaN is slower. But the floating-point status flags record that a
// NaN occurred.
template <typename T, bool kLast>
void forward_maximum(const PoolGeometry& g, const T* x, T* y) {
  const FloatWatch watch;
  kLast ? forward_last<false>(g, x, y) : forward_plain<false>(g, x, y);
  if (watch.saw_error()) kLast ? forward_last<true>(g, x, y) : forward_plain<true>(g, x, y);
}

template <typename T, bool kLast>
void forward(const PoolGeometry& g, const T* x, T* y) {
  if (g.type == PoolType::kMax) return forward_maximum<T, kLast>(g, x, y);
  kLast ? forward_last<false>(g, x, y) : forward_plain<false>(g, x, y);
}

// ---- maximum: gradient and its adjoint

// For one output position, channels [c, c + lanes): calls `hit(mask, input index)` for the first element that equals
// the maximum, or is NaN if the maximum is.
template <typename T, class D, typename F>
HWY_INLINE void first_maximum(const PoolGeometry& g, const Window& window, D d, const T* x, const T* y, int64_t c,
                              F&& hit) {
  const auto maximum = hn::LoadU(d, y + c);
  auto open = hn::Eq(hn::Zero(d), hn::Zero(d));
  const auto nan = hn::IsNaN(maximum);
  const bool some_nan = !hn::AllFalse(d, nan);
  window.for_each(g, [&](int64_t i) {
    const auto element = hn::LoadU(d, x + i * g.c + c);
    auto here = hn::And(open, hn::Eq(element, maximum));
    if (some_nan) here = hn::Or(here, hn::And(open, hn::And(nan, hn::IsNaN(element))));
    open = hn::AndNot(here, open);
    hit(here, i);
  });
}

template <typename T>
void max_backward_last(const PoolGeometry& g, const T* dy, const T* x, const T* y, T* dx) {
  const int64_t blocks = (g.c + kChannelBlock - 1) / kChannelBlock, outputs = g.out_size(), inputs = g.in_size();
  parallel_for(g.n * blocks, 0.3 * static_cast<double>(inputs * kChannelBlock), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t n = t / blocks, first = t % blocks * kChannelBlock, count = std::min(kChannelBlock, g.c - first);
      T* to = dx + n * inputs * g.c + first;
      const T* from = x + n * inputs * g.c + first;
      for (int64_t i = 0; i < inputs; ++i) std::fill(to + i * g.c, to + i * g.c + count, T(0));
      for (int64_t p = 0; p < outputs; ++p) {
        const Window window(g, position_at(p, g.out));
        const int64_t at = (n * outputs + p) * g.c + first;
        for_each_vector<T>(count, [&](auto d, int64_t c) {
          const auto gradient = hn::LoadU(d, dy + at + c);
          first_maximum(g, window, d, from, y + at, c, [&](auto here, int64_t i) {
            T* target = to + i * g.c + c;
            hn::StoreU(hn::Add(hn::LoadU(d, target), hn::IfThenElseZero(here, gradient)), d, target);
          });
        });
      }
    }
  });
}

template <typename T>
void max_gather_last(const PoolGeometry& g, const T* v, const T* x, const T* y, T* out) {
  const int64_t outputs = g.out_size(), inputs = g.in_size();
  parallel_for(g.n * outputs, 0.3 * static_cast<double>(g.kernel_size() * g.c), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const Window window(g, position_at(t % outputs, g.out));
      const T* from = x + t / outputs * inputs * g.c;
      const T* values = v + t / outputs * inputs * g.c;
      for_each_vector<T>(g.c, [&](auto d, int64_t c) {
        auto taken = hn::Zero(d);
        first_maximum(g, window, d, from, y + t * g.c, c, [&](auto here, int64_t i) {
          taken = hn::IfThenElse(here, hn::LoadU(d, values + i * g.c + c), taken);
        });
        hn::StoreU(taken, d, out + t * g.c + c);
      });
    }
  });
}

// Returns the index of the first element in part [first, last) of the rows that equals `maximum`, or is NaN if
// `maximum` is; -1 if there is none.
template <typename T>
HWY_INLINE int64_t first_index(const PoolGeometry& g, const Window& rows, int64_t first, int64_t last, const T* x,
                               T maximum) {
  for (int64_t i = rows.first[0]; i < rows.last[0]; ++i) {
    for (int64_t j = rows.first[1]; j < rows.last[1]; ++j) {
      const int64_t row = (i * g.in[1] + j) * g.in[2];
      for (int64_t k = first; k < last; ++k)
        if (x[row + k] == maximum || (maximum != maximum && x[row + k] != x[row + k])) return row + k;
    }
  }
  return -1;
}

// Calls begin(plane), then f(plane, output index, input index or -1), for planes of (n, c, space) memory.
template <typename T, typename Begin, typename F>
void for_each_plain_maximum(const PoolGeometry& g, const T* x, const T* y, Begin&& begin_plane, F&& f) {
  const int64_t outputs = g.out_size(), inputs = g.in_size();
  parallel_for(g.n * g.c, 0.3 * static_cast<double>(g.kernel_size() * outputs), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      begin_plane(plane);
      int64_t p = 0;
      for (int64_t r = 0; r < g.out[0] * g.out[1]; ++r) {
        const Window rows(g, {r / g.out[1], r % g.out[1], 0});
        for (int64_t o = 0; o < g.out[2]; ++o, ++p)
          f(plane, p, first_index(g, rows, g.first(2, o), g.last(2, o), x + plane * inputs, y[plane * outputs + p]));
      }
    }
  });
}

// ---- sum: gradient

// Sums the contributions of one row of outputs to each column of its window, then adds them as vectors to all rows of
// the window.
template <typename T>
void sum_backward_plain(const PoolGeometry& g, const Temporary<T>& factors, const T* dy, T* dx) {
  const int64_t outputs = g.out_size(), inputs = g.in_size(), width = g.in[2];
  parallel_for(g.n * g.c, 0.3 * static_cast<double>(inputs), [&](int64_t begin, int64_t end) {
    if (is_global(g)) {
      for (int64_t plane = begin; plane < end; ++plane)
        std::fill_n(dx + plane * inputs, inputs, dy[plane] * factors[0]);
      return;
    }
    Temporary<T> columns(static_cast<size_t>(width));
    for (int64_t plane = begin; plane < end; ++plane) {
      T* to = dx + plane * inputs;
      std::fill_n(to, inputs, T(0));
      int64_t p = 0;
      for (int64_t r = 0; r < g.out[0] * g.out[1]; ++r) {
        const Window window(g, {r / g.out[1], r % g.out[1], 0});
        std::fill(columns.begin(), columns.end(), T(0));
        for (int64_t o = 0; o < g.out[2]; ++o, ++p) {
          const T share = dy[plane * outputs + p] * factors[static_cast<size_t>(p)];
          const int64_t last = g.last(2, o);
          for (int64_t k = g.first(2, o); k < last; ++k) columns[static_cast<size_t>(k)] += share;
        }
        for (int64_t i = window.first[0]; i < window.last[0]; ++i) {
          for (int64_t j = window.first[1]; j < window.last[1]; ++j) {
            T* row = to + (i * g.in[1] + j) * width;
            for_each_vector<T>(width, [&](auto d, int64_t k) {
              hn::StoreU(hn::Add(hn::LoadU(d, row + k), hn::LoadU(d, columns.data() + k)), d, row + k);
            });
          }
        }
      }
    }
  });
}

template <typename T>
void sum_backward(const PoolGeometry& g, const T* dy, T* dx) {
  const int64_t outputs = g.out_size(), inputs = g.in_size();
  Temporary<T> factors(static_cast<size_t>(outputs));
  for (int64_t p = 0; p < outputs; ++p) factors[static_cast<size_t>(p)] = factor_at<T>(g, position_at(p, g.out));
  // Calls f(output index, its factor) for every window that contains input position i.
  const auto for_each_output = [&](const Position& i, auto&& f) {
    for (int64_t a = g.first_output(0, i[0]); a < g.last_output(0, i[0]); ++a)
      for (int64_t b = g.first_output(1, i[1]); b < g.last_output(1, i[1]); ++b)
        for (int64_t c = g.first_output(2, i[2]); c < g.last_output(2, i[2]); ++c) {
          const int64_t p = (a * g.out[1] + b) * g.out[2] + c;
          f(p, factors[static_cast<size_t>(p)]);
        }
  };
  if (g.channels_last) {
    parallel_for(g.n * inputs, 0.3 * static_cast<double>(g.c), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const Position i = position_at(t % inputs, g.in);
        const T* from = dy + t / inputs * outputs * g.c;
        for_each_vector<T>(g.c, [&](auto d, int64_t c) {
          auto sum = hn::Zero(d);
          for_each_output(i, [&](int64_t p, T factor) {
            sum = hn::MulAdd(hn::LoadU(d, from + p * g.c + c), hn::Set(d, factor), sum);
          });
          hn::StoreU(sum, d, dx + t * g.c + c);
        });
      }
    });
    return;
  }
  sum_backward_plain(g, factors, dy, dx);
}

#define HYBRIDNET_POOL_ENTRIES(T)                                                                  \
  void forward_last_##T(const PoolGeometry& g, const T* x, T* y) { forward<T, true>(g, x, y); }    \
  void forward_plain_##T(const PoolGeometry& g, const T* x, T* y) { forward<T, false>(g, x, y); }  \
  void max_backward_last_##T(const PoolGeometry& g, const T* dy, const T* x, const T* y, T* dx) {  \
    max_backward_last(g, dy, x, y, dx);                                                            \
  }                                                                                                \
  void max_gather_last_##T(const PoolGeometry& g, const T* v, const T* x, const T* y, T* out) {    \
    max_gather_last(g, v, x, y, out);                                                              \
  }                                                                                                \
  void max_backward_plain_##T(const PoolGeometry& g, const T* dy, const T* x, const T* y, T* dx) { \
    const int64_t outputs = g.out_size(), inputs = g.in_size();                                    \
    const auto clear = [&](int64_t plane) { std::fill_n(dx + plane * inputs, inputs, T(0)); };     \
    for_each_plain_maximum(g, x, y, clear, [&](int64_t plane, int64_t p, int64_t i) {              \
      if (i >= 0) dx[plane * inputs + i] += dy[plane * outputs + p];                               \
    });                                                                                            \
  }                                                                                                \
  void max_gather_plain_##T(const PoolGeometry& g, const T* v, const T* x, const T* y, T* out) {   \
    const int64_t outputs = g.out_size(), inputs = g.in_size();                                    \
    for_each_plain_maximum(                                                                        \
        g, x, y, [](int64_t) {},                                                                   \
        [&](int64_t plane, int64_t p, int64_t i) {                                                 \
          out[plane * outputs + p] = i >= 0 ? v[plane * inputs + i] : T(0);                        \
        });                                                                                        \
  }                                                                                                \
  void sum_backward_##T(const PoolGeometry& g, const T* dy, T* dx) { sum_backward(g, dy, dx); }
HYBRIDNET_POOL_ENTRIES(float)
HYBRIDNET_POOL_ENTRIES(double)
#undef HYBRIDNET_POOL_ENTRIES

}  // namespace HWY_NAMESPACE
}  // namespace hybridnet::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {
#define HYBRIDNET_POOL_EXPORT(T)      \
  HWY_EXPORT(forward_last_##T);       \
  HWY_EXPORT(forward_plain_##T);      \
  HWY_EXPORT(max_backward_last_##T);  \
  HWY_EXPORT(max_backward_plain_##T); \
  HWY_EXPORT(max_gather_last_##T);    \
  HWY_EXPORT(max_gather_plain_##T);   \
  HWY_EXPORT(sum_backward_##T);
HYBRIDNET_POOL_EXPORT(float)
HYBRIDNET_POOL_EXPORT(double)
#undef HYBRIDNET_POOL_EXPORT
}  // namespace

#define HYBRIDNET_POOL_API(T)                                                                 \
  template <>                                                                                 \
  void pool_forward(const PoolGeometry& g, const T* x, T* y) {                                \
    if (device::current()) return on_device::pool_forward(g, x, y);                           \
    g.channels_last ? HWY_DYNAMIC_DISPATCH(forward_last_##T)(g, x, y)                         \
                    : HWY_DYNAMIC_DISPATCH(forward_plain_##T)(g, x, y);                       \
  }                                                                                           \
  template <>                                                                                 \
  void max_pool_backward(const PoolGeometry& g, const T* dy, const T* x, const T* y, T* dx) { \
    if (device::current()) return on_device::max_pool_backward(g, dy, x, y, dx);              \
    g.channels_last ? HWY_DYNAMIC_DISPATCH(max_backward_last_##T)(g, dy, x, y, dx)            \
                    : HWY_DYNAMIC_DISPATCH(max_backward_plain_##T)(g, dy, x, y, dx);          \
  }                                                                                           \
  template <>                                                                                 \
  void max_pool_gather(const PoolGeometry& g, const T* v, const T* x, const T* y, T* out) {   \
    if (device::current()) return on_device::max_pool_gather(g, v, x, y, out);                \
    g.channels_last ? HWY_DYNAMIC_DISPATCH(max_gather_last_##T)(g, v, x, y, out)              \
                    : HWY_DYNAMIC_DISPATCH(max_gather_plain_##T)(g, v, x, y, out);            \
  }                                                                                           \
  template <>                                                                                 \
  void sum_pool_backward(const PoolGeometry& g, const T* dy, T* dx) {                         \
    if (device::current()) return on_device::sum_pool_backward(g, dy, dx);                    \
    HWY_DYNAMIC_DISPATCH(sum_backward_##T)(g, dy, dx);                                        \
  }
HYBRIDNET_POOL_API(float)
HYBRIDNET_POOL_API(double)
#undef HYBRIDNET_POOL_API

}  // namespace hybridnet::kernels
#endif  // HWY_ONCE
