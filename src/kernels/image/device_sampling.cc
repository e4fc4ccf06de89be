#include "kernels/image/device_sampling.h"

#include <algorithm>
#include <string>

#include "device/stream.h"
#include "hybridnet/storage.h"
#include "kernels/device/program_table.h"
#include "kernels/device/sampling_arguments.h"

namespace hybridnet::kernels::on_device {
namespace {

template <typename T>
device::Program& sampling_program() {
  static ProgramTable<1> programs;
  return programs.get(0, [] {
    const std::string type = "<" + element_name(dtype_of<T>::value) + ">";
    std::string grids;
    for (const std::string kind : {"affine_grid", "fill_grid", "warp_grid", "fill_pixels"})
      grids += kernel_line(kind, "GridArguments", kind + type);
    return include_line("sampling.cuh") + grids + kernel_line("resample", "ResampleArguments", "resample" + type) +
           kernel_line("sample_points", "PointArguments", "sample_points" + type) +
           kernel_line("spread_points", "PointArguments", "spread_points" + type);
  });
}

// A map of an axis in memory of the device.
class PlacedMap {
 public:
  explicit PlacedMap(const AxisMap& map)
      : map_(map), block_(bytes(map.begin) + bytes(map.index) + bytes(map.weight), device::current()->device()) {
    device::Stream& stream = *device::current();
    stream.copy_in(block_.data(), map.begin.data(), bytes(map.begin));
    if (map.index.empty()) return;
    stream.copy_in(index(), map.index.data(), bytes(map.index));
    stream.copy_in(index() + bytes(map.index), map.weight.data(), bytes(map.weight));
  }
  device::AxisMapArguments arguments() const {
    return {.begin = static_cast<const int64_t*>(block_.data()),
            .index = reinterpret_cast<const int64_t*>(index()),
            .weight = reinterpret_cast<const double*>(index() + bytes(map_.index)),
            .from = map_.from,
            .to = map_.to};
  }

 private:
  template <typename V>
  static int64_t bytes(const std::vector<V>& v) {
    return static_cast<int64_t>(v.size() * sizeof(V));
  }
  char* index() const { return static_cast<char*>(block_.data()) + bytes(map_.begin); }
  const AxisMap& map_;
  const OwnedBlock block_;
};

template <typename T>
void run_points(const char* function, const PointSampling& s, const T* image, const T* grid, T* out, int64_t n) {
  if (n == 0) return;
  const device::PointArguments a{.image = image,
                                 .grid = grid,
                                 .out = out,
                                 .batch = s.batch,
                                 .channels = s.channels,
                                 .height = s.height,
                                 .width = s.width,
                                 .points = s.points(),
                                 .along_x = s.along_x,
                                 .along_y = s.along_y};
  sampling_program<T>().launch(function, device::geometry_for(n), a);
}

}  // namespace

template <typename T>
void resample(const AxisMap& rows, const AxisMap& columns, int64_t planes, const T* in, T* out, bool accumulate) {
  const int64_t n = planes * rows.to * columns.to;
  if (n == 0) return;
  const PlacedMap down(rows), across(columns);
  const device::ResampleArguments a{.in = in,
                                    .out = out,
                                    .rows = down.arguments(),
                                    .columns = across.arguments(),
                                    .planes = planes,
                                    .accumulate = accumulate};
  sampling_program<T>().launch("resample", device::geometry_for(n), a);
}

template <typename T>
void sample_points(const PointSampling& s, const T* image, const T* grid, T* out) {
  run_points("sample_points", s, image, grid, out, s.batch * s.channels * s.points());
}

template <typename T>
void spread_points(const PointSampling& s, const T* values, const T* grid, T* image) {
  run_points("spread_points", s, values, grid, image, s.batch * s.channels * s.image());
}

template <typename T>
void make_grid(const char* kind, int64_t batch, int64_t height, int64_t width, const T* in, T* out) {
  const int64_t n = std::max<int64_t>(batch * 2, 3) * height * width;
  if (batch * height * width == 0) return;
  const device::GridArguments a{.in = in, .out = out, .batch = batch, .height = height, .width = width};
  sampling_program<T>().launch(kind, device::geometry_for(n), a);
}

#define HYBRIDNET_DEVICE_SAMPLING(T)                                                   \
  template void resample(const AxisMap&, const AxisMap&, int64_t, const T*, T*, bool); \
  template void make_grid(const char*, int64_t, int64_t, int64_t, const T*, T*);       \
  template void sample_points(const PointSampling&, const T*, const T*, T*);           \
  template void spread_points(const PointSampling&, const T*, const T*, T*);
HYBRIDNET_DEVICE_SAMPLING(float)
HYBRIDNET_DEVICE_SAMPLING(double)
#undef HYBRIDNET_DEVICE_SAMPLING

}  // namespace hybridnet::kernels::on_device
