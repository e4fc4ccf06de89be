#include <string>

#include "hybridnet/base.h"

namespace hybridnet {
namespace {

const char* device_type_name(DeviceType type) {
  switch (type) {
    case DeviceType::kCPU:
      return "cpu";
    case DeviceType::kGPU:
      return "gpu";
    case DeviceType::kCPUPinned:
      return "cpu_pinned";
    case DeviceType::kCPUShared:
      return "cpu_shared";
    case DeviceType::kWire:
      return "wire";
  }
  return "unknown";
}

}  // namespace

std::string Device::str() const { return std::string(device_type_name(type)) + "(" + std::to_string(id) + ")"; }

}  // namespace hybridnet
