// Reads and writes the symbol JSON of MXNet 1.x: docs/formats.md. Every index and count is checked before use.
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "graph/control/closed_body.h"
#include "graph/control/mxnet_form.h"
#include "graph/default_initializers.h"
#include "graph/fused_form.h"
#include "hybridnet/graph.h"
#include "op/attr_text.h"

namespace hybridnet {
namespace {

using Json = nlohmann::ordered_json;  // for writing: keeps the order of the keys
using Document = nlohmann::json;      // for reading: fast look-up in objects with many keys

constexpr int kMxnetVersion = 10901;           // the dialect written
constexpr int kVersionWithoutAttr = 800;       // files without mxnet_version
constexpr int kVersionWithInitializers = 904;  // variables name initializers from here on
constexpr int kMaxSubgraphDepth = 64;
constexpr int64_t kMaxOutputs = 1 << 20;  // limit for all nodes of a file with several outputs: parameters set counts

// Operators with a field of this name accept attributes that their schema does not declare. Files hold these beside
// the declared attributes; the field holds them as a JSON object of strings.
constexpr const char* kOpenAttributes = "open_attributes";

// ---------------------------------------------------------------------------------------------------- writing
void spread_open_attributes(std::map<std::string, std::string>* attrs) {
  const auto it = attrs->find(kOpenAttributes);
  if (it == attrs->end()) return;
  const Json open = Json::parse(it->second, nullptr, false);
  attrs->erase(it);
  if (!open.is_object()) return;
  for (const auto& [key, value] : open.items())
    if (value.is_string()) attrs->emplace(key, value.get<std::string>());
}

// inputs: variables that are written although no output may read them (slots of a body).
Json graph_json(const std::vector<NodeEntry>& outputs, const std::vector<NodePtr>& inputs = {}) {
  std::vector<Node*> order = topological_order(outputs);
  std::unordered_set<const Node*> known(order.begin(), order.end());
  for (const NodePtr& input : inputs)
    if (known.insert(input.get()).second) order.push_back(input.get());
  std::unordered_map<const Node*, int> ids;
  Json nodes = Json::array(), arg_nodes = Json::array(), row_ptr = Json::array({0});
  int64_t total = 0;
  auto entry = [&](const NodeEntry& e) { return Json::array({ids.at(e.node.get()), e.index, 0}); };
  for (const Node* node : order) {
    const int id = static_cast<int>(ids.size());
    ids.emplace(node, id);
    Json j;
    j["op"] = node->is_variable() ? "null" : node->op->name;
    j["name"] = node->name;
    std::map<std::string, std::string> attrs(node->attrs.begin(), node->attrs.end());
    FileForm form;
    const std::optional<FusedLayer> fused = fused_layer(*node);
    if (fused) {
      j["op"] = fused->op;
      form.attributes.assign(fused->attributes.begin(), fused->attributes.end());
    } else if (!node->subgraphs.empty()) {
      form = file_form(*node);
    } else if (!node->is_variable()) {
      form.attributes = node->op->schema->print(node->params->data());
    }
    for (auto& [key, value] : form.attributes) attrs[key] = std::move(value);
    spread_open_attributes(&attrs);
    if (!attrs.empty()) {
      Json a = Json::object();
      for (const auto& [key, value] : attrs) a[key] = value;
      j["attrs"] = std::move(a);
    }
    Json inputs = Json::array();
    for (const NodeEntry& in : fused ? fused->inputs : node->inputs) inputs.push_back(entry(in));
    j["inputs"] = std::move(inputs);
    if (!node->control.empty()) {
      Json deps = Json::array();
      for (const NodePtr& dep : node->control) deps.push_back(ids.at(dep.get()));
      j["control_deps"] = std::move(deps);
    }
    if (fused) j["subgraphs"] = Json::array({graph_json(fused->body->outputs)});
    if (!node->subgraphs.empty()) {
      Json subs = Json::array();
      for (size_t b = 0; b < node->subgraphs.size(); ++b)
        subs.push_back(graph_json(node->subgraphs[b]->outputs, form.unread[b]));
      j["subgraphs"] = std::move(subs);
    }
    if (node->is_variable()) arg_nodes.push_back(id);
    nodes.push_back(std::move(j));
    total += node->num_outputs();
    row_ptr.push_back(total);
  }
  Json heads = Json::array();
  for (const NodeEntry& e : outputs) heads.push_back(entry(e));
  Json graph;
  graph["nodes"] = std::move(nodes);
  graph["arg_nodes"] = std::move(arg_nodes);
  graph["node_row_ptr"] = std::move(row_ptr);
  graph["heads"] = std::move(heads);
  return graph;
}

// ---------------------------------------------------------------------------------------------------- reading
class Loader {
 public:
  // zero_is_unknown: zeros in the file's __shape__ attributes mean unknown sizes, although zero is a valid size now.
  Loader(const std::string& what, int version, bool zero_is_unknown)
      : what_(what), version_(version), zero_is_unknown_(zero_is_unknown) {}

