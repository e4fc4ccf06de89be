#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/softmax.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "device/stream.h"
#include "hybridnet/threads.h"
#include "kernels/memory/vector_rows.h"
#include "kernels/norm/device_norm.h"
#include "kernels/norm/exp_to_one.h"
#include "kernels/norm/softmax.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

constexpr double kElementNs = 2.5;
constexpr int64_t kColumns = 256;  // neighboring rows (inner > 1) that are processed together
template <typename T>
constexpr T kLowest = -std::numeric_limits<T>::infinity();

// ---- rows in contiguous memory
template <typename T>
HWY_INLINE void softmax_row(int64_t n, const T* x, T scale, bool log, T* y) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, scale);
  const auto highest = join_row<T>(
      n, hn::Set(d, kLowest<T>), [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); },
      [&](auto at, int64_t i) { return at.keep(hn::Mul(factor, at.load(x + i)), kLowest<T>); });
  const auto top = hn::MaxOfLanes(d, highest);
  auto sum = hn::Zero(d);
  along_row<T>(n, [&](auto at, int64_t i) {
    const auto e = exp_to_one(d, hn::MulSub(factor, at.load(x + i), top));
    sum = hn::Add(sum, at.keep(e, T(0)));
    if (!log) at.store(e, y + i);
  });
  const T total = hn::GetLane(hn::SumOfLanes(d, sum));
  if (log) {
    const auto shift = hn::Set(d, std::log(total));
    along_row<T>(n,
                 [&](auto at, int64_t i) { at.store(hn::Sub(hn::MulSub(factor, at.load(x + i), top), shift), y + i); });
  } else {
    const auto share = hn::Set(d, T(1) / total);
    along_row<T>(n, [&](auto at, int64_t i) { at.store(hn::Mul(at.load(y + i), share), y + i); });
  }
}

template <typename T>
HWY_INLINE void gradient_row(int64_t n, const T* dy, const T* y, T scale, bool log, T* dx) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, scale);
  if (log) {
    const auto total = hn::Set(d, sum_row<T>(n, [&](auto at, int64_t i) { return at.load(dy + i); }));
    along_row<T>(n, [&](auto at, int64_t i) {
      at.store(hn::Mul(factor, hn::NegMulAdd(exp_to_one(d, at.load(y + i)), total, at.load(dy + i))), dx + i);
    });
  } else {
    const auto total =
        hn::Set(d, sum_row<T>(n, [&](auto at, int64_t i) { return hn::Mul(at.load(dy + i), at.load(y + i)); }));
    along_row<T>(n, [&](auto at, int64_t i) {
      at.store(hn::Mul(hn::Mul(factor, at.load(y + i)), hn::Sub(at.load(dy + i), total)), dx + i);
    });
  }
}

// ---- `columns` neighboring rows whose elements are `stride` apart
template <typename T>
void softmax_columns(int64_t columns, int64_t n, int64_t stride, const T* x, T scale, bool log, T* y) {
  HWY_ALIGN T top[kColumns], sum[kColumns];
  std::fill_n(top, columns, kLowest<T>);
  std::fill_n(sum, columns, T(0));
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, scale);
  for (int64_t j = 0; j < n; ++j) {
    along_row<T>(columns, [&](auto at, int64_t i) {
      at.store(hn::Max(at.load(top + i), hn::Mul(factor, at.load(x + j * stride + i))), top + i);
    });
  }
  for (int64_t j = 0; j < n; ++j) {
    along_row<T>(columns, [&](auto at, int64_t i) {
      const auto e = exp_to_one(d, hn::MulSub(factor, at.load(x + j * stride + i), at.load(top + i)));
      at.store(hn::Add(at.load(sum + i), e), sum + i);
      if (!log) at.store(e, y + j * stride + i);
    });
  }
  for (int64_t i = 0; i < columns; ++i) sum[i] = log ? std::log(sum[i]) : T(1) / sum[i];
  for (int64_t j = 0; j < n; ++j) {
    along_row<T>(columns, [&](auto at, int64_t i) {
      if (log) {
        const auto v = hn::MulSub(factor, at.load(x + j * stride + i), at.load(top + i));
        at.store(hn::Sub(v, at.load(sum + i)), y + j * stride + i);
      } else {
        at.store(hn::Mul(at.load(y + j * stride + i), at.load(sum + i)), y + j * stride + i);
      }
    });
  }
}

