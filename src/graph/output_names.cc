// MXNet's rule: the names that the operator lists; without a list "output", or "output0", "output1", ... if it has
// several outputs, hidden ones counted. Declarations name outputs by their meaning, mostly in MXNet's words. The tables
// here hold the operators to which MXNet gives other names: facts about files, which no kernel needs.
// tests/python/symbol/mxnet_names.json holds MXNet's names for the whole registry.
#include "graph/output_names.h"

#include <algorithm>
#include <string_view>

namespace hybridnet {
namespace {

// Operators without a list in MXNet: names are numbered if there are several outputs.
constexpr std::string_view kNumbered[] = {
    "CTCLoss",
    "_contrib_bipartite_matching",
    "_contrib_box_encode",
    "_contrib_box_nms",
    "_contrib_quantize",
    "_contrib_quantize_v2",
    "_contrib_requantize",
    "_histogram",
    "_linalg_gelqf",
    "_linalg_slogdet",
    "_linalg_syevd",
    "_npi_eig",
    "_npi_eigh",
    "_npi_svd",
    "_npi_unique",
    "_sample_multinomial",
    "_sample_unique_zipfian",
    "moments",
    "sort",
    "topk",
};

// Numbered although there is one output here: MXNet counts hidden outputs, too (or numbers the parts of a split).
constexpr std::string_view kNumberedAlone[] = {
    "SliceChannel", "_linalg_det", "_npi_average",  "_npi_exponential", "_npi_gumbel",   "_npi_logistic",
    "_npi_norm",    "_npi_normal", "_npi_normal_n", "_npi_pareto",      "_npi_rayleigh", "_npi_weibull",
};

struct ListedName {
  std::string_view op;
  uint32_t output;
  std::string_view name;
};
constexpr ListedName kListed[] = {
    {"make_loss", 0, "loss"},  {"_npi_concatenate", 0, "out"},
    {"_npi_dstack", 0, "out"}, {"_npi_hstack", 0, "out"},
    {"_npi_matmul", 0, "out"}, {"_npi_std", 0, "std"},
    {"_npi_var", 0, "var"},    {"_contrib_quantized_rnn", 2, "statecell_ouput"},  // MXNet's spelling
};

template <size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string name_in_node(const Node& node, uint32_t index) {
  const Op& op = *node.op;
  for (const ListedName& listed : kListed)
    if (listed.op == op.name && listed.output == index) return std::string(listed.name);
  const int count = node.num_outputs();
  const std::string number = "output" + std::to_string(index);
  if (contains(kNumberedAlone, op.name) || (count > 1 && contains(kNumbered, op.name))) return number;
  const bool declared = op.outputs.size() > 1 && static_cast<size_t>(count) <= op.outputs.size();
  if (declared && node.num_visible_outputs() > 1) return op.output_name(node.params->data(), static_cast<int>(index));
  return node.num_visible_outputs() == 1 ? "output" : number;
}

}  // namespace

std::string output_name_of(const NodeEntry& entry) {
  const Node& node = *entry.node;
  return node.is_variable() ? node.name : node.name + "_" + name_in_node(node, entry.index);
}

}  // namespace hybridnet