  std::vector<NodeEntry> load(const Document& graph, const std::string& path, int depth,
                              std::vector<NodePtr>* all_nodes = nullptr) {
    if (depth > kMaxSubgraphDepth)
      fail(path, "subgraphs nest too deeply", "at most " + std::to_string(kMaxSubgraphDepth) + " levels", "more");
    if (!graph.is_object()) fail(path, "a graph is a JSON object", "{...}", graph.type_name());
    const Document& list = array(graph, "nodes", path);
    std::vector<Raw> raw(list.size());
    for (size_t i = 0; i < list.size(); ++i)
      raw[i] = read_node(list[i], path + ".nodes[" + std::to_string(i) + "]", list.size());
    std::vector<NodePtr> nodes = build(raw, path, depth);
    std::vector<NodeEntry> heads;
    const Document& head_list = array(graph, "heads", path);
    for (size_t i = 0; i < head_list.size(); ++i) {
      const std::string where = path + ".heads[" + std::to_string(i) + "]";
      heads.push_back(resolve(read_entry(head_list[i], where, nodes.size()), nodes, where));
    }
    for (const Document& a : array(graph, "arg_nodes", path)) {
      const int64_t id = integer(a, path + ".arg_nodes");
      if (id < 0 || id >= static_cast<int64_t>(nodes.size()) || !nodes[static_cast<size_t>(id)]->is_variable())
        fail(path + ".arg_nodes", "not the index of a variable", "", std::to_string(id));
    }
    if (all_nodes) *all_nodes = nodes;
    return heads;
  }

 private:
  struct RawEntry {
    int64_t node;
    int64_t index;
  };
  struct Raw {
    std::string op, name;
    std::map<std::string, std::string> attrs;
    std::vector<RawEntry> inputs;
    std::vector<int64_t> control;
    const Document* subgraphs = nullptr;
  };

