// Sets the recording and training mode of this thread for the lifetime of a scope.
#pragma once

#include "hybridnet/imperative.h"

namespace hybridnet {

class AutogradScope {
 public:
  explicit AutogradScope(AutogradState state) : before_(autograd_state()) { autograd_state() = state; }
  ~AutogradScope() { autograd_state() = before_; }
  AutogradScope(const AutogradScope&) = delete;

 private:
  AutogradState before_;
};

}  // namespace hybridnet
