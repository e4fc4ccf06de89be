// Whether arithmetic went wrong between two points of a program (teams/float_errors.h).
#pragma once

#include "teams/float_errors.h"

namespace hybridnet {

// Maxima of vectors lose NaN, and so do post-operations of oneDNN: max(x, 0) of its kernels is 0. Others overflow where
// the function does not. They cannot do so without the processor noticing it, though, which costs nothing to ask. Of
// the calling thread and the teams that it opens meanwhile. What it noticed need not show in a result.
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
