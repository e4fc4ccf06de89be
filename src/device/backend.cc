#include "device/backend.h"

#include <atomic>
#include <mutex>

namespace hybridnet::device {
namespace {

std::atomic<MakeBackend> g_make{nullptr};

struct Installed {
  std::unique_ptr<Backend> backend;
  std::string why_none;
};

// Never destroyed: arrays in other static objects may die after it would.
const Installed& installed() {
  static const Installed* const made = [] {
    auto* i = new Installed;
    const MakeBackend make = g_make.load(std::memory_order_acquire);
    if (make != nullptr)
      i->backend = make(&i->why_none);
    else
      i->why_none = "this build has no driver for devices";
    return i;
  }();
  return *made;
}

}  // namespace

Backend* backend() { return installed().backend.get(); }
const std::string& why_none() { return installed().why_none; }
void set_backend_maker(MakeBackend make) { g_make.store(make, std::memory_order_release); }

}  // namespace hybridnet::device
