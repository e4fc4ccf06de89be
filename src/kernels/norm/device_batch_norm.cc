#include <algorithm>
#include <string>

#include "device/stream.h"
#include "hybridnet/storage.h"
#include "kernels/device/norm_arguments.h"
#include "kernels/device/program_table.h"
#include "kernels/norm/device_norm.h"

namespace hybridnet::kernels::on_device {
namespace {

using device::ChannelArguments;

template <typename T>
device::Program& channel_program() {
  static ProgramTable<1> programs;
  return programs.get(0, [] {
    const std::string type = element_name(dtype_of<T>::value), arguments = "ChannelArguments";
    std::string text = include_line("channels.cuh");
    for (const std::string kind : {"moments", "sums"}) {
      const std::string types = "<" + type + (kind == "sums" ? ", true>" : ", false>");
      text += kernel_line("rows_" + kind, arguments, "channel_rows" + types) +
              block_kernel_line("planes_" + kind, arguments, "channel_planes" + types, type, "256") +
              kernel_line("join_" + kind, arguments, "channel_join_" + kind + "<" + type + ">");
    }
    return text + kernel_line("normalize", arguments, "channel_normalize<" + type + ">") +
           kernel_line("gradient", arguments, "channel_gradient<" + type + ">");
  });
}

ChannelArguments arguments_of(const ChannelShape& s) {
  ChannelArguments a{};
  a.outer = s.outer;
  a.channels = s.channels;
  a.inner = s.inner;
  return a;
}

template <typename T>
void set_gradient(ChannelArguments* a, const ChannelGradient<T>& g) {
  a->x = g.x;
  a->dy = g.dy;
  a->mean = g.mean;
  a->scale = g.scale;
  a->shift = g.shift;
  a->relu = g.relu ? 1 : 0;
}

// Two numbers for each channel; kind: "moments" or "sums".
template <typename T>
void run_sums(const ChannelShape& s, ChannelArguments a, const std::string& kind) {
  const ChannelBlocks split(s);
  a.blocks = split.blocks;
  a.block_rows = split.block_rows;
  a.split = split.of_plane;
  const OwnedBlock partial(channel_sums_workspace(s, sizeof(T)), device::current()->device());
  a.partial_first = partial.data();
  a.partial_second = static_cast<T*>(partial.data()) + a.blocks * s.channels;
  device::Program& program = channel_program<T>();
  const int64_t items = a.blocks * s.channels;
  if (items > 0 && s.inner == 1) {
    program.launch(("rows_" + kind).c_str(), device::geometry_for(items), a);
  } else if (items > 0) {
    constexpr int64_t kGroups = static_cast<int64_t>(2 * sizeof(T));  // parts of planes in a block of threads
    program.launch(("planes_" + kind).c_str(), device::geometry_for_rows((items + kGroups - 1) / kGroups, 256), a);
  }
  if (s.channels > 0) program.launch(("join_" + kind).c_str(), device::geometry_for(s.channels), a);
}

}  // namespace

template <typename T>
void channel_mean_variance(const ChannelShape& s, const T* x, T* mean, T* variance) {
  ChannelArguments a = arguments_of(s);
  a.x = x;
  a.first = mean;
  a.second = variance;
  run_sums<T>(s, a, "moments");
}

template <typename T>
void channel_gradient_sums(const ChannelShape& s, const ChannelGradient<T>& g, T* sum_dy, T* sum_product) {
  ChannelArguments a = arguments_of(s);
  set_gradient(&a, g);
  a.first = sum_dy;
  a.second = sum_product;
  run_sums<T>(s, a, "sums");
}

template <typename T>
void channel_normalize(const ChannelShape& s, const T* x, const T* mean, const T* scale, const T* shift, bool relu,
                       T* y) {
  if (s.size() == 0) return;
  ChannelArguments a = arguments_of(s);
  a.x = x;
  a.mean = mean;
  a.scale = scale;
  a.shift = shift;
  a.relu = relu ? 1 : 0;
  a.out = y;
  channel_program<T>().launch("normalize", device::geometry_for(s.size()), a);
}

template <typename T>
void channel_gradient_apply(const ChannelShape& s, const ChannelGradient<T>& g, const T* factor, const T* offset,
                            const T* slope, T* dx) {
  if (s.size() == 0) return;
  ChannelArguments a = arguments_of(s);
  set_gradient(&a, g);
  a.factor = factor;
  a.offset = offset;
  a.slope = slope;
  a.out = dx;
  channel_program<T>().launch("gradient", device::geometry_for(s.size()), a);
}

#define HYBRIDNET_DEVICE_BATCH_NORM(T)                                                                               \
  template void channel_mean_variance(const ChannelShape&, const T*, T*, T*);                                        \
  template void channel_gradient_sums(const ChannelShape&, const ChannelGradient<T>&, T*, T*);                       \
  template void channel_normalize(const ChannelShape&, const T*, const T*, const T*, const T*, bool, T*);            \
  template void channel_gradient_apply(const ChannelShape&, const ChannelGradient<T>&, const T*, const T*, const T*, \
                                       T*);
HYBRIDNET_DEVICE_BATCH_NORM(float)
HYBRIDNET_DEVICE_BATCH_NORM(double)
#undef HYBRIDNET_DEVICE_BATCH_NORM

}  // namespace hybridnet::kernels::on_device