  [[noreturn]] void fail(const std::string& where, const std::string& message, const std::string& expected,
                         const std::string& given) const {
    ErrorFields e;
    e.input = what_;
    e.message = message + " (at " + where + ")";
    e.expected = expected;
    e.given = given;
    e.fix = "the file is damaged or is no symbol JSON; save or copy it again";
    throw FormatError(std::move(e));
  }
  const Document& array(const Document& object, const char* key, const std::string& where) const {
    auto it = object.find(key);
    if (it == object.end()) fail(where, std::string("the key '") + key + "' is missing", "", "");
    if (!it->is_array()) fail(where + "." + key, "not an array", "[...]", it->type_name());
    return *it;
  }
  // Returns a value for a message. Arrays and objects are not printed: deep nesting could overflow the stack.
  static std::string shown(const Document& j) { return j.is_structured() ? j.type_name() : j.dump().substr(0, 40); }
  int64_t integer(const Document& j, const std::string& where) const {
    if (!j.is_number_integer()) fail(where, "not an integer", "an integer", shown(j));
    return j.get<int64_t>();
  }
  std::string text(const Document& j, const std::string& where) const {
    if (!j.is_string()) fail(where, "not a string", "\"...\"", shown(j));
    return j.get<std::string>();
  }
  RawEntry read_entry(const Document& j, const std::string& where, size_t num_nodes) const {
    if (!j.is_array() || j.size() < 2 || j.size() > 3) fail(where, "not an entry", "[node, output, version]", shown(j));
    const RawEntry e{integer(j[0], where), integer(j[1], where)};
    if (e.node < 0 || e.node >= static_cast<int64_t>(num_nodes))
      fail(where, "the node index is out of bounds", "0 to " + std::to_string(static_cast<int64_t>(num_nodes) - 1),
           std::to_string(e.node));
    return e;
  }
  void read_attrs(const Document& node, const char* key, const std::string& where, bool override_others,
                  Raw* raw) const {
    auto it = node.find(key);
    if (it == node.end()) return;
    if (!it->is_object()) fail(where + "." + key, "not an object", "{...}", it->type_name());
    for (auto& [name, value] : it->items()) {
      std::string v = text(value, where + "." + key + "." + name);
      if (override_others) {
        raw->attrs[name] = std::move(v);
      } else {
        raw->attrs.emplace(name, std::move(v));
      }
    }
  }
  Raw read_node(const Document& j, const std::string& where, size_t num_nodes) const {
    if (!j.is_object()) fail(where, "a node is a JSON object", "{...}", j.type_name());
    Raw raw;
    for (const char* key : {"op", "name", "inputs"})
      if (!j.contains(key)) fail(where, std::string("the key '") + key + "' is missing", "", "");
    raw.op = text(j["op"], where + ".op");
    raw.name = text(j["name"], where + ".name");
    read_attrs(j, "param", where, false, &raw);
    read_attrs(j, "attr", where, true, &raw);
    read_attrs(j, "attrs", where, true, &raw);
    const Document& inputs = array(j, "inputs", where);
    for (size_t i = 0; i < inputs.size(); ++i)
      raw.inputs.push_back(read_entry(inputs[i], where + ".inputs[" + std::to_string(i) + "]", num_nodes));
    if (j.contains("control_deps"))
      for (const Document& dep : array(j, "control_deps", where)) {
        const int64_t id = integer(dep, where + ".control_deps");
        if (id < 0 || id >= static_cast<int64_t>(num_nodes))
          fail(where + ".control_deps", "the node index is out of bounds", "", std::to_string(id));
        raw.control.push_back(id);
      }
    if (j.contains("subgraphs")) raw.subgraphs = &array(j, "subgraphs", where);
    return raw;
  }

  static void mark_unknown_sizes(std::vector<Raw>& raw) {
    for (Raw& node : raw) {
      const auto it = node.attrs.find("__shape__");
      if (it == node.attrs.end()) continue;
      std::string text;
      for (size_t i = 0; i < it->second.size(); ++i) {
        const char before = i == 0 ? '(' : it->second[i - 1],
                   after = i + 1 < it->second.size() ? it->second[i + 1] : ')';
        const bool whole =
            !std::isdigit(static_cast<unsigned char>(before)) && !std::isdigit(static_cast<unsigned char>(after));
        text += it->second[i] == '0' && whole ? std::string("-1") : std::string(1, it->second[i]);
      }
      it->second = text;
    }
  }

  // Files before 1.9.1: ctx_group and the like become __ctx_group__; `weight_lr_mult` moves to the variable `weight`.
  void upgrade_hidden_keys(std::vector<Raw>& raw) const {
    static const char* const kWords[] = {"ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage"};
    for (Raw& node : raw) {
      std::map<std::string, std::string> kept;
      for (auto& [key, value] : node.attrs) {
        bool moved = false;
        for (const char* word : kWords) {
          if (key == word) {
            kept["__" + key + "__"] = value;
            moved = true;
          } else if (const std::string tail = std::string("_") + word;
                     node.op != "null" && key.size() > tail.size() && key.ends_with(tail) && !key.starts_with("__")) {
            moved = move_to_variable(raw, node, key.substr(0, key.size() - tail.size()),
                                     std::string("__") + word + "__", value);
          }
          if (moved) break;
        }
        if (!moved) kept[key] = value;
      }
      node.attrs = std::move(kept);
    }
  }
  bool move_to_variable(std::vector<Raw>& raw, const Raw& node, const std::string& argument, const std::string& key,
                        const std::string& value) const {
    const Op* op = op_registry().find(node.op);
    if (!op) return false;
    for (size_t i = 0; i < node.inputs.size() && i < op->inputs.size(); ++i) {
      Raw& variable = raw[static_cast<size_t>(node.inputs[i].node)];
      if (op->inputs[i].name != argument || variable.op != "null") continue;
      variable.attrs[key] = value;
      return true;
    }
    return false;
  }

