#include <string>

#include "kernels/device/norm_arguments.h"
#include "kernels/device/program_table.h"
#include "kernels/norm/device_norm.h"

namespace hybridnet::kernels::on_device {
namespace {

using device::SoftmaxArguments;

// The threads of a row: neighboring rows lie side by side in memory if inner is large, so one thread for each of them
// reads well.
int group_of(const RowShape& s) {
  constexpr int64_t kManyColumns = 32;
  if (s.inner >= kManyColumns) return 0;
  return s.length <= 16 ? 1 : s.length <= 1024 ? 2 : 3;
}
constexpr int kGroups[] = {1, 8, 32, 256};

// Launches softmax, softmax_gradient or log_softmax_pick.
template <typename T>
void launch_rows(const char* function, const RowShape& s, const SoftmaxArguments& a) {
  static ProgramTable<4> programs;
  const int group = group_of(s), threads = kGroups[group];
  const std::string types = "<" + element_name(dtype_of<T>::value) + ", " + std::to_string(threads) + ">";
  const int64_t rows_of_block = 256 / threads;
  programs
      .get(group,
           [&] {
             std::string text = include_line("softmax.cuh");
             for (const char* each : {"softmax", "softmax_gradient", "log_softmax_pick"})
               text += block_kernel_line(each, "SoftmaxArguments", each + types, "double", "256");
             return text;
           })
      .launch(function, device::geometry_for_rows((a.rows + rows_of_block - 1) / rows_of_block, 256), a);
}

SoftmaxArguments arguments_of(const RowShape& s) {
  SoftmaxArguments a{};
  a.rows = s.rows();
  a.length = s.length;
  a.inner = s.inner;
  return a;
}

}  // namespace

template <typename T>
void softmax(const RowShape& s, const T* x, double scale, bool log, const int64_t* lengths, T* y) {
  if (s.size() == 0) return;
  SoftmaxArguments a = arguments_of(s);
  a.x = x;
  a.out = y;
  a.scale = scale;
  a.log = log ? 1 : 0;
  a.lengths = lengths;
  launch_rows<T>("softmax", s, a);
}

template <typename T>
void softmax_gradient(const RowShape& s, const T* dy, const T* y, double scale, bool log, T* dx) {
  if (s.size() == 0) return;
  SoftmaxArguments a = arguments_of(s);
  a.x = y;
  a.dy = dy;
  a.out = dx;
  a.scale = scale;
  a.log = log ? 1 : 0;
  launch_rows<T>("softmax_gradient", s, a);
}

template <typename T>
void log_softmax_pick(const RowShape& s, const T* x, const int64_t* index, T* picked, T* total) {
  if (s.outer == 0) return;
  SoftmaxArguments a = arguments_of(s);
  a.x = x;
  a.index = index;
  a.picked = picked;
  a.total = total;
  launch_rows<T>("log_softmax_pick", s, a);
}

template <typename T>
void log_softmax_pick_gradient(const RowShape& s, const T* dy, const T* x, const int64_t* index, const T* total,
                               T* dx) {
  if (s.size() == 0) return;
  SoftmaxArguments a = arguments_of(s);
  a.x = x;
  a.dy = dy;
  a.index = index;
  a.total = const_cast<T*>(total);
  a.out = dx;
  static ProgramTable<1> programs;
  programs
      .get(0,
           [&] {
             return include_line("softmax.cuh") +
                    kernel_line("pick_gradient", "SoftmaxArguments",
                                "log_softmax_pick_gradient<" + element_name(dtype_of<T>::value) + ">");
           })
      .launch("pick_gradient", device::geometry_for(s.size()), a);
}

#define HYBRIDNET_DEVICE_SOFTMAX(T)                                                      \
  template void softmax(const RowShape&, const T*, double, bool, const int64_t*, T*);    \
  template void softmax_gradient(const RowShape&, const T*, const T*, double, bool, T*); \
  template void log_softmax_pick(const RowShape&, const T*, const int64_t*, T*, T*);     \
  template void log_softmax_pick_gradient(const RowShape&, const T*, const T*, const int64_t*, const T*, T*);
HYBRIDNET_DEVICE_SOFTMAX(float)
HYBRIDNET_DEVICE_SOFTMAX(double)
#undef HYBRIDNET_DEVICE_SOFTMAX

}  // namespace hybridnet::kernels::on_device
