// Which node of a graph the calling thread runs, for warnings: errors are given this on their way up.
#pragma once

#include <cstddef>
#include <string_view>

#include "hybridnet/error.h"

namespace hybridnet {

// While it lives, the thread runs the instructions of one plan. Costs four stores; the fields are made only when they
// are asked for.
class OriginScope {
 public:
  // Operator, node, block and line of an instruction.
  using Describe = ErrorFields (*)(const void* plan, size_t instruction);
  // Its line and node alone, without taking memory.
  struct Place {
    SourceLocation where;
    std::string_view node;
  };
  using Locate = Place (*)(const void* plan, size_t instruction);

  // instruction: the number of the one that runs; its variable outlives the scope.
  OriginScope(Describe describe, Locate locate, const void* plan, const size_t* instruction)
      : describe_(describe), locate_(locate), plan_(plan), instruction_(instruction), around_(innermost_) {
    innermost_ = this;
  }
  ~OriginScope() { innermost_ = around_; }
  OriginScope(const OriginScope&) = delete;

  // What runs now: of a graph as the innermost scope says; else the user's line alone.
  static ErrorFields current();
  // Its line and node, without taking memory.
  static Place current_place();

 private:
  static thread_local const OriginScope* innermost_ __attribute__((tls_model("initial-exec")));
  const Describe describe_;
  const Locate locate_;
  const void* plan_;
  const size_t* instruction_;
  const OriginScope* around_;
};

}  // namespace hybridnet
