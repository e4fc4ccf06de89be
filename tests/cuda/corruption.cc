#include "corruption.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "memory.h"

namespace standin {
namespace {

struct Wanted {
  std::string kernel;  // "any": each one
  int64_t after = 0;   // the number of the launch, counted down; 0: none
};
std::string& corrupted() {
  static std::string& it = *new std::string;
  return it;
}
Wanted& wanted() {
  static Wanted& it = *new Wanted;
  return it;
}

}  // namespace

Corruption::Corruption(World& w, const std::string& kernel, int device) : kernel_(kernel) {
  Wanted& one = wanted();
  if (one.after <= 0 || (one.kernel != "any" && one.kernel != kernel) || --one.after != 0) return;
  for (auto& [pages, allocation] : w.allocations) {
    if (!allocation.freed_by.empty() || allocation.device != device) continue;
    std::vector<unsigned char>& bytes = before_[&allocation];
    peek(allocation, [&](const unsigned char* data) { bytes.assign(data, data + allocation.bytes); });
  }
}

void Corruption::apply() {
  if (before_.empty()) return;
  corrupted() = "nothing of " + kernel_;
  for (const auto& [allocation, before] : before_) {
    if (allocation->opened != Opened::kWrite) continue;
    auto* const now = reinterpret_cast<unsigned char*>(allocation->address);
    for (size_t at = 0; at + 4 <= before.size(); at += 4) {
      if (std::memcmp(now + at, before.data() + at, 4) == 0) continue;
      now[at + 3] ^= 0x40;  // the upper bit of the exponent of a float32: a large change, of 0, too
      corrupted() = kernel_;
      return;
    }
  }
}

}  // namespace standin

// "kernel:N": corrupts the N-th launch of this kernel from now on, "any:N" of all kernels; null or "": none.
extern "C" void hnstandin_corrupt(const char* specification) {
  std::lock_guard lock(standin::world().mutex);
  standin::corrupted().clear();
  const std::string text = specification ? specification : "";
  const size_t colon = text.rfind(':');
  standin::wanted() = colon == std::string::npos
                          ? standin::Wanted{}
                          : standin::Wanted{text.substr(0, colon), std::atoll(text.c_str() + colon + 1)};
}

// The kernel whose result was changed since the last hnstandin_corrupt(); "nothing of" it if it wrote what was there
// before; empty: there was no such launch.
extern "C" void hnstandin_corrupted(char* name, int size) {
  std::lock_guard lock(standin::world().mutex);
  if (name && size > 0) std::snprintf(name, static_cast<size_t>(size), "%s", standin::corrupted().c_str());
}
