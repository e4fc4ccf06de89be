#include "ops/quantized/device_bytes.h"

#include <algorithm>

#include "device/memory.h"
#include "hybridnet/storage.h"

namespace hybridnet::ops::on_device {

Range range_of(DType dtype, const void* x, int64_t n) {
  constexpr int64_t kMaxParts = 256, kPart = 4096;
  const int64_t parts = std::min(kMaxParts, (n + kPart - 1) / kPart);
  const OwnedBlock ends(2 * parts * static_cast<int64_t>(sizeof(float)), device::current()->device());
  float* const low = static_cast<float*>(ends.data());
  const device::ByteRangeArguments a{.x = x, .low = low, .high = low + parts, .n = n, .blocks = parts};
  launch_rows("bytes.cuh", "ByteRangeArguments", with_dtype("range_of_parts", dtype), parts, a, "float");
  float found[2 * kMaxParts];
  device::copy_to_host(found, low, 2 * parts * static_cast<int64_t>(sizeof(float)));
  return {*std::min_element(found, found + parts), *std::max_element(found + parts, found + 2 * parts)};
}

}  // namespace hybridnet::ops::on_device
