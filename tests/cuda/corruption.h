// A planted error of a kernel: one of the elements that a launch has changed gets another value. It shows that a check
// of results finds it.
// Threads: world().mutex.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "world.h"

namespace standin {

// The memory before a launch that is to be corrupted.
class Corruption {
 public:
  // Counts this launch of a kernel; does nothing unless it is the wanted one.
  Corruption(World& w, const std::string& kernel, int device);
  // Changes the first element of 4 bytes that the launch has changed.
  void apply();

 private:
  const std::string kernel_;
  std::map<Allocation*, std::vector<unsigned char>> before_;
};

}  // namespace standin
