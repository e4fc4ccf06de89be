// Values of the forward run that the backward run makes again instead of keeping them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hybridnet/mutable_graph.h"

namespace hybridnet {

// hybridize(remat=...). kAuto: what takes next to no time; kBytes: the cheapest values until so many bytes are kept.
struct RematPolicy {
  enum class Kind : int8_t { kNone, kAuto, kBytes } kind = Kind::kAuto;
  int64_t bytes = 0;
  // "auto", "none", or a number of bytes. Throws ParamError for others.
  static RematPolicy parse(const std::string& text);
};

// What the rewrite `remat` has to know of the joint graph that this thread rewrites. Without one it does nothing.
class RematScope {
 public:
  struct Settings {
    RematPolicy policy;
    bool is_cut = false;  // into a forward and a backward plan; else both are one plan
    // Per input of the graph: may backward nodes read it that did not so far? Those of a cut graph may not read states,
    // which the forward plan has written by then, nor data, over which the caller may have written.
    std::vector<bool> readable;
    // Of the body of a loop, cut into one of the forward and one of the backward loop: what is kept is kept of every
    // iteration.
    struct Body {
      size_t outs = 0;  // first outputs, which the loop stacks anyway; of the others it has the last values only
    };
    std::optional<Body> body{};
  };
  struct Result {
    int64_t before = 0, after = 0;  // bytes that are kept
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

// On layers whose result gradients read, and which run again for them: neither run may take the activation behind it
// along, which would round otherwise than the two do by themselves.
inline constexpr char kApartAttribute[] = "__apart__";

bool remat(Graph& graph);

// Bytes of values, but of inputs and constants, that are alive at once where they are most, if nodes run as
// Graph::schedule() says and none writes over what another has made.
struct Peak {
  int64_t bytes = 0;
  size_t at = 0;  // number of the node in the schedule
};
Peak find_peak(const Graph& graph);

}  // namespace passes
}  // namespace hybridnet