  // Kahn's order over raw nodes: files may refer forward; a cycle is an error.
  std::vector<size_t> order_of(const std::vector<Raw>& raw, const std::string& path) const {
    std::vector<size_t> order, missing(raw.size(), 0);
    std::vector<std::vector<size_t>> readers(raw.size());
    for (size_t i = 0; i < raw.size(); ++i) {
      for (const RawEntry& e : raw[i].inputs) readers[static_cast<size_t>(e.node)].push_back(i), ++missing[i];
      for (int64_t c : raw[i].control) readers[static_cast<size_t>(c)].push_back(i), ++missing[i];
    }
    for (size_t i = 0; i < raw.size(); ++i)
      if (missing[i] == 0) order.push_back(i);
    for (size_t k = 0; k < order.size(); ++k)
      for (size_t reader : readers[order[k]])
        if (--missing[reader] == 0) order.push_back(reader);
    if (order.size() != raw.size()) fail(path + ".nodes", "the graph has a cycle", "", "");
    return order;
  }

  NodeEntry resolve(const RawEntry& e, const std::vector<NodePtr>& nodes, const std::string& where) const {
    const NodePtr& node = nodes[static_cast<size_t>(e.node)];
    if (e.index < 0 || e.index >= node->num_outputs())
      fail(where, "the output index is out of bounds", "0 to " + std::to_string(node->num_outputs() - 1),
           std::to_string(e.index));
    return {node, static_cast<uint32_t>(e.index)};
  }

  std::vector<NodePtr> build(std::vector<Raw>& raw, const std::string& path, int depth) {
    if (version_ < kMxnetVersion && depth == 0) upgrade_hidden_keys(raw);
    if (zero_is_unknown_) mark_unknown_sizes(raw);
    std::vector<NodePtr> nodes(raw.size());
    for (size_t i : order_of(raw, path)) {
      const std::string where = path + ".nodes[" + std::to_string(i) + "] ('" + raw[i].name + "')";
      nodes[i] = raw[i].op == "null" ? build_variable(raw[i]) : build_op(raw[i], nodes, where, depth);
      for (int64_t c : raw[i].control) nodes[i]->control.push_back(nodes[static_cast<size_t>(c)]);
    }
    return nodes;
  }

  NodePtr build_variable(const Raw& raw) const {
    NodePtr node = make_variable(raw.name);
    node->attrs.insert(raw.attrs.begin(), raw.attrs.end());
    return node;
  }

  static bool is_hidden_key(const std::string& key) {
    return key.size() > 4 && key.starts_with("__") && key.ends_with("__");
  }

  NodePtr build_fused_layer(const Raw& raw, const std::vector<NodePtr>& nodes, const std::string& where, int depth) {
    FusedLayer layer{raw.op, raw.attrs, {}, {}};
    for (size_t i = 0; i < raw.inputs.size(); ++i)
      layer.inputs.push_back(resolve(raw.inputs[i], nodes, where + ".inputs[" + std::to_string(i) + "]"));
    const size_t given = raw.subgraphs ? raw.subgraphs->size() : 0;
    if (given != 1)
      fail(where + ".subgraphs", "operator '" + raw.op + "' has the wrong number of subgraphs", "1",
           std::to_string(given));
    layer.body = load_subgraph((*raw.subgraphs)[0], where + ".subgraphs[0]", depth);
    return node_of(std::move(layer), raw.name);
  }

