// The kernels of a user's CUDA text: compiled at first use for each device, and kept by the process.
// Owner:   the process; equal sources share a program.
// Threads: any. Two threads that need one program for the first time compile it once.
// Throws:  ValueError for text that does not compile, with the compiler's log and the line; UnsupportedError for a
//          missing device; EngineError of the backend.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/stream.h"
#include "device/user_source.h"

namespace hybridnet::device {

class UserProgram {
 public:
  struct Kernel {
    Backend::Function function = nullptr;
    std::optional<std::vector<size_t>> parameter_bytes;  // nullopt: the driver is older than CUDA 12.4
  };

  static UserProgram& of(const UserSource& source);

  // Compiles and loads the text for a device if that has not been done.
  void load(Device device);
  // Returns the kernel of this name, or of this entry of UserSource::exports; null: there is none. Loads the text.
  const Kernel* find(const std::string& name, Device device);

 private:
  struct Loaded {
    Backend::Module module;
    std::vector<std::string> symbols;
    std::map<std::string, Kernel> kernels;
  };
  explicit UserProgram(UserSource source) : source_(std::move(source)) {}
  Loaded& loaded(Device device);
  const std::string& symbol_of(const std::string& name, const Loaded& loaded) const;

  const UserSource source_;
  std::mutex mutex_;
  std::map<int, Loaded> devices_;  // by device id
};

}  // namespace hybridnet::device
