#include "passes/branches/branch_regions.h"

#include <algorithm>

#include "graph/control/body_graph.h"
#include "graph/control/control_flow.h"
#include "passes/branches/cond_parts.h"

namespace hybridnet::passes {
namespace {

bool is_cond(const Node* node) { return control_kind(*node) == ControlKind::kCond; }

bool sinks_into_branches() {
  return PipelineScope::current().query.accepts(PipelineScope::current().pipeline->at("cond_sink"));
}

}  // namespace

BranchRegions::BranchRegions(const Graph& graph) {
  const std::vector<Node*> order = graph.order();
  if (std::none_of(order.begin(), order.end(), is_cond) || !sinks_into_branches()) return;
  std::unordered_map<const Node*, std::vector<int>> readers;
  for (const Node* node : order)
    if (is_cond(node)) readers[node] = bodies_reading(*node);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {  // readers first
    const Node& node = **it;
    if (node.is_variable()) continue;
    BranchRegion region;
    bool one = true;
    for (int i = 0; i < static_cast<int>(node.specs.size()); ++i) {
      for (const Client& client : graph.clients(node, i)) {
        BranchRegion of_client;
        if (client.kind == Client::Kind::kNode) {
          const auto cond = readers.find(client.node);
          const int bodies = cond == readers.end() ? 0 : cond->second[static_cast<size_t>(client.index)];
          if (bodies == 2 || bodies == 4)
            of_client = {client.node, bodies / 2};
          else if (cond == readers.end())
            of_client = of(*client.node);
        }
        one = one && of_client.cond != nullptr && (region.cond == nullptr || region == of_client);
        region = of_client;
      }
    }
    if (one && region.cond != nullptr && may_cross_branch_border(graph, node)) regions_[&node] = region;
  }
}

BranchRegion BranchRegions::of(const Node& node) const {
  const auto found = regions_.find(&node);
  return found == regions_.end() ? BranchRegion{} : found->second;
}

bool BranchRegions::may_merge_equal(const Node& a, const Node& b) const {
  if (regions_.empty()) return true;
  const BranchRegion one = of(a), other = of(b);
  return one == other || one.cond == nullptr || other.cond == nullptr;
}

void BranchRegions::note_merged(const Node& kept, const Node& gone) {
  if (!(of(kept) == of(gone))) regions_.erase(&kept);
}

}  // namespace hybridnet::passes