  NodePtr build_op(const Raw& raw, const std::vector<NodePtr>& nodes, const std::string& where, int depth) {
    if (is_fused_layer(raw.op)) return build_fused_layer(raw, nodes, where, depth);
    const Op* op = op_registry().find(raw.op);
    if (!op) {
      try {
        op_registry().at(raw.op);
      } catch (const Error& unknown) {
        ErrorFields fields = unknown.fields();
        fields.node = raw.name;
        fields.because = "the file " + what_ + " uses it at " + where;
        throw FormatError(std::move(fields));
      }
    }
    // Internal operators made by gradients and passes do not check their parameters, so files must not name them. The
    // exceptions: models use indexing with arrays, and training steps use `_gradient` nodes and updates.
    if (op->hidden && op->subgraph_names.empty() && !op->allowed_in_files)
      fail(where, "operator '" + op->name + "' is internal", "an operator that models are made of", op->name);
    std::vector<std::pair<std::string, std::string>> params;
    AttrDict hidden;
    const SchemaBase* const of_control = file_schema(*op);
    const SchemaBase& schema = of_control ? *of_control : *op->schema;
    const bool is_open = schema.find(kOpenAttributes) >= 0;
    Document open = Document::object();
    for (const auto& [key, value] : raw.attrs) {
      if (is_open && schema.find(key) < 0 && !is_hidden_key(key)) {
        open[key] = value;
      } else if (schema.find(key) < 0 || is_hidden_key(key)) {
        hidden.emplace(key, value);
      } else if (!(version_ < 905 && (op->name == "argmax" || op->name == "argmin") && key == "axis" &&
                   value == "-1")) {
        params.emplace_back(key, value);
      }
    }
    if (op->variadic && !op->count_param.empty() && !raw.attrs.count(op->count_param))
      params.emplace_back(op->count_param, std::to_string(raw.inputs.size()));
    if (!open.empty()) params.emplace_back(kOpenAttributes, open.dump());
    ParamsPtr parsed;
    try {
      parsed = schema.parse(params, op->name, true);
    } catch (Error& error) {
      ErrorFields outer;
      outer.node = raw.name;
      outer.because = "the file " + what_ + " says so at " + where;
      error.add_context(outer);
      throw;
    }
    std::vector<NodeEntry> inputs;
    for (size_t i = 0; i < raw.inputs.size(); ++i)
      inputs.push_back(resolve(raw.inputs[i], nodes, where + ".inputs[" + std::to_string(i) + "]"));
    add_missing_inputs(*op, raw, parsed, &inputs);
    std::vector<Ref<Subgraph>> bodies = load_subgraphs(*op, raw, where, depth);
    if (of_control) {
      NodePtr node = node_from_file(*op, raw.name, *parsed, std::move(inputs), std::move(bodies));
      node->attrs = std::move(hidden);
      return node;
    }
    const bool counted = !op->variadic || op->num_inputs_;
    const size_t expected = counted ? static_cast<size_t>(op->num_inputs(parsed->data())) : inputs.size();
    if (inputs.size() != expected)
      fail(where, "operator '" + op->name + "' has the wrong number of inputs", std::to_string(expected),
           std::to_string(inputs.size()));
    if (!counted && !op->count_param.empty()) {
      const AttrValue count = op->schema->get(parsed->data(), op->schema->find(op->count_param));
      const int64_t* number = std::get_if<int64_t>(&count.value);
      if (number != nullptr && *number != static_cast<int64_t>(inputs.size()))
        fail(where, "'" + op->count_param + "' is not the number of inputs", std::to_string(inputs.size()),
             std::to_string(*number));
    }
    if (version_ < kVersionWithInitializers) set_default_initializers(*op, inputs);
    NodePtr node = make_node(*op, raw.name, parsed, std::move(inputs));
    if (const int64_t outputs = node->num_outputs(); outputs > 1 && (outputs_ += outputs) > kMaxOutputs)
      fail(where, "the nodes of this file have too many outputs", "at most " + std::to_string(kMaxOutputs) + " in all",
           std::to_string(outputs) + " here");
    node->attrs = std::move(hidden);
    return node;
  }

  // Files from before 0.9.0 leave out auxiliary inputs and trailing inputs.
  void add_missing_inputs(const Op& op, const Raw& raw, const ParamsPtr& params, std::vector<NodeEntry>* inputs) const {
    if (version_ >= 900 || op.variadic) return;
    const int wanted = op.num_inputs(params->data());
    for (int i = static_cast<int>(inputs->size()); i < wanted; ++i) {
      NodePtr variable = make_variable(raw.name + "_" + op.input_name(params->data(), i));
      variable->attrs.insert(raw.attrs.begin(), raw.attrs.end());
      inputs->push_back({variable, 0});
    }
  }

