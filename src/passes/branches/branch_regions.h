// Which work of a graph is there for one branch of one cond only: cond_sink will move it there, so that it runs only
// when the branch does. Making it one with work of another region would make it run always.
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
  // None where the pipeline of this thread leaves cond_sink out.
  explicit BranchRegions(const Graph& graph);

  BranchRegion of(const Node& node) const;
  // Does one node for both run no more often than the two do?
  bool may_merge_equal(const Node& a, const Node& b) const;
  // `kept` takes the place of `gone` as well.
  void note_merged(const Node& kept, const Node& gone);

 private:
  std::unordered_map<const Node*, BranchRegion> regions_;
};

}  // namespace hybridnet::passes
