#include <algorithm>
#include <string>

#include "device/stream.h"
#include "hybridnet/storage.h"
#include "kernels/device/norm_arguments.h"
#include "kernels/device/program_table.h"
#include "kernels/norm/device_norm.h"

namespace hybridnet::kernels::on_device {
namespace {

using device::NormArguments;

// The kernels of LayerNorm, or of RMSNorm.
template <typename T>
device::Program& norm_program(bool centers) {
  static ProgramTable<2> programs;
  return programs.get(centers ? 1 : 0, [&] {
    const std::string type = element_name(dtype_of<T>::value), types = "<" + type + (centers ? ", true>" : ", false>");
    return include_line("layer_norm.cuh") +
           block_kernel_line("rows", "NormArguments", "normalize_rows" + types, type, "256") +
           block_kernel_line("gradient", "NormArguments", "norm_gradient_rows" + types, type, "256") +
           kernel_line("columns", "NormArguments", "norm_columns" + types) +
           kernel_line("join", "NormArguments", "norm_join_columns<" + type + ">");
  });
}

// A group of 32 threads (float) or 16 (double) takes a row.
template <typename T>
device::Geometry geometry_for_norm(int64_t rows) {
  constexpr int64_t kRows = static_cast<int64_t>(2 * sizeof(T));
  return device::geometry_for_rows((rows + kRows - 1) / kRows, 256);
}

}  // namespace

template <typename T>
void layer_norm(bool centers, const NormRows& s, const ResidualSum<T>& x, const T* gamma, const T* beta, double eps,
                T* y, T* mean, T* std) {
  if (s.rows == 0) return;
  NormArguments a{};
  a.x = x.data;
  a.addend = x.addend;
  a.sum = x.sum;
  a.keep = x.keep;
  a.seed = x.rng.seed;
  a.stream = x.rng.stream;
  a.gamma = gamma;
  a.beta = beta;
  a.eps = eps;
  a.y = y;
  a.mean_out = mean;
  a.std_out = std;
  a.rows = s.rows;
  a.width = s.width;
  norm_program<T>(centers).launch("rows", geometry_for_norm<T>(s.rows), a);
}

template <typename T>
void layer_norm_gradient(bool centers, const NormRows& s, const ResidualGradient<T>& residual, const T* dy, const T* x,
                         const T* gamma, const T* mean, const T* std, T* dx, T* dgamma, T* dbeta) {
  NormArguments a{};
  a.x = x;
  a.dy = dy;
  a.gamma = gamma;
  a.mean = mean;
  a.std = std;
  a.y = dx;
  a.of_sum = residual.of_sum;
  a.of_data = residual.of_data;
  a.keep = residual.keep;
  a.seed = residual.rng.seed;
  a.stream = residual.rng.stream;
  a.key = residual.key;
  a.dgamma = dgamma;
  a.dbeta = dbeta;
  a.rows = s.rows;
  a.width = s.width;
  a.block_rows = norm_rows_per_block(s);
  a.blocks = (s.rows + a.block_rows - 1) / a.block_rows;
  device::Program& program = norm_program<T>(centers);
  // The columns come first: dx may alias dy.
  const OwnedBlock partial(std::max<int64_t>(1, layer_norm_gradient_workspace(s, sizeof(T))),
                           device::current()->device());
  if (s.width > 0 && (dgamma || dbeta)) {
    a.partial_gamma = partial.data();
    a.partial_beta = static_cast<T*>(partial.data()) + a.blocks * s.width;
    if (a.blocks > 0) program.launch("columns", device::geometry_for(a.blocks * s.width), a);
    program.launch("join", device::geometry_for(s.width), a);
  }
  if (s.rows > 0) program.launch("gradient", geometry_for_norm<T>(s.rows), a);
}

#define HYBRIDNET_DEVICE_LAYER_NORM(T)                                                                               \
  template void layer_norm(bool, const NormRows&, const ResidualSum<T>&, const T*, const T*, double, T*, T*, T*);    \
  template void layer_norm_gradient(bool, const NormRows&, const ResidualGradient<T>&, const T*, const T*, const T*, \
                                    const T*, const T*, T*, T*, T*);
HYBRIDNET_DEVICE_LAYER_NORM(float)
HYBRIDNET_DEVICE_LAYER_NORM(double)
#undef HYBRIDNET_DEVICE_LAYER_NORM

}  // namespace hybridnet::kernels::on_device
