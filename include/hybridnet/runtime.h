// Owner of every long-lived object of the process: engine, storage, op registry, rewrite database, caches.
#pragma once

#include <memory>
#include <vector>

#include "hybridnet/engine.h"
#include "hybridnet/op.h"
#include "hybridnet/storage.h"

namespace hybridnet {

class Runtime {
 public:
  static Runtime& get();  // made on first use; torn down in order at exit
  Engine& engine();
  Storage& storage(Device device);  // throws UnsupportedError for a missing device
  const OpRegistry& ops();
  void extend_ops(std::vector<std::unique_ptr<Op>> ops);  // OpRegistry::extend
  // Drains the engine; called by front ends before the interpreter ends.
  void shutdown();
  ~Runtime();

 private:
  Runtime();
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace hybridnet
