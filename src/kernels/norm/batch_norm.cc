#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/batch_norm.cc"
#include "kernels/norm/batch_norm.h"

#include <algorithm>

#include "device/stream.h"
#include "hwy/foreach_target.h"  // compiles this file once per SIMD target
#include "hwy/highway.h"
#include "hybridnet/threads.h"
#include "kernels/norm/device_norm.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls f(tag, offset) over n elements: whole vectors, then single elements.
template <typename T, typename F>
HWY_INLINE void for_each_vector(int64_t n, F&& f) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(d, i);
  for (; i < n; ++i) f(hn::CappedTag<T, 1>(), i);
}

// Returns the sum of f(tag, i) over n elements, added in an order that depends on n only.
template <typename T, typename F>
HWY_INLINE T sum_of(int64_t n, F&& f) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Add(a, f(d, i));
    b = hn::Add(b, f(d, i + lanes));
    c = hn::Add(c, f(d, i + 2 * lanes));
    e = hn::Add(e, f(d, i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = hn::Add(a, f(d, i));
  T sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  const hn::CappedTag<T, 1> one;
  for (; i < n; ++i) sum += hn::GetLane(f(one, i));
  return sum;
}

// Iterates over the blocks: rows(block, first row, last row) if channels-last, else plane(block of its channel,
// channel, offset, count).
template <typename Rows, typename Plane>
void for_each_block(const ChannelShape& s, Rows&& rows, Plane&& plane) {
  if (s.inner == 1) {
    const int64_t step = ChannelBlocks(s).block_rows;
    return parallel_for(ChannelBlocks(s).blocks, 0.3 * static_cast<double>(step * s.channels),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t b = begin; b < end; ++b) rows(b, b * step, std::min((b + 1) * step, s.outer));
                        });
  }
  const int64_t split = ChannelBlocks(s).of_plane;
  parallel_for(s.outer * s.channels * split, 1 + kChannelBlockElements / std::max<int64_t>(s.inner, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t) {
                   const int64_t index = t / split, part = t % split;
                   const int64_t first = part * kChannelBlockElements,
                                 last = std::min(first + kChannelBlockElements, s.inner);
                   plane(index / s.channels * split + part, index % s.channels, index * s.inner + first, last - first);
                 }
               });
}

int64_t elements_of_block(const ChannelShape& s, int64_t block) {
  const ChannelBlocks split(s);
  if (s.inner == 1) return std::min(split.block_rows, s.outer - block * split.block_rows);
  return std::min(split.block_rows, s.inner - block % split.of_plane * split.block_rows);
}

template <typename T>
void mean_variance(const ChannelShape& s, const T* x, T* mean, T* variance, void* workspace) {
  T* means = static_cast<T*>(workspace);                      // (block, channel)
  T* squares = means + ChannelBlocks(s).blocks * s.channels;  // sums of squared distances from the block's mean
  for_each_block(
      s,
      [&](int64_t b, int64_t first, int64_t last) {
        T* block_mean = means + b * s.channels;
        T* block_square = squares + b * s.channels;
        for_each_vector<T>(s.channels, [&](auto d, int64_t c) {
          auto sum = hn::Zero(d);
          for (int64_t r = first; r < last; ++r) sum = hn::Add(sum, hn::LoadU(d, x + r * s.channels + c));
          const auto m = hn::Mul(sum, hn::Set(d, T(1) / static_cast<T>(last - first)));
          auto square = hn::Zero(d);
          for (int64_t r = first; r < last; ++r) {
            const auto distance = hn::Sub(hn::LoadU(d, x + r * s.channels + c), m);
            square = hn::MulAdd(distance, distance, square);
          }
          hn::StoreU(m, d, block_mean + c);
          hn::StoreU(square, d, block_square + c);
        });
      },
      [&](int64_t b, int64_t c, int64_t offset, int64_t count) {
        const T* from = x + offset;
        const T m = sum_of<T>(count, [&](auto d, int64_t i) { return hn::LoadU(d, from + i); }) / static_cast<T>(count);
        means[b * s.channels + c] = m;
        squares[b * s.channels + c] = sum_of<T>(count, [&](auto d, int64_t i) {
          const auto distance = hn::Sub(hn::LoadU(d, from + i), hn::Set(d, m));
          return hn::Mul(distance, distance);
        });
      });
  const int64_t blocks = ChannelBlocks(s).blocks;
  parallel_for(s.channels, 1.2 * static_cast<double>(blocks), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double total_mean = 0, total_square = 0, count = 0;
      for (int64_t b = 0; b < blocks; ++b) {
        const double more = static_cast<double>(elements_of_block(s, b));
        const double distance = static_cast<double>(means[b * s.channels + c]) - total_mean;
        total_square +=
            static_cast<double>(squares[b * s.channels + c]) + distance * distance * count * more / (count + more);
        total_mean += distance * more / (count + more);
        count += more;
      }
      mean[c] = static_cast<T>(total_mean);
      variance[c] = static_cast<T>(count > 0 ? total_square / count : 0.0);
    }
  });
}

