#include "recording.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "reports.h"

namespace standin {
namespace {

std::string folder() {
  const char* value = std::getenv("HNSTANDIN_RECORD");
  return value ? value : "";
}

// The file of this process: a child that was forked has one of its own.
std::ofstream& file() {
  static pid_t owner = 0;
  static auto& it = *new std::ofstream;
  if (owner != getpid()) {
    owner = getpid();
    it = std::ofstream(folder() + "/" + std::to_string(owner) + ".launches", std::ios::binary);
  }
  return it;
}

std::string contents(const Allocation& allocation) {
  auto* const pages = reinterpret_cast<void*>(allocation.pages);
  const auto bytes = static_cast<size_t>(allocation.page_bytes);
  if (allocation.opened == Opened::kNo) mprotect(pages, bytes, PROT_READ);
  std::string copy(reinterpret_cast<const char*>(allocation.address), static_cast<size_t>(allocation.bytes));
  if (allocation.opened == Opened::kNo) mprotect(pages, bytes, PROT_NONE);
  return copy;
}

void put(std::ofstream& out, uint64_t number) { out.write(reinterpret_cast<const char*>(&number), sizeof(number)); }

void put(std::ofstream& out, const std::string& bytes) {
  put(out, bytes.size());
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

bool is_recording() { return !folder().empty(); }

Recording::Recording(World& w, const Launch& launch) : launch_(launch) {
  if (!is_recording()) return;
  for (auto& [pages, allocation] : w.allocations) before_.push_back({&allocation, contents(allocation)});
}

void Recording::write() const {
  if (!is_recording()) return;
  const auto* text = static_cast<const char*>(dlsym(launch_.function->module->library, "hn_kernel_text"));
  if (!text) return report("recording: kernel '" + launch_.function->name + "' has an image without its text");
  std::ofstream& out = file();
  put(out, text);
  put(out, launch_.function->name);
  for (const hn_host::Index3& size : {launch_.grid, launch_.block})
    for (const unsigned each : {size.x, size.y, size.z}) put(out, each);
  put(out,
      std::string(reinterpret_cast<const char*>(launch_.arguments.data()), launch_.function->kernel->argument_bytes));
  size_t touched = 0;
  for (const Contents& each : before_) touched += each.allocation->opened != Opened::kNo ? 1 : 0;
  put(out, touched);
  for (const auto& [allocation, bytes] : before_) {
    if (allocation->opened == Opened::kNo) continue;
    put(out, allocation->address);
    put(out, bytes);
    put(out, allocation->opened == Opened::kWrite ? contents(*allocation) : std::string());
  }
  out.flush();
  if (!out) report("recording: '" + folder() + "' cannot be written");
}

}  // namespace standin
