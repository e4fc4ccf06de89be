#include "kernels.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "corruption.h"
#include "faults.h"
#include "fibers.h"
#include "memory.h"
#include "recording.h"
#include "reports.h"

namespace standin {
namespace {

enum class ThreadOrder : int { kForward, kBackward, kShuffled };

std::atomic<int>& thread_order() {
  static std::atomic<int> order = [] {
    const char* text = std::getenv("HNSTANDIN_ORDER");
    if (text && std::strcmp(text, "backward") == 0) return static_cast<int>(ThreadOrder::kBackward);
    if (text && std::strcmp(text, "shuffled") == 0) return static_cast<int>(ThreadOrder::kShuffled);
    return static_cast<int>(ThreadOrder::kForward);
  }();
  return order;
}

hn_host::Order order_of(World& w, uint64_t count) {
  switch (static_cast<ThreadOrder>(thread_order().load())) {
    case ThreadOrder::kForward:
      return {0, 1};
    case ThreadOrder::kBackward:
      return {count - 1, count - 1};
    case ThreadOrder::kShuffled:
      break;
  }
  uint64_t stride = w.random() % count;
  while (std::gcd(stride, count) != 1) stride = (stride + 1) % count;
  return {w.random() % count, stride};
}

// An image has no size; the table of sections ends the file that a linker writes.
size_t image_bytes(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return 0;
  return header.e_shoff + static_cast<size_t>(header.e_shnum) * header.e_shentsize;
}

bool is_finished(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof(header));
  return header.e_flags == hn_host::kFinishedImage;
}

// The loader takes files; each has a path of its own, for the loader compares paths.
void* load_bytes(const void* image, size_t bytes) {
  const char* folder = std::getenv("TMPDIR");
  std::string path = std::string(folder && *folder ? folder : "/tmp") + "/hnstandin-image-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) return nullptr;
  const auto* from = static_cast<const char*>(image);
  bool written = true;
  for (size_t done = 0; written && done < bytes;) {
    const ssize_t count = write(file, from + done, bytes - done);
    written = count > 0;
    if (written) done += static_cast<size_t>(count);
  }
  close(file);
  void* library = written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path.c_str());
  return library;
}

// User memory, in the part of the address space where heaps, stacks and libraries lie, and mapped.
bool is_host_memory(World& w, uint64_t address) {
  if (address < 0x550000000000 || address > 0x7fffffffffff || in_device_range(address)) return false;
  const auto after = w.pinned.upper_bound(address);
  const bool pinned = after != w.pinned.begin() &&
                      address < std::prev(after)->first + static_cast<uint64_t>(std::prev(after)->second.bytes);
  unsigned char resident = 0;
  return !pinned && mincore(reinterpret_cast<void*>(address & ~uint64_t{4095}), 1, &resident) == 0;
}

// A small number of 32 bits before four bytes that belong to no member: they hold what was there before, such as the
// upper half of an address.
bool is_flag(uint64_t word) { return (word & 0xffffffff) < 0x10000; }

// A kernel could read the host's memory here, which no GPU can. Arguments that were never set look like that, too.
void report_host_pointers(World& w, const std::string& kernel, const void* arguments, size_t bytes) {
  static const bool wanted = setting("HNSTANDIN_HOST_POINTERS", 1) != 0;
  for (size_t at = 0; wanted && at + 8 <= bytes; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, static_cast<const char*>(arguments) + at, sizeof(word));
    if (!is_flag(word) && is_host_memory(w, word))
      report("host pointer: kernel '" + kernel + "' gets " + hex(word) + " at byte " + std::to_string(at) +
             " of its arguments, which is memory of the host, or was never set");
  }
}

uint64_t volume(const hn_host::Index3& size) { return uint64_t{size.x} * size.y * size.z; }

