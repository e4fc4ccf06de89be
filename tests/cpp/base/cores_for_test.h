// Gives a test a machine of `cores` cores and puts the real number back.
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
