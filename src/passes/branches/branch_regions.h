// Finds the work of a graph that only one branch of one cond needs: cond_sink will move it there, so that it runs only
// when the branch does. Merged with work of another region, it would run always.
#pragma once

#include <unordered_map>

#include "hybridnet/pass.h"

namespace hybridnet::passes {

struct BranchRegion {
  const Node* cond = nullptr;  // null: runs always
  int body = 0;
  bool operator==(const BranchRegion&) const = default;
};

class BranchRegions {
 public:
  // Empty if the pipeline of this thread leaves cond_sink out.
  explicit BranchRegions(const Graph& graph);

  BranchRegion of(const Node& node) const;
  // True if one node for both runs no more often than the two do.
  bool may_merge_equal(const Node& a, const Node& b) const;
  // Records that `kept` takes the place of `gone` as well.
  void note_merged(const Node& kept, const Node& gone);

 private:
  std::unordered_map<const Node*, BranchRegion> regions_;
};

}  // namespace hybridnet::passes