template <typename T>
void gradient_columns(int64_t columns, int64_t n, int64_t stride, const T* dy, const T* y, T scale, bool log, T* dx) {
  HWY_ALIGN T sum[kColumns];
  std::fill_n(sum, columns, T(0));
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, scale);
  for (int64_t j = 0; j < n; ++j) {
    along_row<T>(columns, [&](auto at, int64_t i) {
      const auto g = at.load(dy + j * stride + i);
      const auto term = log ? g : hn::Mul(g, at.load(y + j * stride + i));
      at.store(hn::Add(at.load(sum + i), term), sum + i);
    });
  }
  for (int64_t j = 0; j < n; ++j) {
    along_row<T>(columns, [&](auto at, int64_t i) {
      const auto g = at.load(dy + j * stride + i), v = at.load(y + j * stride + i), total = at.load(sum + i);
      const auto change = log ? hn::NegMulAdd(exp_to_one(d, v), total, g) : hn::Mul(v, hn::Sub(g, total));
      at.store(hn::Mul(factor, change), dx + j * stride + i);
    });
  }
}

// Computes one row with its own length in strided memory; a simple loop, for masked softmax along an inner axis.
template <typename T>
void softmax_short_column(int64_t length, int64_t n, int64_t stride, const T* x, T scale, bool log, T* y) {
  T top = kLowest<T>, sum = 0;
  for (int64_t j = 0; j < length; ++j) top = std::max(top, scale * x[j * stride]);
  for (int64_t j = 0; j < length; ++j) sum += std::exp(scale * x[j * stride] - top);
  const T shift = std::log(sum);
  for (int64_t j = 0; j < length; ++j) {
    const T v = scale * x[j * stride] - top;
    y[j * stride] = log ? v - shift : std::exp(v) / sum;
  }
  for (int64_t j = length; j < n; ++j) y[j * stride] = T(0);
}

// Calls row(offset, row number) for contiguous rows, columns(offset, count, first row number) for others.
template <typename Row, typename Columns>
void for_each_row(const RowShape& s, Row&& row, Columns&& columns) {
  if (s.size() == 0) return;
  if (s.inner == 1) {
    return parallel_for(s.outer, kElementNs * static_cast<double>(s.length), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) row(r * s.length, r);
    });
  }
  const int64_t tiles = (s.inner + kColumns - 1) / kColumns, tile_size = std::min(s.inner, kColumns) * s.length;
  parallel_for(s.outer * tiles, kElementNs * static_cast<double>(tile_size), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t o = t / tiles, first = t % tiles * kColumns;
      columns(o * s.length * s.inner + first, std::min(kColumns, s.inner - first), o * s.inner + first);
    }
  });
}

template <typename T>
void softmax_all(const RowShape& s, const T* x, double scale, bool log, const int64_t* lengths, T* y) {
  const T factor = static_cast<T>(scale);
  const auto length_of = [&](int64_t r) { return std::clamp<int64_t>(lengths[r], 0, s.length); };
  for_each_row(
      s,
      [&](int64_t offset, int64_t r) {
        const int64_t n = lengths ? length_of(r) : s.length;
        softmax_row(n, x + offset, factor, log, y + offset);
        std::fill_n(y + offset + n, s.length - n, T(0));
      },
      [&](int64_t offset, int64_t count, int64_t r) {
        if (!lengths) return softmax_columns(count, s.length, s.inner, x + offset, factor, log, y + offset);
        for (int64_t i = 0; i < count; ++i)
          softmax_short_column(length_of(r + i), s.length, s.inner, x + offset + i, factor, log, y + offset + i);
      });
}

template <typename T>
void gradient_all(const RowShape& s, const T* dy, const T* y, double scale, bool log, T* dx) {
  const T factor = static_cast<T>(scale);
  for_each_row(
      s, [&](int64_t at, int64_t) { gradient_row(s.length, dy + at, y + at, factor, log, dx + at); },
      [&](int64_t at, int64_t count, int64_t) {
        gradient_columns(count, s.length, s.inner, dy + at, y + at, factor, log, dx + at);
      });
}

template <typename T>
void pick_all(const RowShape& s, const T* x, const int64_t* index, T* picked, T* total) {
  const hn::ScalableTag<T> d;
  parallel_for(s.outer, kElementNs * static_cast<double>(s.length), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x + r * s.length;
      const auto highest = join_row<T>(
          s.length, hn::Set(d, kLowest<T>), [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); },
          [&](auto at, int64_t i) { return at.load(row + i, kLowest<T>); });
      const auto top = hn::MaxOfLanes(d, highest);
      const T sum = sum_row<T>(
          s.length, [&](auto at, int64_t i) { return at.keep(exp_to_one(d, hn::Sub(at.load(row + i), top)), T(0)); });
      const T logarithm = std::log(sum), largest = hn::GetLane(top);
      picked[r] = (row[index[r]] - largest) - logarithm;
      if (total) total[r] = largest + logarithm;
    }
  });
}

