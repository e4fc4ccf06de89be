#include <atomic>

#include "hybridnet/error.h"
#include "hybridnet/storage.h"
#include "storage/pinned_storage.h"

namespace hybridnet {
namespace {
std::atomic<Storage*> g_cpu{nullptr};
std::atomic<Storage& (*)(Device)> g_find_gpu{nullptr};
std::atomic<Storage* (*)()> g_find_pinned{nullptr};
}  // namespace

Storage& storage(Device device) {
  if (device.type == DeviceType::kGPU) {
    if (const auto find = g_find_gpu.load(std::memory_order_acquire)) return find(device);
    throw UnsupportedError({.message = "there is no device " + device.str() + " in this build",
                            .fix = "use mx.cpu(); mx.context.num_gpus() tells how many GPUs there are"});
  }
  if (device.type == DeviceType::kCPUPinned)
    if (const auto find = g_find_pinned.load(std::memory_order_acquire))
      if (Storage* const pinned = find()) return *pinned;
  Storage* s = g_cpu.load(std::memory_order_acquire);
  if (!s) throw Error(ErrorKind::kError, {.message = "storage was used before Runtime::get()"});
  return *s;
}
void set_cpu_storage(Storage* s) { g_cpu.store(s, std::memory_order_release); }

void set_pinned_storage(Storage* (*find)()) { g_find_pinned.store(find, std::memory_order_release); }
void set_gpu_storage(Storage& (*find)(Device)) { g_find_gpu.store(find, std::memory_order_release); }

}  // namespace hybridnet