template <typename T>
void normalize(const ChannelShape& s, const T* x, const T* mean, const T* scale, const T* shift, bool relu, T* y) {
  const auto one = [&](auto d, int64_t at, auto m, auto a, auto b) {
    auto value = hn::MulAdd(hn::Sub(hn::LoadU(d, x + at), m), a, b);
    if (relu) value = hn::IfThenElse(hn::Le(value, hn::Zero(d)), hn::Zero(d), value);  // NaN stays
    hn::StoreU(value, d, y + at);
  };
  for_each_block(
      s,
      [&](int64_t, int64_t first, int64_t last) {
        for (int64_t r = first; r < last; ++r) {
          for_each_vector<T>(s.channels, [&](auto d, int64_t c) {
            one(d, r * s.channels + c, hn::LoadU(d, mean + c), hn::LoadU(d, scale + c), hn::LoadU(d, shift + c));
          });
        }
      },
      [&](int64_t, int64_t c, int64_t offset, int64_t count) {
        for_each_vector<T>(count, [&](auto d, int64_t i) {
          one(d, offset + i, hn::Set(d, mean[c]), hn::Set(d, scale[c]), hn::Set(d, shift[c]));
        });
      });
}

// Per-channel constants of a gradient, loaded for lanes of channels or set for one channel.
template <typename T>
struct Masked {
  const ChannelGradient<T>& g;
  template <class D, class V>
  HWY_INLINE V gradient(D d, int64_t at, V distance, V scale, V shift) const {
    const auto dy = hn::LoadU(d, g.dy + at);
    if (!g.relu) return dy;
    const auto value = hn::MulAdd(distance, scale, shift);
    return hn::IfThenElseZero(hn::Not(hn::Le(value, hn::Zero(d))),
                              hn::IfThenElse(hn::IsNaN(value), value, dy));  // the same as the gradient of relu
  }
  template <class D>
  HWY_INLINE auto lanes(D d, const T* values, int64_t c) const {
    return values ? hn::LoadU(d, values + c) : hn::Zero(d);
  }
  template <class D>
  HWY_INLINE auto all(D d, const T* values, int64_t c) const {
    return values ? hn::Set(d, values[c]) : hn::Zero(d);
  }
};

