#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layer_norm.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cmath>

#include "hybridnet/threads.h"
#include "kernels/layer_norm.h"
#include "kernels/vector_rows.h"

#ifndef HYBRIDNET_KERNELS_LAYER_NORM_BLOCKS
#define HYBRIDNET_KERNELS_LAYER_NORM_BLOCKS
namespace hybridnet::kernels {
// Rows per partial column sum: enough elements to pay, and few enough blocks to keep the partial sums small.
inline int64_t rows_per_block(const NormRows& s) {
  constexpr int64_t kElements = 16384, kMaxBlocks = 64;
  return std::max<int64_t>({1, kElements / std::max<int64_t>(s.width, 1), (s.rows + kMaxBlocks - 1) / kMaxBlocks});
}
inline int64_t row_blocks(const NormRows& s) { return (s.rows + rows_per_block(s) - 1) / rows_per_block(s); }
}  // namespace hybridnet::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// kCenters: LayerNorm. Otherwise the mean counts as 0 and there is no shift: RMSNorm.
template <bool kCenters, class V>
HWY_INLINE V centered(V x, V mean) {
  if constexpr (kCenters) return hn::Sub(x, mean);
  return x;
}

template <bool kCenters, typename T>
void forward(const NormRows& s, const T* x, const T* gamma, const T* beta, double eps, T* y, T* mean_out, T* std_out) {
  const hn::ScalableTag<T> d;
  const T share = T(1) / static_cast<T>(s.width);
  parallel_for(s.rows, 2.5 * static_cast<double>(s.width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* from = x + r * s.width;
      T* to = y + r * s.width;
      T average = 0;
      if constexpr (kCenters)
        average = sum_row<T>(s.width, [&](auto at, int64_t i) { return at.load(from + i); }) * share;
      const auto mean = hn::Set(d, average);
      const T variance = sum_row<T>(s.width,
                                    [&](auto at, int64_t i) {
                                      const auto distance = centered<kCenters>(at.load(from + i, average), mean);
                                      return hn::Mul(distance, distance);
                                    }) *
                         share;
      const T deviation = std::sqrt(variance + static_cast<T>(eps));
      const auto inverse = hn::Set(d, T(1) / deviation);
      along_row<T>(s.width, [&](auto at, int64_t i) {
        const auto h = hn::Mul(centered<kCenters>(at.load(from + i), mean), inverse);
        if constexpr (kCenters) {
          at.store(hn::MulAdd(h, at.load(gamma + i), at.load(beta + i)), to + i);
        } else {
          at.store(hn::Mul(h, at.load(gamma + i)), to + i);
        }
      });
      if (mean_out) mean_out[r] = average;
      if (std_out) std_out[r] = deviation;
    }
  });
}

