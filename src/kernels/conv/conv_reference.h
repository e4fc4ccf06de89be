// Convolution by its definition, for dtypes without a fast implementation (float64): one output element at a time, so
// that the result does not depend on the number of cores. Supports every size, dilation, grouping and layout.
#pragma once

#include <algorithm>

#include "hybridnet/threads.h"
#include "kernels/conv/conv_geometry.h"

namespace hybridnet::kernels {

namespace detail {
// Calls f(kernel offset in w, offset in x) for the taps of output position `p` that lie inside the input.
template <typename F>
inline void for_each_tap(const ConvGeometry& g, const ConvStrides& x, const ConvStrides& w,
                         const std::array<int64_t, 3>& p, F&& f) {
  for (int64_t q0 = 0; q0 < g.kernel[0]; ++q0) {
    const int64_t i0 = p[0] * g.stride[0] + q0 * g.dilate[0] - g.pad[0];
    if (i0 < 0 || i0 >= g.in[0]) continue;
    for (int64_t q1 = 0; q1 < g.kernel[1]; ++q1) {
      const int64_t i1 = p[1] * g.stride[1] + q1 * g.dilate[1] - g.pad[1];
      if (i1 < 0 || i1 >= g.in[1]) continue;
      for (int64_t q2 = 0; q2 < g.kernel[2]; ++q2) {
        const int64_t i2 = p[2] * g.stride[2] + q2 * g.dilate[2] - g.pad[2];
        if (i2 < 0 || i2 >= g.in[2]) continue;
        f(q0 * w.spatial[0] + q1 * w.spatial[1] + q2 * w.spatial[2],
          i0 * x.spatial[0] + i1 * x.spatial[1] + i2 * x.spatial[2]);
      }
    }
  }
}

// Calls f(position, index) for every position of `sizes`.
template <typename F>
inline void for_each_position(const std::array<int64_t, 3>& sizes, F&& f) {
  std::array<int64_t, 3> p;
  for (p[0] = 0; p[0] < sizes[0]; ++p[0])
    for (p[1] = 0; p[1] < sizes[1]; ++p[1])
      for (p[2] = 0; p[2] < sizes[2]; ++p[2]) f(p);
}

inline int64_t offset(const ConvStrides& s, const std::array<int64_t, 3>& p) {
  return p[0] * s.spatial[0] + p[1] * s.spatial[1] + p[2] * s.spatial[2];
}
}  // namespace detail

// bias may be null.
template <typename T>
void conv_forward_reference(const ConvGeometry& g, const T* x, const T* w, const T* bias, T* y) {
  const ConvStrides xs = ConvStrides::of(g.c, g.in, g.channels_last), ys = ConvStrides::of(g.o, g.out, g.channels_last);
  const int64_t group_in = g.c / g.groups, group_out = g.o / g.groups;
  const ConvStrides ws = ConvStrides::of(group_in, g.kernel, g.weights_last);
  parallel_for(g.n * g.o, 2.0 * static_cast<double>(g.out_size() * group_in * g.kernel_size()),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t) {
                   const int64_t n = t / g.o, o = t % g.o, first_in = o / group_out * group_in;
                   detail::for_each_position(g.out, [&](const std::array<int64_t, 3>& p) {
                     T sum = bias ? bias[o] : T(0);
                     detail::for_each_tap(g, xs, ws, p, [&](int64_t at_w, int64_t at_x) {
                       const T* from = x + n * xs.n + first_in * xs.c + at_x;
                       const T* weight = w + o * ws.n + at_w;
                       for (int64_t i = 0; i < group_in; ++i) sum += from[i * xs.c] * weight[i * ws.c];
                     });
                     y[n * ys.n + o * ys.c + detail::offset(ys, p)] = sum;
                   });
                 }
               });
}

// Computes dx from dy: for each input element, the sum of its contributions to the output.
template <typename T>
void conv_backward_data_reference(const ConvGeometry& g, const T* dy, const T* w, const T* bias, T* dx) {
  const ConvStrides xs = ConvStrides::of(g.c, g.in, g.channels_last), ys = ConvStrides::of(g.o, g.out, g.channels_last);
  const int64_t group_in = g.c / g.groups, group_out = g.o / g.groups;
  const ConvStrides ws = ConvStrides::of(group_in, g.kernel, g.weights_last);
  parallel_for(
      g.n * g.c, 2.0 * static_cast<double>(g.in_size() * group_out * g.kernel_size()), [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const int64_t n = t / g.c, c = t % g.c, group = c / group_in;
          T* out = dx + n * xs.n + c * xs.c;
          detail::for_each_position(
              g.in, [&](const std::array<int64_t, 3>& p) { out[detail::offset(xs, p)] = bias ? bias[c] : T(0); });
          detail::for_each_position(g.out, [&](const std::array<int64_t, 3>& p) {
            const T* from = dy + n * ys.n + group * group_out * ys.c + detail::offset(ys, p);
            const T* weight = w + group * group_out * ws.n + (c - group * group_in) * ws.c;
            detail::for_each_tap(g, xs, ws, p, [&](int64_t at_w, int64_t at_x) {
              T sum = 0;
              for (int64_t o = 0; o < group_out; ++o) sum += from[o * ys.c] * weight[o * ws.n + at_w];
              out[at_x] += sum;
            });
          });
        }
      });
}

// db may be null.
template <typename T>
void conv_backward_weights_reference(const ConvGeometry& g, const T* x, const T* dy, T* dw, T* db) {
  const ConvStrides xs = ConvStrides::of(g.c, g.in, g.channels_last), ys = ConvStrides::of(g.o, g.out, g.channels_last);
  const int64_t group_in = g.c / g.groups, group_out = g.o / g.groups;
  const ConvStrides ws = ConvStrides::of(group_in, g.kernel, g.weights_last);
  parallel_for(g.o, 2.0 * static_cast<double>(g.n * g.out_size() * group_in * g.kernel_size()),
               [&](int64_t begin, int64_t end) {
                 for (int64_t o = begin; o < end; ++o) {
                   std::fill(dw + o * ws.n, dw + (o + 1) * ws.n, T(0));
                   const int64_t first_in = o / group_out * group_in;
                   T bias = 0;
                   for (int64_t n = 0; n < g.n; ++n) {
                     detail::for_each_position(g.out, [&](const std::array<int64_t, 3>& p) {
                       const T d = dy[n * ys.n + o * ys.c + detail::offset(ys, p)];
                       bias += d;
                       detail::for_each_tap(g, xs, ws, p, [&](int64_t at_w, int64_t at_x) {
                         const T* from = x + n * xs.n + first_in * xs.c + at_x;
                         for (int64_t i = 0; i < group_in; ++i) dw[o * ws.n + i * ws.c + at_w] += from[i * xs.c] * d;
                       });
                     });
                   }
                   if (db) db[o] = bias;
                 }
               });
}

}  // namespace hybridnet::kernels
