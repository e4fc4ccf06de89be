#include <sstream>
#include <unordered_map>

#include "graph/control/control_flow.h"
#include "hybridnet/graph.h"

namespace hybridnet {

std::string text_of_bodies(const Node& node) {
  std::string text;
  for (size_t i = 0; i < node.subgraphs.size(); ++i) {
    const Subgraph& body = *node.subgraphs[i];
    text += "  " + node.op->subgraph_names[i] + "(";
    for (size_t k = 0; k < body.inputs.size(); ++k) text += (k ? ", " : "") + body.inputs[k]->name;
    text += "):\n";
    std::istringstream lines(Symbol{body.outputs}.text());
    for (std::string line; std::getline(lines, line);) text += "    " + line + "\n";
  }
  return text;
}

// One line per node: `%3 = FullyConnected(%0, %1, %2) {num_hidden=10} : float32(2, 10)  # dense0_fwd @ net.py:12`.
std::string Symbol::text() const {
  std::string out;
  std::unordered_map<const Node*, int> ids;
  auto ref = [&](const NodeEntry& e) {
    std::string name = "%" + std::to_string(ids.at(e.node.get()));
    return e.node->num_outputs() > 1 ? name + "." + std::to_string(e.index) : name;
  };
  for (const Node* node : topological_order(outputs)) {
    const int id = static_cast<int>(ids.size());
    ids.emplace(node, id);
    out += "%" + std::to_string(id) + " = ";
    if (node->is_variable()) {
      out += node->constant ? "constant" : "variable";
    } else {
      out += node->op->name + "(";
      for (size_t i = 0; i < node->inputs.size(); ++i) out += (i ? ", " : "") + ref(node->inputs[i]);
      out += ")";
      std::string attrs;
      for (const auto& [key, value] : node->op->schema->print(node->params->data()))
        attrs += (attrs.empty() ? "" : ", ") + key + "=" + value;
      if (!attrs.empty()) out += " {" + attrs + "}";
    }
    for (size_t i = 0; i < node->specs.size(); ++i) out += (i ? ", " : " : ") + node->specs[i].str();
    out += "  # " + node->name;
    if (node->where.known()) out += " @ " + node->where.str();
    out += "\n" + text_of_bodies(*node);
  }
  out += "return";
  for (size_t i = 0; i < outputs.size(); ++i) out += (i ? ", " : " ") + ref(outputs[i]);
  return out + "\n";
}

}  // namespace hybridnet