// Without kCenters, mean_in and dbeta are null and half of the workspace is not used.
template <bool kCenters, typename T>
void gradient(const NormRows& s, const T* dy, const T* x, const T* gamma, const T* mean_in, const T* std_in, T* dx,
              T* dgamma, T* dbeta, void* workspace) {
  const hn::ScalableTag<T> d;
  const int64_t blocks = row_blocks(s), step = rows_per_block(s);
  T* partial_gamma = static_cast<T*>(workspace);
  T* partial_beta = partial_gamma + blocks * s.width;
  parallel_for(blocks, 2.5 * static_cast<double>(step * s.width), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      T *of_gamma = partial_gamma + b * s.width, *of_beta = partial_beta + b * s.width;
      std::fill_n(of_gamma, s.width, T(0));
      if constexpr (kCenters) std::fill_n(of_beta, s.width, T(0));
      for (int64_t r = b * step; r < std::min((b + 1) * step, s.rows); ++r) {
        const T *g = dy + r * s.width, *from = x + r * s.width;
        T* to = dx + r * s.width;
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
          at.store(hn::Mul(hn::NegMulAdd(h, slope, w), inverse), to + i);
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

void forward_float(const NormRows& s, const float* x, const float* gamma, const float* beta, double eps, float* y,
                   float* mean, float* std) {
  forward<true>(s, x, gamma, beta, eps, y, mean, std);
}
void forward_double(const NormRows& s, const double* x, const double* gamma, const double* beta, double eps, double* y,
                    double* mean, double* std) {
  forward<true>(s, x, gamma, beta, eps, y, mean, std);
}
void gradient_float(const NormRows& s, const float* dy, const float* x, const float* gamma, const float* mean,
                    const float* std, float* dx, float* dgamma, float* dbeta, void* workspace) {
  gradient<true>(s, dy, x, gamma, mean, std, dx, dgamma, dbeta, workspace);
}
void gradient_double(const NormRows& s, const double* dy, const double* x, const double* gamma, const double* mean,
                     const double* std, double* dx, double* dgamma, double* dbeta, void* workspace) {
  gradient<true>(s, dy, x, gamma, mean, std, dx, dgamma, dbeta, workspace);
}
void rms_forward_float(const NormRows& s, const float* x, const float* gamma, double eps, float* y, float* rms) {
  forward<false, float>(s, x, gamma, nullptr, eps, y, nullptr, rms);
}
void rms_gradient_float(const NormRows& s, const float* dy, const float* x, const float* gamma, const float* rms,
                        float* dx, float* dgamma, void* workspace) {
  gradient<false, float>(s, dy, x, gamma, nullptr, rms, dx, dgamma, nullptr, workspace);
}
void rms_forward_double(const NormRows& s, const double* x, const double* gamma, double eps, double* y, double* rms) {
  forward<false, double>(s, x, gamma, nullptr, eps, y, nullptr, rms);
}
void rms_gradient_double(const NormRows& s, const double* dy, const double* x, const double* gamma, const double* rms,
                         double* dx, double* dgamma, void* workspace) {
  gradient<false, double>(s, dy, x, gamma, nullptr, rms, dx, dgamma, nullptr, workspace);
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {
HWY_EXPORT(forward_float);
HWY_EXPORT(forward_double);
HWY_EXPORT(gradient_float);
HWY_EXPORT(gradient_double);
HWY_EXPORT(rms_forward_float);
HWY_EXPORT(rms_forward_double);
HWY_EXPORT(rms_gradient_float);
HWY_EXPORT(rms_gradient_double);
}  // namespace

int64_t layer_norm_gradient_workspace(const NormRows& s, int64_t element_size) {
  return std::max<int64_t>(1, 2 * row_blocks(s) * s.width * element_size);
}

template <>
void layer_norm(const NormRows& s, const float* x, const float* gamma, const float* beta, double eps, float* y,
                float* mean, float* std) {
  HWY_DYNAMIC_DISPATCH(forward_float)(s, x, gamma, beta, eps, y, mean, std);
}
template <>
void layer_norm(const NormRows& s, const double* x, const double* gamma, const double* beta, double eps, double* y,
                double* mean, double* std) {
  HWY_DYNAMIC_DISPATCH(forward_double)(s, x, gamma, beta, eps, y, mean, std);
}
template <>
void layer_norm_gradient(const NormRows& s, const float* dy, const float* x, const float* gamma, const float* mean,
                         const float* std, float* dx, float* dgamma, float* dbeta, void* workspace) {
  HWY_DYNAMIC_DISPATCH(gradient_float)(s, dy, x, gamma, mean, std, dx, dgamma, dbeta, workspace);
}
template <>
void layer_norm_gradient(const NormRows& s, const double* dy, const double* x, const double* gamma, const double* mean,
                         const double* std, double* dx, double* dgamma, double* dbeta, void* workspace) {
  HWY_DYNAMIC_DISPATCH(gradient_double)(s, dy, x, gamma, mean, std, dx, dgamma, dbeta, workspace);
}
template <>
void rms_norm(const NormRows& s, const float* x, const float* gamma, double eps, float* y, float* rms) {
  HWY_DYNAMIC_DISPATCH(rms_forward_float)(s, x, gamma, eps, y, rms);
}
template <>
void rms_norm_gradient(const NormRows& s, const float* dy, const float* x, const float* gamma, const float* rms,
                       float* dx, float* dgamma, void* workspace) {
  HWY_DYNAMIC_DISPATCH(rms_gradient_float)(s, dy, x, gamma, rms, dx, dgamma, workspace);
}
template <>
void rms_norm(const NormRows& s, const double* x, const double* gamma, double eps, double* y, double* rms) {
  HWY_DYNAMIC_DISPATCH(rms_forward_double)(s, x, gamma, eps, y, rms);
}
template <>
void rms_norm_gradient(const NormRows& s, const double* dy, const double* x, const double* gamma, const double* rms,
                       double* dx, double* dgamma, void* workspace) {
  HWY_DYNAMIC_DISPATCH(rms_gradient_double)(s, dy, x, gamma, rms, dx, dgamma, workspace);
}

}  // namespace hybridnet::kernels
#endif
