// Detects floating-point errors between two points of a program (teams/float_errors.h).
#pragma once

#include "teams/float_errors.h"

namespace hybridnet {

// For kernels that may compute a wrong result: vector maxima lose NaN, and so do post-operations of oneDNN (its
// max(x, 0) of a NaN is 0), and some kernels overflow although the function does not. Every such case sets a flag of
// the processor, which costs nothing to read. Covers the calling thread and the teams that it opens meanwhile. A set
// flag does not mean that a result is wrong.
class FloatWatch {
 public:
  FloatWatch() : before_(teams::forget_float_errors()) {}
  ~FloatWatch() {
    if (before_ != 0) teams::remember_float_errors(before_);
  }
  FloatWatch(const FloatWatch&) = delete;
  bool saw_error() const { return teams::float_errors() != 0; }

 private:
  const unsigned before_;
};

}  // namespace hybridnet
