// Sets the number of cores of the machine to `cores` for a test, and restores it afterwards.
#pragma once

#include "hybridnet/threads.h"

namespace hybridnet::testing {

class CoresForTest {
 public:
  explicit CoresForTest(int cores) : before_(cpu_cores()) { set_cpu_cores(cores); }
  ~CoresForTest() { set_cpu_cores(before_); }
  CoresForTest(const CoresForTest&) = delete;

 private:
  const int before_;
};

}  // namespace hybridnet::testing