template <typename T>
void gradient_sums(const ChannelShape& s, const ChannelGradient<T>& g, T* sum_dy, T* sum_product, void* workspace) {
  T* plain = static_cast<T*>(workspace);
  T* product = plain + ChannelBlocks(s).blocks * s.channels;
  const Masked<T> masked{g};
  for_each_block(
      s,
      [&](int64_t b, int64_t first, int64_t last) {
        for_each_vector<T>(s.channels, [&](auto d, int64_t c) {
          const auto mean = hn::LoadU(d, g.mean + c), scale = masked.lanes(d, g.scale, c),
                     shift = masked.lanes(d, g.shift, c);
          auto a = hn::Zero(d), p = a;
          for (int64_t r = first; r < last; ++r) {
            const int64_t at = r * s.channels + c;
            const auto distance = hn::Sub(hn::LoadU(d, g.x + at), mean);
            const auto dy = masked.gradient(d, at, distance, scale, shift);
            a = hn::Add(a, dy);
            p = hn::MulAdd(dy, distance, p);
          }
          hn::StoreU(a, d, plain + b * s.channels + c);
          hn::StoreU(p, d, product + b * s.channels + c);
        });
      },
      [&](int64_t b, int64_t c, int64_t offset, int64_t count) {
        const auto at = [&](auto d, int64_t i, auto&& use) {
          const auto distance = hn::Sub(hn::LoadU(d, g.x + offset + i), hn::Set(d, g.mean[c]));
          return use(masked.gradient(d, offset + i, distance, masked.all(d, g.scale, c), masked.all(d, g.shift, c)),
                     distance);
        };
        plain[b * s.channels + c] =
            sum_of<T>(count, [&](auto d, int64_t i) { return at(d, i, [](auto dy, auto) { return dy; }); });
        product[b * s.channels + c] = sum_of<T>(count, [&](auto d, int64_t i) {
          return at(d, i, [](auto dy, auto distance) { return hn::Mul(dy, distance); });
        });
      });
  const int64_t blocks = ChannelBlocks(s).blocks;
  parallel_for(s.channels, 1.2 * static_cast<double>(blocks), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double a = 0, p = 0;
      for (int64_t b = 0; b < blocks; ++b) {
        a += static_cast<double>(plain[b * s.channels + c]);
        p += static_cast<double>(product[b * s.channels + c]);
      }
      sum_dy[c] = static_cast<T>(a);
      sum_product[c] = static_cast<T>(p);
    }
  });
}

template <typename T>
void gradient_apply(const ChannelShape& s, const ChannelGradient<T>& g, const T* factor, const T* offset_by,
                    const T* slope, T* dx) {
  const Masked<T> masked{g};
  const auto one = [&](auto d, int64_t at, auto mean, auto scale, auto shift, auto f, auto o, auto k) {
    const auto distance = hn::Sub(hn::LoadU(d, g.x + at), mean);
    const auto dy = masked.gradient(d, at, distance, scale, shift);
    hn::StoreU(hn::Mul(f, hn::NegMulAdd(distance, k, hn::Sub(dy, o))), d, dx + at);
  };
  for_each_block(
      s,
      [&](int64_t, int64_t first, int64_t last) {
        for (int64_t r = first; r < last; ++r) {
          for_each_vector<T>(s.channels, [&](auto d, int64_t c) {
            one(d, r * s.channels + c, hn::LoadU(d, g.mean + c), masked.lanes(d, g.scale, c),
                masked.lanes(d, g.shift, c), hn::LoadU(d, factor + c), hn::LoadU(d, offset_by + c),
                hn::LoadU(d, slope + c));
          });
        }
      },
      [&](int64_t, int64_t c, int64_t offset, int64_t count) {
        for_each_vector<T>(count, [&](auto d, int64_t i) {
          one(d, offset + i, hn::Set(d, g.mean[c]), masked.all(d, g.scale, c), masked.all(d, g.shift, c),
              hn::Set(d, factor[c]), hn::Set(d, offset_by[c]), hn::Set(d, slope[c]));
        });
      });
}

