#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/layer_norm.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cmath>

#include "device/stream.h"
#include "hybridnet/storage.h"
#include "hybridnet/threads.h"
#include "kernels/memory/vector_rows.h"
#include "kernels/norm/device_norm.h"
#include "kernels/norm/layer_norm.h"
#include "kernels/random/bernoulli.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// kCenters: LayerNorm. Otherwise RMSNorm: the mean counts as 0 and there is no shift.
template <bool kCenters, class V>
HWY_INLINE V centered(V x, V mean) {
  if constexpr (kCenters) return hn::Sub(x, mean);
  return x;
}

// Computes one row: y = (x - mean) / std * gamma + beta. `total`: the sum of x, used if kCenters.
template <bool kCenters, typename T>
HWY_INLINE void normalize(int64_t width, const T* x, T total, const T* gamma, const T* beta, double eps, T* y,
                          T* mean_out, T* std_out) {
  const hn::ScalableTag<T> d;
  const T share = T(1) / static_cast<T>(width), average = kCenters ? total * share : T(0);
  const auto mean = hn::Set(d, average);
  const T variance = sum_row<T>(width,
                                [&](auto at, int64_t i) HWY_ATTR {
                                  const auto distance = centered<kCenters>(at.load(x + i, average), mean);
                                  return hn::Mul(distance, distance);
                                }) *
                     share;
  const T deviation = std::sqrt(variance + static_cast<T>(eps));
  const auto inverse = hn::Set(d, T(1) / deviation);
  along_row<T>(width, [&](auto at, int64_t i) HWY_ATTR {
    const auto h = hn::Mul(centered<kCenters>(at.load(x + i), mean), inverse);
    if constexpr (kCenters) {
      at.store(hn::MulAdd(h, at.load(gamma + i), at.load(beta + i)), y + i);
    } else {
      at.store(hn::Mul(h, at.load(gamma + i)), y + i);
    }
  });
  if (mean_out) *mean_out = average;
  if (std_out) *std_out = deviation;
}

template <bool kCenters, typename T>
void forward(const NormRows& s, const T* x, const T* gamma, const T* beta, double eps, T* y, T* mean, T* std) {
  parallel_for(s.rows, 2.5 * static_cast<double>(s.width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* from = x + r * s.width;
      T total = 0;
      if constexpr (kCenters)
        total = sum_row<T>(s.width, [&](auto at, int64_t i) HWY_ATTR { return at.load(from + i); });
      normalize<kCenters>(s.width, from, total, gamma, beta, eps, y + r * s.width, mean ? mean + r : nullptr,
                          std ? std + r : nullptr);
    }
  });
}

// The factors of Dropout for the elements of a row: 0 or 1 / keep.
template <typename T>
class KeptRow {
 public:
  KeptRow(double keep, RngKey rng, int64_t width)
      : keep_(keep),
        rng_(rng),
        width_(width),
        factors_(std::max<int64_t>(1, width * static_cast<int64_t>(sizeof(T)))),
        drawn_(std::max<int64_t>(1, width)) {}
  const T* draw(int64_t row) {
    const T factor = keep_ > 0 ? static_cast<T>(1 / keep_) : T(0);
    uint8_t* drawn = static_cast<uint8_t*>(drawn_.data());
    fill_bernoulli(rng_, keep_, row * width_, width_, drawn);
    T* factors = static_cast<T*>(factors_.data());
    for (int64_t i = 0; i < width_; ++i) factors[i] = drawn[i] ? factor : T(0);
    return factors;
  }

 private:
  double keep_;
  RngKey rng_;
  int64_t width_;
  OwnedBlock factors_, drawn_;
};