template <typename T>
void pick_gradient_all(const RowShape& s, const T* dy, const T* x, const int64_t* index, const T* total, T* dx) {
  const hn::ScalableTag<T> d;
  parallel_for(s.outer, kElementNs * static_cast<double>(s.length), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x + r * s.length;
      T* to = dx + r * s.length;
      const auto shift = hn::Set(d, total[r]), factor = hn::Set(d, -dy[r]);
      along_row<T>(s.length, [&](auto at, int64_t i) {
        at.store(hn::Mul(factor, exp_to_one(d, hn::Sub(at.load(row + i), shift))), to + i);
      });
      to[index[r]] += dy[r];
    }
  });
}

void pick_float(const RowShape& s, const float* x, const int64_t* index, float* picked, float* total) {
  pick_all(s, x, index, picked, total);
}
void pick_double(const RowShape& s, const double* x, const int64_t* index, double* picked, double* total) {
  pick_all(s, x, index, picked, total);
}
void pick_gradient_float(const RowShape& s, const float* dy, const float* x, const int64_t* index, const float* total,
                         float* dx) {
  pick_gradient_all(s, dy, x, index, total, dx);
}
void pick_gradient_double(const RowShape& s, const double* dy, const double* x, const int64_t* index,
                          const double* total, double* dx) {
  pick_gradient_all(s, dy, x, index, total, dx);
}
void softmax_float(const RowShape& s, const float* x, double scale, bool log, const int64_t* lengths, float* y) {
  softmax_all(s, x, scale, log, lengths, y);
}
void softmax_double(const RowShape& s, const double* x, double scale, bool log, const int64_t* lengths, double* y) {
  softmax_all(s, x, scale, log, lengths, y);
}
void gradient_float(const RowShape& s, const float* dy, const float* y, double scale, bool log, float* dx) {
  gradient_all(s, dy, y, scale, log, dx);
}
void gradient_double(const RowShape& s, const double* dy, const double* y, double scale, bool log, double* dx) {
  gradient_all(s, dy, y, scale, log, dx);
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {
HWY_EXPORT(softmax_float);
HWY_EXPORT(softmax_double);
HWY_EXPORT(gradient_float);
HWY_EXPORT(gradient_double);
HWY_EXPORT(pick_float);
HWY_EXPORT(pick_double);
HWY_EXPORT(pick_gradient_float);
HWY_EXPORT(pick_gradient_double);
}  // namespace

template <>
void softmax(const RowShape& s, const float* x, double scale, bool log, const int64_t* lengths, float* y) {
  if (device::current()) return on_device::softmax(s, x, scale, log, lengths, y);
  HWY_DYNAMIC_DISPATCH(softmax_float)(s, x, scale, log, lengths, y);
}
template <>
void softmax(const RowShape& s, const double* x, double scale, bool log, const int64_t* lengths, double* y) {
  if (device::current()) return on_device::softmax(s, x, scale, log, lengths, y);
  HWY_DYNAMIC_DISPATCH(softmax_double)(s, x, scale, log, lengths, y);
}
template <>
void softmax_gradient(const RowShape& s, const float* dy, const float* y, double scale, bool log, float* dx) {
  if (device::current()) return on_device::softmax_gradient(s, dy, y, scale, log, dx);
  HWY_DYNAMIC_DISPATCH(gradient_float)(s, dy, y, scale, log, dx);
}
template <>
void softmax_gradient(const RowShape& s, const double* dy, const double* y, double scale, bool log, double* dx) {
  if (device::current()) return on_device::softmax_gradient(s, dy, y, scale, log, dx);
  HWY_DYNAMIC_DISPATCH(gradient_double)(s, dy, y, scale, log, dx);
}
template <>
void log_softmax_pick(const RowShape& s, const float* x, const int64_t* index, float* picked, float* total) {
  if (device::current()) return on_device::log_softmax_pick(s, x, index, picked, total);
  HWY_DYNAMIC_DISPATCH(pick_float)(s, x, index, picked, total);
}
template <>
void log_softmax_pick(const RowShape& s, const double* x, const int64_t* index, double* picked, double* total) {
  if (device::current()) return on_device::log_softmax_pick(s, x, index, picked, total);
  HWY_DYNAMIC_DISPATCH(pick_double)(s, x, index, picked, total);
}
template <>
void log_softmax_pick_gradient(const RowShape& s, const float* dy, const float* x, const int64_t* index,
                               const float* total, float* dx) {
  if (device::current()) return on_device::log_softmax_pick_gradient(s, dy, x, index, total, dx);
  HWY_DYNAMIC_DISPATCH(pick_gradient_float)(s, dy, x, index, total, dx);
}
template <>
void log_softmax_pick_gradient(const RowShape& s, const double* dy, const double* x, const int64_t* index,
                               const double* total, double* dx) {
  if (device::current()) return on_device::log_softmax_pick_gradient(s, dy, x, index, total, dx);
  HWY_DYNAMIC_DISPATCH(pick_gradient_double)(s, dy, x, index, total, dx);
}

}  // namespace hybridnet::kernels
#endif