  Ref<Subgraph> load_subgraph(const Document& graph, const std::string& where, int depth) {
    Ref<Subgraph> sub = make_ref<Subgraph>();
    std::vector<NodePtr> all;
    sub->outputs = load(graph, where, depth + 1, &all);
    std::unordered_set<const Node*> known;
    auto add = [&](Node* inner) {
      if (inner->is_variable() && known.insert(inner).second) sub->inputs.emplace_back(inner);
    };
    for (Node* inner : topological_order(sub->outputs)) add(inner);
    for (const NodePtr& inner : all) add(inner.get());
    return sub;
  }

  std::vector<Ref<Subgraph>> load_subgraphs(const Op& op, const Raw& raw, const std::string& where, int depth) {
    const size_t given = raw.subgraphs ? raw.subgraphs->size() : 0;
    if (given != op.subgraph_names.size())
      fail(where + ".subgraphs", "operator '" + op.name + "' has the wrong number of subgraphs",
           std::to_string(op.subgraph_names.size()), std::to_string(given));
    std::vector<Ref<Subgraph>> bodies;
    for (size_t i = 0; i < given; ++i)
      bodies.push_back(load_subgraph((*raw.subgraphs)[i], where + ".subgraphs[" + std::to_string(i) + "]", depth));
    return bodies;
  }

  const std::string& what_;
  int version_;
  bool zero_is_unknown_;
  int64_t outputs_ = 0;  // number so far, of nodes with several outputs
};

int version_of(const Document& document) {
  auto attrs = document.find("attrs");
  if (attrs == document.end() || !attrs->is_object()) return kVersionWithoutAttr;
  auto it = attrs->find("mxnet_version");
  if (it == attrs->end() || !it->is_array() || it->size() != 2 || !(*it)[1].is_number_integer())
    return kVersionWithoutAttr;
  return (*it)[1].get<int>();
}

bool means_numpy_shapes(const Document& document) {
  const auto attrs = document.find("attrs");
  if (attrs == document.end() || !attrs->is_object()) return false;
  const auto it = attrs->find("is_np_shape");
  return it != attrs->end() && it->is_array() && it->size() == 2 && (*it)[1].is_number_integer() &&
         (*it)[1].get<int>() != 0;
}

// Variable nodes of equal name mean one array: the first replaces the others.
void merge_variables_by_name(std::vector<NodeEntry>& heads, std::vector<NodePtr>& nodes) {
  std::unordered_map<std::string, NodePtr> first;
  auto replace = [&](NodeEntry& e) {
    if (e.node->is_variable()) e.node = first.try_emplace(e.node->name, e.node).first->second;
  };
  for (NodePtr& node : nodes)
    for (NodeEntry& in : node->inputs) replace(in);
  for (NodeEntry& e : heads) replace(e);
}

}  // namespace

std::string Symbol::tojson() const {
  check_leaks(outputs);
  Json graph = graph_json(outputs);
  graph["attrs"] = Json::object();
  if (is_np_shape()) graph["attrs"]["is_np_shape"] = Json::array({"int", 1});
  graph["attrs"]["mxnet_version"] = Json::array({"int", kMxnetVersion});
  // Text is written as raw UTF-8: MXNet's own parser does not support \u escapes.
  return graph.dump(2, ' ', false, Json::error_handler_t::replace);
}

Symbol Symbol::from_json(std::string_view text, const std::string& what) {
  Document document;
  try {
    document = Document::parse(text);
  } catch (const Document::parse_error& error) {
    throw FormatError(
        {.input = what,
         .message = "not valid JSON at byte " + std::to_string(error.byte) + " of " + std::to_string(text.size()),
         .because = error.what(),
         .fix = "the file is damaged or is no symbol JSON; save or copy it again"});
  } catch (const Document::exception& error) {  // a number too large for any type
    throw FormatError({.input = what,
                       .message = "not valid JSON",
                       .because = error.what(),
                       .fix = "the file is damaged; save or copy it again"});
  }
  Loader loader(what, version_of(document), is_np_shape() && !means_numpy_shapes(document));
  Symbol symbol;
  std::vector<NodePtr> nodes;
  symbol.outputs = loader.load(document, "the graph", 0, &nodes);
  if (symbol.outputs.empty()) {
    throw FormatError(
        {.input = what, .message = "the graph has no outputs ('heads' is empty)", .fix = "save the symbol again"});
  }
  merge_variables_by_name(symbol.outputs, nodes);
  return symbol;
}

}  // namespace hybridnet