template <typename T>
void add_forward(const NormRows& s, const ResidualSum<T>& x, const T* gamma, const T* beta, double eps, T* y, T* mean,
                 T* std) {
  const bool drops = x.keep < 1;
  parallel_for(s.rows, (drops ? 3.5 : 2.5) * static_cast<double>(s.width), [&](int64_t begin, int64_t end) {
    KeptRow<T> kept(x.keep, x.rng, drops ? s.width : 0);
    for (int64_t r = begin; r < end; ++r) {
      const T *data = x.data + r * s.width, *addend = x.addend + r * s.width;
      T* sum = (x.sum ? x.sum : y) + r * s.width;
      const T* factors = drops ? kept.draw(r) : nullptr;
      const auto add = [&](auto at, int64_t i) HWY_ATTR {
        const auto value = drops ? hn::MulAdd(at.load(data + i), at.load(factors + i), at.load(addend + i))
                                 : hn::Add(at.load(data + i), at.load(addend + i));
        at.store(value, sum + i);
        return value;
      };
      normalize<true>(s.width, sum, sum_row<T>(s.width, add), gamma, beta, eps, y + r * s.width,
                      mean ? mean + r : nullptr, std ? std + r : nullptr);
    }
  });
}

// Without kCenters, mean_in and dbeta are null and half of the workspace is not used.
template <bool kCenters, typename T>
void gradient(const NormRows& s, const ResidualGradient<T>& residual, const T* dy, const T* x, const T* gamma,
              const T* mean_in, const T* std_in, T* dx, T* dgamma, T* dbeta, void* workspace) {
  const hn::ScalableTag<T> d;
  const bool drops = residual.of_data && residual.keep < 1;
  const int64_t blocks = norm_row_blocks(s), step = norm_rows_per_block(s);
  T* partial_gamma = static_cast<T*>(workspace);
  T* partial_beta = partial_gamma + blocks * s.width;
  parallel_for(blocks, 2.5 * static_cast<double>(step * s.width), [&](int64_t begin, int64_t end) {
    KeptRow<T> kept(residual.keep, residual.rng, drops ? s.width : 0);
    for (int64_t b = begin; b < end; ++b) {
      T *of_gamma = partial_gamma + b * s.width, *of_beta = partial_beta + b * s.width;
      std::fill_n(of_gamma, s.width, T(0));
      if constexpr (kCenters) std::fill_n(of_beta, s.width, T(0));
      for (int64_t r = b * step; r < std::min((b + 1) * step, s.rows); ++r) {
        const T *g = dy + r * s.width, *from = x + r * s.width;
        T* to = dx + r * s.width;
        const T* of_sum = residual.of_sum ? residual.of_sum + r * s.width : nullptr;
        T* of_data = residual.of_data ? residual.of_data + r * s.width : nullptr;
        const T* factors = drops ? kept.draw(r) : nullptr;
        const auto mean = hn::Set(d, kCenters ? mean_in[r] : T(0)), inverse = hn::Set(d, T(1) / std_in[r]);
        auto sum_w = hn::Zero(d), sum_wh = sum_w;
        along_row<T>(s.width, [&](auto at, int64_t i) {
          const auto gradient = at.load(g + i), h = hn::Mul(centered<kCenters>(at.load(from + i), mean), inverse);
          const auto w = hn::Mul(gradient, at.load(gamma + i));
          sum_wh = hn::MulAdd(w, h, sum_wh);
          at.store(hn::MulAdd(gradient, h, at.load(of_gamma + i)), of_gamma + i);
          if constexpr (kCenters) {
            sum_w = hn::Add(sum_w, w);
            at.store(hn::Add(gradient, at.load(of_beta + i)), of_beta + i);
          }
        });
        const auto share = hn::Set(d, T(1) / static_cast<T>(s.width));
        const auto shift = hn::Mul(hn::SumOfLanes(d, sum_w), share), slope = hn::Mul(hn::SumOfLanes(d, sum_wh), share);
        along_row<T>(s.width, [&](auto at, int64_t i) {
          const auto h = hn::Mul(centered<kCenters>(at.load(from + i), mean), inverse);
          const auto w = centered<kCenters>(hn::Mul(at.load(g + i), at.load(gamma + i)), shift);
          auto result = hn::Mul(hn::NegMulAdd(h, slope, w), inverse);
          if (of_sum) result = hn::Add(result, at.load(of_sum + i));
          if (of_data) at.store(drops ? hn::Mul(result, at.load(factors + i)) : result, of_data + i);
          at.store(result, to + i);
        });
      }
    }
  });
  parallel_for(s.width, 2.5 * static_cast<double>(blocks), [&](int64_t begin, int64_t end) {
    const auto total = [&](const T* partial, T* out) {
      if (!out) return;
      for (int64_t i = begin; i < end; ++i) {
        double sum = 0;
        for (int64_t b = 0; b < blocks; ++b) sum += static_cast<double>(partial[b * s.width + i]);
        out[i] = static_cast<T>(sum);
      }
    };
    total(partial_gamma, dgamma);
    total(partial_beta, dbeta);
  });
}

