// With HNSTANDIN_RECORD=FOLDER each launch is written to FOLDER/<process>.launches, with the memory that it touched
// before and after, so that another compilation of the same text can be compared with it
// (tests/python/device/recorded.py).
// Threads: world().mutex.
#pragma once

#include <string>
#include <vector>

#include "kernels.h"

namespace standin {

bool is_recording();

// The contents of device memory before a launch.
class Recording {
 public:
  Recording(World& w, const Launch& launch);
  // Writes the launch, which has succeeded, with the memory that it has opened.
  void write() const;

 private:
  struct Contents {
    Allocation* allocation;
    std::string bytes;
  };
  const Launch& launch_;
  std::vector<Contents> before_;
};

}  // namespace standin
