// The arrays of one call are on one device.
#pragma once

#include <algorithm>
#include <span>

#include "hybridnet/ndarray.h"
#include "hybridnet/op.h"

namespace hybridnet {

// True if all arrays are on CPUs, or all on one GPU.
inline bool share_a_device(std::span<const NDArray> inputs, std::span<const NDArray> out) {
  const auto is_on_cpu = [](const NDArray& a) { return !a.is_on_gpu(); };
  if (std::all_of(inputs.begin(), inputs.end(), is_on_cpu) && std::all_of(out.begin(), out.end(), is_on_cpu))
    return true;
  const Device device = inputs.empty() ? out[0].device() : inputs[0].device();
  const auto is_there = [&](const NDArray& a) { return a.device() == device; };
  return std::all_of(inputs.begin(), inputs.end(), is_there) && std::all_of(out.begin(), out.end(), is_there);
}

// Throws a ValueError that names the first array on another device than the first input, or output without inputs.
[[noreturn]] void throw_devices_apart(const Op& op, std::span<const NDArray> inputs, std::span<const NDArray> out);

}  // namespace hybridnet
