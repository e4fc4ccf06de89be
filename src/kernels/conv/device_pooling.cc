#include "kernels/conv/device_pooling.h"

#include <algorithm>
#include <string>

#include "kernels/device/pool_arguments.h"
#include "kernels/device/program_table.h"

namespace hybridnet::kernels::on_device {
namespace {

using device::PoolArguments;

const char* kind_of(PoolType type) {
  switch (type) {
    case PoolType::kMax:
      return "hybridnet::device::Pool::kMax";
    case PoolType::kAvg:
      return "hybridnet::device::Pool::kAverage";
    case PoolType::kLp:
      return "hybridnet::device::Pool::kLp";
    default:
      return "hybridnet::device::Pool::kSum";
  }
}

// The kernels of a type and a layout.
template <typename T>
device::Program& pool_program(const PoolGeometry& g) {
  static ProgramTable<8> programs;
  return programs.get(2 * static_cast<int>(g.type) + (g.channels_last ? 1 : 0), [&g] {
    const std::string layout = element_name(dtype_of<T>::value) + (g.channels_last ? ", true>" : ", false>");
    const std::string typed = std::string("<") + kind_of(g.type) + ", " + layout;
    const auto line = [](const char* name, const std::string& types) {
      return kernel_line(name, "PoolArguments", name + types);
    };
    const std::string text = include_line("pooling.cuh") + line("pool_forward", typed);
    if (g.type == PoolType::kMax)
      return text + line("max_pool_backward", "<" + layout) + line("max_pool_gather", "<" + layout);
    return g.type == PoolType::kLp ? text : text + line("sum_pool_backward", typed);
  });
}

PoolArguments arguments_of(const PoolGeometry& g) {
  PoolArguments a{};
  a.n = g.n;
  a.c = g.c;
  std::copy(g.in.begin(), g.in.end(), a.in);
  std::copy(g.out.begin(), g.out.end(), a.out);
  std::copy(g.kernel.begin(), g.kernel.end(), a.kernel);
  std::copy(g.stride.begin(), g.stride.end(), a.stride);
  std::copy(g.pad.begin(), g.pad.end(), a.pad);
  a.power = g.power;
  a.count_pad = g.count_pad ? 1 : 0;
  return a;
}

template <typename T>
void launch(const char* entry, const PoolGeometry& g, const PoolArguments& a, int64_t size) {
  const int64_t n = g.n * g.c * size;
  if (n > 0) pool_program<T>(g).launch(entry, device::geometry_for(n), a);
}

}  // namespace

template <typename T>
void pool_forward(const PoolGeometry& g, const T* x, T* y) {
  PoolArguments a = arguments_of(g);
  a.x = x;
  a.to = y;
  launch<T>("pool_forward", g, a, g.out_size());
}

template <typename T>
void max_pool_backward(const PoolGeometry& g, const T* dy, const T* x, const T* y, T* dx) {
  PoolArguments a = arguments_of(g);
  a.x = x;
  a.y = y;
  a.dy = dy;
  a.to = dx;
  launch<T>("max_pool_backward", g, a, g.in_size());
}

template <typename T>
void max_pool_gather(const PoolGeometry& g, const T* v, const T* x, const T* y, T* out) {
  PoolArguments a = arguments_of(g);
  a.x = x;
  a.y = y;
  a.dy = v;
  a.to = out;
  launch<T>("max_pool_gather", g, a, g.out_size());
}

template <typename T>
void sum_pool_backward(const PoolGeometry& g, const T* dy, T* dx) {
  PoolArguments a = arguments_of(g);
  a.dy = dy;
  a.to = dx;
  launch<T>("sum_pool_backward", g, a, g.in_size());
}

#define HYBRIDNET_DEVICE_POOLING(T)                                                       \
  template void pool_forward(const PoolGeometry&, const T*, T*);                          \
  template void max_pool_backward(const PoolGeometry&, const T*, const T*, const T*, T*); \
  template void max_pool_gather(const PoolGeometry&, const T*, const T*, const T*, T*);   \
  template void sum_pool_backward(const PoolGeometry&, const T*, T*);
HYBRIDNET_DEVICE_POOLING(float)
HYBRIDNET_DEVICE_POOLING(double)
#undef HYBRIDNET_DEVICE_POOLING

}  // namespace hybridnet::kernels::on_device
