// Calls Engine::finish_inline() after a successful try_begin_inline(), also when the work throws.
#pragma once

#include "hybridnet/engine.h"

namespace hybridnet {

class InlineRun {
 public:
  InlineRun(Engine& engine, Engine::Access access) : engine_(engine), access_(access) {}
  ~InlineRun() { engine_.finish_inline(access_); }
  InlineRun(const InlineRun&) = delete;

 private:
  Engine& engine_;
  Engine::Access access_;
};

}  // namespace hybridnet
