// Functions of one byte: at most 256 results, which are computed once per call.
#pragma once

#include <array>

#include "hybridnet/threads.h"
#include "ops/device_table.h"
#include "ops/quantized/device_bytes.h"
#include "ops/quantized/ranges.h"

namespace hybridnet::ops {

namespace detail {

template <typename T, typename F>
void run_by_table(const KernelArgs& a, Range out, F&& f) {
  static_assert(sizeof(T) == 1);
  const float step = range_at(a, 1).reach() / steps_of(a.in[0].dtype), steps = steps_per_unit(a.out[0].dtype, out);
  std::array<T, 256> table;
  for (size_t i = 0; i < table.size(); ++i) {
    const float x = static_cast<float>(static_cast<T>(i)) * step;
    table[i] = nearest_step<T>(f(x) * steps);
  }
  if (device::current()) {
    const DeviceTable<T> placed(table);
    return on_device::launch_bytes("look_up_bytes", {},
                                   {.x = a.in[0].data, .y = placed.data(), .out = a.out[0].data, .n = a.out[0].size()});
  }
  const uint8_t* data = a.in[0].as<uint8_t>();
  T* result = a.out[0].as<T>();
  parallel_for(a.out[0].size(), 0.5, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) result[i] = table[data[i]];
  });
}

}  // namespace detail

// The quantized form of a function f(float) of one element: inputs data, min and max; outputs bytes of the dtype of
// data, min and max. out: the range of the results for data in its range.
template <typename F>
void run_by_table(const KernelArgs& a, Range out, F&& f) {
  if (a.in[0].dtype == DType::kUInt8)
    detail::run_by_table<uint8_t>(a, out, f);
  else
    detail::run_by_table<int8_t>(a, out, f);
  write_range(a, out);
}

}  // namespace hybridnet::ops
