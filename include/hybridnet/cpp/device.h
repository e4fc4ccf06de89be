// Devices: the CPU and the GPUs of this process. Arrays lie on a device, and operators run where their inputs are:
//
//   const Device device = num_gpus() > 0 ? Device::gpu() : Device::cpu();
//   model.to(device);
//   std::vector<float> scores = model.run({image.to(device)})[0].to_vector<float>();
#pragma once

#include <cstdint>
#include <string>

#include "hybridnet/c_api.h"
#include "hybridnet/cpp/error.h"

namespace hybridnet::cpp {

struct Device {
  HnDeviceType type = HN_CPU;
  int id = 0;
  static Device cpu() { return {}; }
  static Device gpu(int id = 0) { return {HN_GPU, id}; }
  bool is_gpu() const { return type == HN_GPU; }
  // "cpu(0)", "gpu(1)": as in the attribute ctx of operators without inputs.
  std::string str() const { return (is_gpu() ? "gpu(" : "cpu(") + std::to_string(id) + ")"; }
  bool operator==(const Device&) const = default;
};

// The number of GPUs that this process can use. The first call loads the driver, if there is one.
inline int num_gpus() {
  int count = 0;
  detail::check(hn_num_gpus(&count));
  return count;
}
// The reason why num_gpus() is 0; empty if it is not.
inline std::string why_no_gpu() {
  const char* text = nullptr;
  detail::check(hn_why_no_gpu(&text));
  return text;
}

struct MemoryInfo {
  int64_t free_bytes = 0, total_bytes = 0;
};
// The memory of a GPU. Throws UnsupportedError if there is none with this number.
inline MemoryInfo gpu_memory(int id = 0) {
  MemoryInfo info;
  detail::check(hn_gpu_memory(id, &info.free_bytes, &info.total_bytes));
  return info;
}

// Sets whether a library's float32 products on GPUs may round their factors to TF32 (docs/gpu.md); waits for earlier
// calls. Returns the setting before, off at first. Throws the error of an earlier call that failed.
inline bool allow_tf32(bool allow = true) {
  int before = 0;
  detail::check(hn_allow_tf32(allow, &before));
  return before != 0;
}

namespace detail {

// The text of an attribute: {"ctx", Device::gpu(0)}.
inline std::string text(const Device& device) { return device.str(); }

// Returns the device that read(&type, &id) writes.
template <typename Read>
Device device_from(const Read& read) {
  int type = 0, id = 0;
  check(read(&type, &id));
  return {static_cast<HnDeviceType>(type), id};
}

}  // namespace detail
}  // namespace hybridnet::cpp
