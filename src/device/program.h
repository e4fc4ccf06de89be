// Kernels of devices: CUDA text, compiled at first use and kept by the process, one module per architecture.
// Owner:   the process; programs stay.
// Threads: any. Two threads that need one kernel for the first time compile it once.
// Throws:  EngineError with the compiler's log and the text for text that does not compile.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/stream.h"

namespace hybridnet::device {

class Program {
 public:
  // The program of this text: a translation unit that may include the headers of kernel_headers().
  static Program& of(const std::string& text, ImageKind kind = ImageKind::kFinished);
  static std::vector<std::string> texts();  // the texts of all programs so far, for tests

  // Launches a kernel of the program on current(). `arguments` is the kernel's only parameter
  // (kernels/device/kernel.cuh).
  template <class Arguments>
  void launch(const char* entry, const Geometry& geometry, const Arguments& arguments) {
    launch(entry, geometry, &arguments, sizeof(Arguments));
  }
  // Launches one thread that sets this many conditions of the graph that LaunchBatch records (Backend::Launch).
  template <class Arguments>
  void launch_setting(const char* entry, uint32_t conditions, const Arguments& arguments) {
    launch_setting(entry, conditions, &arguments, sizeof(Arguments));
  }
  void launch_setting(const char* entry, uint32_t conditions, const void* arguments, size_t bytes);
  void launch(const char* entry, const Geometry& geometry, const void* arguments, size_t bytes);

 private:
  struct All;
  struct Entry {
    int device;
    std::string name;
    Backend::Function function;
  };
  struct Found {
    Backend::Function function;
    const char* name;  // that stays
  };
  Program(std::string text, ImageKind kind) : text_(std::move(text)), kind_(kind) {}
  Found find(const char* entry, Device device);

  const std::string text_;
  const ImageKind kind_;
  std::mutex mutex_;
  std::map<int, Backend::Module> modules_;  // by device id
  std::deque<Entry> entries_;               // a few: a launch searches them and builds no key
};

// While it lives, launches of this thread do nothing but are counted.
// Owner: a block of the thread; dry runs do not nest.
class DryRun {
 public:
  DryRun() { t_current = this; }
  ~DryRun() { t_current = nullptr; }
  DryRun(const DryRun&) = delete;
  int launches() const { return launches_; }

 private:
  friend class Program;
  static thread_local DryRun* t_current;
  int launches_ = 0;
};

// Threads for n independent elements: blocks of 256; a kernel steps by the size of the grid if n is larger than it.
Geometry geometry_for(int64_t n);
// One block of `threads` threads for each of `blocks` rows, which may exceed the limit of a grid: the kernel steps.
Geometry geometry_for_rows(int64_t blocks, int threads);

}  // namespace hybridnet::device
