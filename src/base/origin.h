// The node of a graph that the calling thread runs, for warnings. (Errors get it added while they propagate.)
#pragma once

#include <cstddef>
#include <string_view>

#include "hybridnet/error.h"

namespace hybridnet {

// While it lives, the thread runs the instructions of one plan. Costs four stores; the fields are made only on request.
class OriginScope {
 public:
  // Returns operator, node, block and line of an instruction.
  using Describe = ErrorFields (*)(const void* plan, size_t instruction);
  // Only its line and node, without allocating memory.
  struct Place {
    SourceLocation where;
    std::string_view node;
  };
  using Locate = Place (*)(const void* plan, size_t instruction);

  // instruction: points to the number of the running instruction; must outlive the scope.
  OriginScope(Describe describe, Locate locate, const void* plan, const size_t* instruction)
      : describe_(describe), locate_(locate), plan_(plan), instruction_(instruction), around_(innermost_) {
    innermost_ = this;
  }
  ~OriginScope() { innermost_ = around_; }
  OriginScope(const OriginScope&) = delete;

  static bool is_in_plan() { return innermost_ != nullptr; }
  // The running instruction of the innermost scope; outside of scopes only the user's line.
  static ErrorFields current();
  // Its line and node, without allocating memory.
  static Place current_graph_position();

 private:
  static thread_local const OriginScope* innermost_ __attribute__((tls_model("initial-exec")));
  const Describe describe_;
  const Locate locate_;
  const void* plan_;
  const size_t* instruction_;
  const OriginScope* around_;
};

}  // namespace hybridnet