Result run_grid(World& w, const Launch& launch) {
  const hn_host::Kernel& kernel = *launch.function->kernel;
  *kernel.builtins = {{0, 0, 0}, {0, 0, 0}, launch.block, launch.grid};
  *kernel.services = &services();
  const uint64_t blocks = volume(launch.grid);
  const hn_host::Order block_order = order_of(w, blocks), threads = order_of(w, volume(launch.block));
  if (!kernel.cooperates) {
    kernel.run(launch.arguments.data(), block_order, threads);
    return kSuccess;
  }
  uint64_t at = block_order.start;
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t rest = at / launch.grid.x;
    kernel.builtins->block = {static_cast<unsigned>(at % launch.grid.x), static_cast<unsigned>(rest % launch.grid.y),
                              static_cast<unsigned>(rest / launch.grid.y)};
    if (const Result result = run_block(kernel, launch.arguments.data(), threads); result != kSuccess) return result;
    at += block_order.stride;
    if (at >= blocks) at -= blocks;
  }
  return kSuccess;
}

}  // namespace

void Launch::copy_arguments(void* const* from) {
  const hn_host::Kernel& kernel = *function->kernel;
  const size_t bytes = kernel.argument_bytes;
  arguments.resize(bytes / sizeof(std::max_align_t) + 1);
  auto* const to = reinterpret_cast<char*>(arguments.data());
  std::memset(to, 0, bytes);  // the bytes between parameters
  if (!kernel.parameters) std::memcpy(to, from[0], bytes);
  for (unsigned i = 0; i < kernel.parameter_count; ++i)
    std::memcpy(to + kernel.parameters[i].offset, from[i], kernel.parameters[i].bytes);
  report_host_pointers(world(), function->name, arguments.data(), bytes);
}

Module* load_module(const void* image) {
  const size_t bytes = image_bytes(image);
  void* library = bytes == 0 ? nullptr : load_bytes(image, bytes);
  if (!library) return nullptr;
  if (is_finished(image) && dlsym(library, "hn_linked_by_driver")) {
    report("module: a cubin calls cudaGraphSetConditional, which the driver links into PTX only");
    dlclose(library);
    return nullptr;
  }
  auto* module = new Module;
  module->library = library;
  return module;
}

Function* find_function(Module& module, const std::string& name) {
  auto& known = module.functions[name];
  if (known) return known.get();
  auto* kernel = static_cast<hn_host::Kernel*>(dlsym(module.library, ("hn_kernel_" + name).c_str()));
  if (!kernel || kernel->magic != hn_host::kKernelMagic) return nullptr;
  known = std::make_unique<Function>(Function{&module, name, kernel});
  return known.get();
}

Result check_launch(const Launch& launch) {
  const hn_host::Index3 &grid = launch.grid, &block = launch.block;
  const bool empty = volume(grid) == 0 || volume(block) == 0;
  const bool too_large = grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535 || block.x > 1024 || block.y > 1024 ||
                         block.z > 64 || volume(block) > 1024;
  if (empty || too_large) {
    report("geometry: kernel '" + launch.function->name + "' with " + (empty ? "no" : "too many") + " threads");
    return kInvalidValue;
  }
  const unsigned most = launch.function->kernel->max_threads;
  if (volume(block) <= most) return kSuccess;
  report("geometry: kernel '" + launch.function->name + "' has more than the " + std::to_string(most) +
         " threads in a block that __launch_bounds__ says");
  return kOutOfResources;
}

Result run_launch(World& w, Launch& launch) {
  begin_kernel(launch.function->name);
  const int device = launch.function->module->context->device;
  Corruption corruption(w, launch.function->name, device);
  const Recording recording(w, launch);
  const Result result = run_guarded(w, launch.function->name, device, [&w, &launch] { return run_grid(w, launch); });
  corruption.apply();
  if (result == kSuccess)
    recording.write();
  else
    forget_fibers();
  return result;
}

}  // namespace standin

// For tests: the order of blocks and threads of later launches: 0 forward, 1 backward, 2 shuffled.
extern "C" void hnstandin_order(int order) { standin::thread_order() = order; }