#define HYBRIDNET_BATCH_NORM_ENTRIES(T)                                                                           \
  void mean_variance_##T(const ChannelShape& s, const T* x, T* mean, T* variance, void* workspace) {              \
    mean_variance(s, x, mean, variance, workspace);                                                               \
  }                                                                                                               \
  void normalize_##T(const ChannelShape& s, const T* x, const T* mean, const T* scale, const T* shift, bool relu, \
                     T* y) {                                                                                      \
    normalize(s, x, mean, scale, shift, relu, y);                                                                 \
  }                                                                                                               \
  void gradient_sums_##T(const ChannelShape& s, const ChannelGradient<T>& g, T* a, T* p, void* workspace) {       \
    gradient_sums(s, g, a, p, workspace);                                                                         \
  }                                                                                                               \
  void gradient_apply_##T(const ChannelShape& s, const ChannelGradient<T>& g, const T* f, const T* o, const T* k, \
                          T* dx) {                                                                                \
    gradient_apply(s, g, f, o, k, dx);                                                                            \
  }
HYBRIDNET_BATCH_NORM_ENTRIES(float)
HYBRIDNET_BATCH_NORM_ENTRIES(double)
#undef HYBRIDNET_BATCH_NORM_ENTRIES

}  // namespace HWY_NAMESPACE
}  // namespace hybridnet::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {
#define HYBRIDNET_BATCH_NORM_EXPORT(T) \
  HWY_EXPORT(mean_variance_##T);       \
  HWY_EXPORT(normalize_##T);           \
  HWY_EXPORT(gradient_sums_##T);       \
  HWY_EXPORT(gradient_apply_##T);
HYBRIDNET_BATCH_NORM_EXPORT(float)
HYBRIDNET_BATCH_NORM_EXPORT(double)
#undef HYBRIDNET_BATCH_NORM_EXPORT
}  // namespace

int64_t channel_sums_workspace(const ChannelShape& s, int64_t element_size) {
  return std::max<int64_t>(2 * ChannelBlocks(s).blocks * s.channels * element_size, 1);
}

#define HYBRIDNET_BATCH_NORM_API(T)                                                                                   \
  template <>                                                                                                         \
  void channel_mean_variance(const ChannelShape& s, const T* x, T* mean, T* variance, void* workspace) {              \
    if (device::current()) return on_device::channel_mean_variance(s, x, mean, variance);                             \
    HWY_DYNAMIC_DISPATCH(mean_variance_##T)(s, x, mean, variance, workspace);                                         \
  }                                                                                                                   \
  template <>                                                                                                         \
  void channel_normalize(const ChannelShape& s, const T* x, const T* mean, const T* scale, const T* shift, bool relu, \
                         T* y) {                                                                                      \
    if (device::current()) return on_device::channel_normalize(s, x, mean, scale, shift, relu, y);                    \
    HWY_DYNAMIC_DISPATCH(normalize_##T)(s, x, mean, scale, shift, relu, y);                                           \
  }                                                                                                                   \
  template <>                                                                                                         \
  void channel_gradient_sums(const ChannelShape& s, const ChannelGradient<T>& g, T* sum_dy, T* sum_product,           \
                             void* workspace) {                                                                       \
    if (device::current()) return on_device::channel_gradient_sums(s, g, sum_dy, sum_product);                        \
    HWY_DYNAMIC_DISPATCH(gradient_sums_##T)(s, g, sum_dy, sum_product, workspace);                                    \
  }                                                                                                                   \
  template <>                                                                                                         \
  void channel_gradient_apply(const ChannelShape& s, const ChannelGradient<T>& g, const T* factor, const T* offset,   \
                              const T* slope, T* dx) {                                                                \
    if (device::current()) return on_device::channel_gradient_apply(s, g, factor, offset, slope, dx);                 \
    HWY_DYNAMIC_DISPATCH(gradient_apply_##T)(s, g, factor, offset, slope, dx);                                        \
  }
HYBRIDNET_BATCH_NORM_API(float)
HYBRIDNET_BATCH_NORM_API(double)
#undef HYBRIDNET_BATCH_NORM_API

}  // namespace hybridnet::kernels
#endif  // HWY_ONCE
