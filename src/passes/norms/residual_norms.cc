// Fuses LayerNorm with the sum in front of it, and with the dropout of one summand: one pass over memory instead of
// three, forward and backward.
#include "graph/arithmetic.h"
#include "graph/control/control_flow.h"
#include "passes/attributes.h"
#include "passes/layers/layer_epilogues.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kDropout{"Dropout"}, kAddNorm{"_add_layer_norm"}, kDropoutAddNorm{"_dropout_add_layer_norm"};

// True for a Dropout whose mask only its gradient will read; the fused operator draws that mask again.
bool is_plain_dropout(const Graph& graph, const NodeEntry& entry, const Node& reader) {
  if (!is_first_of(entry, kDropout) || graph.only_reader(entry) != &reader) return false;
  const Node& dropout = *entry.node;
  return graph.train() && !graph.is_used(dropout, 1) && attribute(dropout, "axes").str() == "()" &&
         number_attribute(dropout, "p", 0) > 0;
}

// True for a layer whose kernel adds the other summand while its result is in registers.
bool takes_addend(const Graph& graph, const NodeEntry& entry, const Node& reader) {
  return entry.index == 0 && graph.only_reader(entry) == &reader && fused_form(*entry.node) != nullptr;
}

}  // namespace

Replacement add_layer_norm(Graph& graph, Node& node) {
  const NodeEntry& data = node.inputs[0];
  if (!is_of_arrays(data, "add")) return no_change();
  Node& sum = *data.node;
  const int last = sum.specs[0].shape.ndim() - 1;
  const double axis = number_attribute(node, "axis", -1);
  if (last < 0 || (axis != -1 && axis != last) || sum.specs[0].shape.size() == 0) return no_change();
  for (const NodeEntry& summand : sum.inputs)
    if (!(graph.spec(summand) == sum.specs[0])) return no_change();
  // The fused node stands where the sum stood.
  for (const size_t i : {1u, 2u})
    if (graph.label(*node.inputs[i].node) >= graph.label(sum)) return no_change();
  const bool drops_second = is_plain_dropout(graph, sum.inputs[1], sum);
  const NodeEntry &first = sum.inputs[drops_second ? 1 : 0], &addend = sum.inputs[drops_second ? 0 : 1];
  const bool drops = drops_second || is_plain_dropout(graph, first, sum);
  if (!drops && (takes_addend(graph, first, sum) || takes_addend(graph, addend, sum))) return no_change();
  const double p = drops ? number_attribute(*first.node, "p", 0) : 0;
  const Op& op = drops ? kDropoutAddNorm.op() : kAddNorm.op();
  const NodePtr both =
      graph.add(op, make_params(op, nullptr, {{"eps", number_attribute(node, "eps", 1e-5)}, {"p", p}}),
                {drops ? first.node->inputs[0] : first, addend, node.inputs[1], node.inputs[2]}, &node);
  if (const std::optional<uint64_t> stream = drops ? random_stream(*first.node) : std::nullopt)
    set_random_stream(*both, *stream);  // same draws as Dropout
  const auto moment = [&](uint32_t i) {
    return graph.is_used(node, static_cast<int>(i)) ? NodeEntry{both, i + 1} : NodeEntry{};
  };
  Replacement result{{{both, 0}, moment(1), moment(2)}, {}, {}};
  if (graph.only_reader(data) != &node) result.others.push_back({data, NodeEntry{both, 1}});
  return result;
}

}  // namespace hybridnet::passes