// The entries of LayerNorm (centers) and RMSNorm.
void forward_float(bool centers, const NormRows& s, const float* x, const float* gamma, const float* beta, double eps,
                   float* y, float* mean, float* std) {
  (centers ? forward<true, float> : forward<false, float>)(s, x, gamma, beta, eps, y, mean, std);
}
void forward_double(bool centers, const NormRows& s, const double* x, const double* gamma, const double* beta,
                    double eps, double* y, double* mean, double* std) {
  (centers ? forward<true, double> : forward<false, double>)(s, x, gamma, beta, eps, y, mean, std);
}
void add_forward_float(const NormRows& s, const ResidualSum<float>& x, const float* gamma, const float* beta,
                       double eps, float* y, float* mean, float* std) {
  add_forward(s, x, gamma, beta, eps, y, mean, std);
}
void add_forward_double(const NormRows& s, const ResidualSum<double>& x, const double* gamma, const double* beta,
                        double eps, double* y, double* mean, double* std) {
  add_forward(s, x, gamma, beta, eps, y, mean, std);
}
void gradient_float(bool centers, const NormRows& s, const ResidualGradient<float>& residual, const float* dy,
                    const float* x, const float* gamma, const float* mean, const float* std, float* dx, float* dgamma,
                    float* dbeta, void* workspace) {
  (centers ? gradient<true, float> : gradient<false, float>)(s, residual, dy, x, gamma, mean, std, dx, dgamma, dbeta,
                                                             workspace);
}
void gradient_double(bool centers, const NormRows& s, const ResidualGradient<double>& residual, const double* dy,
                     const double* x, const double* gamma, const double* mean, const double* std, double* dx,
                     double* dgamma, double* dbeta, void* workspace) {
  (centers ? gradient<true, double> : gradient<false, double>)(s, residual, dy, x, gamma, mean, std, dx, dgamma, dbeta,
                                                               workspace);
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {
HWY_EXPORT(forward_float);
HWY_EXPORT(forward_double);
HWY_EXPORT(add_forward_float);
HWY_EXPORT(add_forward_double);
HWY_EXPORT(gradient_float);
HWY_EXPORT(gradient_double);
}  // namespace

int64_t layer_norm_gradient_workspace(const NormRows& s, int64_t element_size) {
  return std::max<int64_t>(1, 2 * norm_row_blocks(s) * s.width * element_size);
}

template <>
void layer_norm(const NormRows& s, const float* x, const float* gamma, const float* beta, double eps, float* y,
                float* mean, float* std) {
  if (device::current()) return on_device::layer_norm<float>(true, s, {.data = x}, gamma, beta, eps, y, mean, std);
  HWY_DYNAMIC_DISPATCH(forward_float)(true, s, x, gamma, beta, eps, y, mean, std);
}
template <>
void layer_norm(const NormRows& s, const double* x, const double* gamma, const double* beta, double eps, double* y,
                double* mean, double* std) {
  if (device::current()) return on_device::layer_norm<double>(true, s, {.data = x}, gamma, beta, eps, y, mean, std);
  HWY_DYNAMIC_DISPATCH(forward_double)(true, s, x, gamma, beta, eps, y, mean, std);
}
template <>
void layer_norm_gradient(const NormRows& s, const float* dy, const float* x, const float* gamma, const float* mean,
                         const float* std, float* dx, float* dgamma, float* dbeta, void* workspace) {
  if (device::current())
    return on_device::layer_norm_gradient<float>(true, s, {}, dy, x, gamma, mean, std, dx, dgamma, dbeta);
  HWY_DYNAMIC_DISPATCH(gradient_float)(true, s, {}, dy, x, gamma, mean, std, dx, dgamma, dbeta, workspace);
}
template <>
void layer_norm_gradient(const NormRows& s, const double* dy, const double* x, const double* gamma, const double* mean,
                         const double* std, double* dx, double* dgamma, double* dbeta, void* workspace) {
  if (device::current())
    return on_device::layer_norm_gradient<double>(true, s, {}, dy, x, gamma, mean, std, dx, dgamma, dbeta);
  HWY_DYNAMIC_DISPATCH(gradient_double)(true, s, {}, dy, x, gamma, mean, std, dx, dgamma, dbeta, workspace);
}
template <>
void add_layer_norm(const NormRows& s, const ResidualSum<float>& x, const float* gamma, const float* beta, double eps,
                    float* y, float* mean, float* std) {
  if (device::current()) return on_device::layer_norm(true, s, x, gamma, beta, eps, y, mean, std);
  HWY_DYNAMIC_DISPATCH(add_forward_float)(s, x, gamma, beta, eps, y, mean, std);
}
template <>
void add_layer_norm_gradient(const NormRows& s, const ResidualGradient<float>& residual, const float* dy,
                             const float* x, const float* gamma, const float* mean, const float* std, float* dx,
                             float* dgamma, float* dbeta, void* workspace) {
  if (device::current())
    return on_device::layer_norm_gradient(true, s, residual, dy, x, gamma, mean, std, dx, dgamma, dbeta);
  HWY_DYNAMIC_DISPATCH(gradient_float)(true, s, residual, dy, x, gamma, mean, std, dx, dgamma, dbeta, workspace);
}
template <>
void add_layer_norm(const NormRows& s, const ResidualSum<double>& x, const double* gamma, const double* beta,
                    double eps, double* y, double* mean, double* std) {
  if (device::current()) return on_device::layer_norm(true, s, x, gamma, beta, eps, y, mean, std);
  HWY_DYNAMIC_DISPATCH(add_forward_double)(s, x, gamma, beta, eps, y, mean, std);
}
template <>
void add_layer_norm_gradient(const NormRows& s, const ResidualGradient<double>& residual, const double* dy,
                             const double* x, const double* gamma, const double* mean, const double* std, double* dx,
                             double* dgamma, double* dbeta, void* workspace) {
  if (device::current())
    return on_device::layer_norm_gradient(true, s, residual, dy, x, gamma, mean, std, dx, dgamma, dbeta);
  HWY_DYNAMIC_DISPATCH(gradient_double)(true, s, residual, dy, x, gamma, mean, std, dx, dgamma, dbeta, workspace);
}
template <>
void rms_norm(const NormRows& s, const float* x, const float* gamma, double eps, float* y, float* rms) {
  if (device::current())
    return on_device::layer_norm<float>(false, s, {.data = x}, gamma, nullptr, eps, y, nullptr, rms);
  HWY_DYNAMIC_DISPATCH(forward_float)(false, s, x, gamma, nullptr, eps, y, nullptr, rms);
}
template <>
void rms_norm_gradient(const NormRows& s, const float* dy, const float* x, const float* gamma, const float* rms,
                       float* dx, float* dgamma, void* workspace) {
  if (device::current())
    return on_device::layer_norm_gradient<float>(false, s, {}, dy, x, gamma, nullptr, rms, dx, dgamma, nullptr);
  HWY_DYNAMIC_DISPATCH(gradient_float)(false, s, {}, dy, x, gamma, nullptr, rms, dx, dgamma, nullptr, workspace);
}
template <>
void rms_norm(const NormRows& s, const double* x, const double* gamma, double eps, double* y, double* rms) {
  if (device::current())
    return on_device::layer_norm<double>(false, s, {.data = x}, gamma, nullptr, eps, y, nullptr, rms);
  HWY_DYNAMIC_DISPATCH(forward_double)(false, s, x, gamma, nullptr, eps, y, nullptr, rms);
}
template <>
void rms_norm_gradient(const NormRows& s, const double* dy, const double* x, const double* gamma, const double* rms,
                       double* dx, double* dgamma, void* workspace) {
  if (device::current())
    return on_device::layer_norm_gradient<double>(false, s, {}, dy, x, gamma, nullptr, rms, dx, dgamma, nullptr);
  HWY_DYNAMIC_DISPATCH(gradient_double)(false, s, {}, dy, x, gamma, nullptr, rms, dx, dgamma, nullptr, workspace);
}

}  // namespace hybridnet::kernels
#endif
