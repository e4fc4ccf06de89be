// Values of the forward run that the backward run computes again instead of keeping them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hybridnet/mutable_graph.h"

namespace hybridnet {

// hybridize(remat=...). kAuto: values that take next to no time; kBytes: the cheapest values until so many bytes are
// kept.
struct RematPolicy {
  enum class Kind : int8_t { kNone, kAuto, kBytes } kind = Kind::kAuto;
  int64_t bytes = 0;
  // "auto", "none", or a number of bytes. Throws ParamError for others.
  static RematPolicy parse(const std::string& text);
};

// Facts for the rewrite `remat` about the joint graph that this thread rewrites. Without a scope `remat` does nothing.
class RematScope {
 public:
  struct Settings {
    RematPolicy policy;
    bool is_cut = false;  // into a forward and a backward plan; else both are one plan
    // Per input of the graph: true if backward nodes that do not read it yet may do so. Backward nodes of a cut graph
    // may not read states, which the forward plan has written by then, nor data, which the caller may have overwritten.
    std::vector<bool> readable;
    // Set for the body of a loop, cut into one of the forward and one of the backward loop: its values are kept for
    // every iteration.
    struct Body {
      size_t outs = 0;  // first outputs, which the loop stacks anyway; it has only the last values of the others
    };
    std::optional<Body> body{};
  };
  struct Result {
    int64_t before = 0, after = 0;  // kept bytes
    bool ran = false;
  };
  explicit RematScope(Settings settings);
  ~RematScope();
  RematScope(const RematScope&) = delete;
  RematScope& operator=(const RematScope&) = delete;
  static RematScope* current();  // null: none
  const Settings& settings() const { return settings_; }
  Result result;

 private:
  const Settings settings_;
  RematScope* const before_;
};

namespace passes {

// Attribute of layers that run again because gradients read their results. Neither run may fuse the layer with the
// activation behind it, because the fused node would round differently from the two nodes.
inline constexpr char kApartAttribute[] = "__apart__";

bool remat(Graph& graph);

// The largest number of bytes of values, without inputs and constants, that are alive at once, if nodes run in the
// order of Graph::schedule() and none writes over the result of another.
struct Peak {
  int64_t bytes = 0;
  size_t at = 0;  // number of the node in the schedule
};
Peak find_peak(const Graph& graph);

}  // namespace passes
}  // namespace hybridnet
