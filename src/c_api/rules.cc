// Rules in C: the functions with which they read a graph, and the conversion of a declaration to a row of the pipeline.
#include "c_api/rules.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <sstream>

#include "c_api/arrays.h"
#include "c_api/status.h"
#include "graph/arithmetic.h"
#include "graph/rule_words.h"
#include "hybridnet/ndarray.h"
#include "hybridnet/runtime.h"
#include "passes/control/size_questions.h"

// One call of a rule. Values are indices of entries, so that a wrong one causes an error, not a crash.
struct HnGraphImpl {
  hybridnet::Graph& graph;
  hybridnet::Node& node;  // the node at which the rule is called
  std::vector<hybridnet::NodeEntry> values{};
  std::deque<std::string> texts{};
  std::vector<hybridnet::NDArray> constants{};
  hybridnet::Replacement wanted{};
  std::exception_ptr failure{};  // the first error
};

namespace hybridnet::c_api {
namespace {

// Returns the result of f. If it fails, and for all calls after a failure, returns `otherwise`: calls that use that
// value must not report a second failure.
template <typename R, typename F>
R answer(HnGraph graph, R otherwise, const F& f) {
  if (graph == nullptr || graph->failure) return otherwise;
  try {
    return f(*graph);
  } catch (...) {
    graph->failure = std::current_exception();
    return otherwise;
  }
}

const NodeEntry& entry_of(const HnGraphImpl& call, HnValue value) {
  if (value >= 0 && static_cast<size_t>(value) < call.values.size()) return call.values[static_cast<size_t>(value)];
  throw ValueError({.expected = "a value that this graph has given", .given = std::to_string(value)});
}

HnValue number_of(HnGraphImpl& call, const NodeEntry& entry) {
  const auto found = std::find(call.values.begin(), call.values.end(), entry);
  if (found != call.values.end()) return static_cast<HnValue>(found - call.values.begin());
  call.values.push_back(entry);
  return static_cast<HnValue>(call.values.size() - 1);
}

size_t checked_index(int index, size_t size, const char* what) {
  if (index >= 0 && static_cast<size_t>(index) < size) return static_cast<size_t>(index);
  throw ValueError(
      {.input = what, .expected = "a number from 0 and below " + std::to_string(size), .given = std::to_string(index)});
}

const char* checked_text(const char* text, const char* what) {
  if (text) return text;
  throw ValueError({.input = what, .expected = "text", .given = "NULL"});
}

const char* op_of(HnGraph graph, HnValue value) {
  return answer<const char*>(graph, nullptr, [&](HnGraphImpl& call) {
    const Node& node = *entry_of(call, value).node;
    return node.is_variable() ? "" : node.op->name.c_str();
  });
}

const char* name_of(HnGraph graph, HnValue value) {
  return answer<const char*>(graph, nullptr,
                             [&](HnGraphImpl& call) { return entry_of(call, value).node->name.c_str(); });
}

const char* attribute_of(HnGraph graph, HnValue value, const char* name) {
  return answer<const char*>(graph, nullptr, [&](HnGraphImpl& call) -> const char* {
    const Node& node = *entry_of(call, value).node;
    checked_text(name, "name of an attribute");
    const int field = node.is_variable() ? -1 : node.op->schema->find(name);
    if (field < 0) return nullptr;
    return call.texts.emplace_back(node.op->schema->get(node.params->data(), field).str()).c_str();
  });
}

int num_inputs_of(HnGraph graph, HnValue value) {
  return answer(graph, -1,
                [&](HnGraphImpl& call) { return static_cast<int>(entry_of(call, value).node->inputs.size()); });
}

HnValue input_of(HnGraph graph, HnValue value, int index) {
  return answer(graph, -1, [&](HnGraphImpl& call) {
    const Node& node = *entry_of(call, value).node;
    return number_of(call, node.inputs[checked_index(index, node.inputs.size(), "number of an input")]);
  });
}

int num_outputs_of(HnGraph graph, HnValue value) {
  return answer(graph, -1, [&](HnGraphImpl& call) { return entry_of(call, value).node->num_outputs(); });
}

HnValue output_of(HnGraph graph, HnValue value, int index) {
  return answer(graph, -1, [&](HnGraphImpl& call) {
    const NodePtr node = entry_of(call, value).node;
    const size_t output = checked_index(index, static_cast<size_t>(node->num_outputs()), "number of an output");
    return number_of(call, {node, static_cast<uint32_t>(output)});
  });
}

int num_readers_of(HnGraph graph, HnValue value) {
  return answer(graph, -1,
                [&](HnGraphImpl& call) { return static_cast<int>(call.graph.clients(entry_of(call, value)).size()); });
}

int give_spec_of(HnGraph graph, HnValue value, HnTensorSpec* out) {
  return answer(graph, -1, [&](HnGraphImpl& call) {
    require(out, "HnGraphFunctions.spec", "out");
    const TensorSpec& spec = call.graph.spec(entry_of(call, value));
    note_shape_read(spec.shape);
    give_spec(spec, out);
    return 0;
  });
}

int dtype_of(HnGraph graph, HnValue value) {
  return answer(graph, -1,
                [&](HnGraphImpl& call) { return static_cast<int>(call.graph.spec(entry_of(call, value)).dtype); });
}

int give_constant(HnGraph graph, HnValue value, HnTensor* out) {
  return answer(graph, 0, [&](HnGraphImpl& call) {
    require(out, "HnGraphFunctions.constant", "out");
    const Node& node = *entry_of(call, value).node;
    if (!node.constant) return 0;
    call.constants.emplace_back(Ref<ArrayImpl>(static_cast<ArrayImpl*>(node.constant.get())));
    const NDArray& array = call.constants.back();
    array.wait_to_read();
    const TensorSpec& spec = array.spec();
    *out = {array.data(), spec.shape.begin(), spec.shape.ndim(), static_cast<int>(spec.dtype)};
    return 1;
  });
}

int is_training(HnGraph graph) {
  return answer(graph, 0, [](HnGraphImpl& call) { return call.graph.train() ? 1 : 0; });
}

NodePtr added(HnGraphImpl& call, const std::string& op_name, std::vector<NodeEntry> inputs,
              const std::vector<std::pair<std::string, std::string>>& attributes) {
  const Arithmetic* arithmetic = find_arithmetic(op_name);
  if (arithmetic != nullptr && inputs.size() == 2 && attributes.empty())
    return add_arithmetic(call.graph, *arithmetic, {inputs[0], {}}, {inputs[1], {}}, &call.node);
  const Op& op = op_registry().at(op_name);
  std::vector<std::pair<std::string, std::string>> texts = attributes;
  const auto names_count = [&](const auto& pair) { return pair.first == op.count_param; };
  if (!op.count_param.empty() && std::none_of(texts.begin(), texts.end(), names_count))
    texts.emplace_back(op.count_param, std::to_string(inputs.size()));
  ParamsPtr params = op.schema->parse(texts, op.name, false);
  if ((!op.variadic || op.num_inputs_) && static_cast<int>(inputs.size()) != op.num_inputs(params->data()))
    throw TypeError({.op = op.name,
                     .expected = std::to_string(op.num_inputs(params->data())) + " inputs",
                     .given = std::to_string(inputs.size())});
  return call.graph.add(op, std::move(params), std::move(inputs), &call.node);
}

HnValue add_node(HnGraph graph, const char* op, size_t num_inputs, const HnValue* inputs, size_t num_attributes,
                 const char* const* names, const char* const* texts) {
  return answer(graph, -1, [&](HnGraphImpl& call) {
    checked_text(op, "op");
    if (num_inputs > 0) require(inputs, "HnGraphFunctions.add", "inputs");
    if (num_attributes > 0) {
      require(names, "HnGraphFunctions.add", "names");
      require(texts, "HnGraphFunctions.add", "texts");
    }
    std::vector<NodeEntry> in;
    for (size_t i = 0; i < num_inputs; ++i) in.push_back(entry_of(call, inputs[i]));
    std::vector<std::pair<std::string, std::string>> attributes;
    for (size_t i = 0; i < num_attributes; ++i)
      attributes.emplace_back(checked_text(names[i], "name of an attribute"), checked_text(texts[i], names[i]));
    return number_of(call, {added(call, op, std::move(in), attributes), 0});
  });
}

int replace_value(HnGraph graph, HnValue before, HnValue now) {
  return answer(graph, -1, [&](HnGraphImpl& call) {
    const NodeEntry old_entry = entry_of(call, before), new_entry = entry_of(call, now);
    if (old_entry.node.get() == &call.node) {
      call.wanted.outputs.resize(static_cast<size_t>(call.node.num_outputs()));
      call.wanted.outputs[old_entry.index] = new_entry;
    } else {
      call.wanted.others.emplace_back(old_entry, new_entry);
    }
    return 0;
  });
}

constexpr HnGraphFunctions kFunctions{
    sizeof(HnGraphFunctions), op_of,        name_of,  attribute_of,  num_inputs_of, input_of, num_outputs_of, output_of,
    num_readers_of,           give_spec_of, dtype_of, give_constant, is_training,   add_node, replace_value};

Replacement run_rule(decltype(HnRule::rewrite) rewrite, Graph& graph, Node& node) {
  HnGraphImpl call{.graph = graph, .node = node};
  const char* complaint = rewrite(&kFunctions, &call, number_of(call, {NodePtr(&node), 0}));
  if (call.failure) std::rethrow_exception(call.failure);
  if (complaint) throw Error(ErrorKind::kError, {.node = node.name, .message = complaint});
  return std::move(call.wanted);
}

std::set<std::string> tags_of(const char* text) {
  std::set<std::string> tags;
  std::istringstream words(text ? text : "fast_run");
  for (std::string word; std::getline(words, word, ',');) {
    word.erase(std::remove(word.begin(), word.end(), ' '), word.end());
    if (!word.empty()) tags.insert(word);
  }
  return tags;
}

}  // namespace

Rewrite read_rule(const HnRule* given, const std::set<std::string>& more_ops) {
  require(given, "hn_rule_register", "rule");
  if (given->struct_size < sizeof(HnRule))
    throw ParamError({.op = "hn_rule_register",
                      .input = "struct_size",
                      .expected = std::to_string(sizeof(HnRule)),
                      .given = std::to_string(given->struct_size),
                      .fix = "set it to sizeof(HnRule), and compile with the c_api.h of this version"});
  if (!given->name || !*given->name)
    throw ParamError({.op = "hn_rule_register", .input = "name", .expected = "a name for the rule"});
  Runtime::get();  // the pipeline's patterns name operators
  const std::string name = given->name;
  const auto wrong = [&](const char* field, std::string expected, std::string was) {
    return ParamError(
        {.input = "rule '" + name + "', " + field, .expected = std::move(expected), .given = std::move(was)});
  };
  if (!given->rewrite) throw wrong("rewrite", "a function", "NULL");
  if (given->exactness < HN_SAME_BITS || given->exactness > HN_UNSAFE)
    throw wrong("exactness", "a value of HnExactness", std::to_string(given->exactness));
  if (given->num_ops > 0 && !given->ops) throw wrong("ops", std::to_string(given->num_ops) + " names", "NULL");
  if (!given->stage && !(given->position >= 0 && given->position < kEndPosition))
    throw wrong("position", "a number from 0 to below 100, or a stage", std::to_string(given->position));
  Rewrite row;
  row.name = name;
  row.stages = {given->stage ? stage_named(given->stage) : Stage::kOwn};
  row.position = given->stage ? 0 : given->position;
  row.tags = tags_of(given->tags);
  static constexpr Exactness kExactness[] = {Exactness::kBitwise, Exactness::kRounding, Exactness::kUnsafe};
  row.exactness = kExactness[given->exactness];
  row.what = given->doc ? given->doc : "";
  for (size_t i = 0; i < given->num_ops; ++i) {
    if (!given->ops[i]) throw wrong("ops", "the name of an operator", "NULL");
    const std::string word = given->ops[i];
    const std::vector<std::string> ops =
        more_ops.count(word) != 0 ? std::vector<std::string>{word} : operators_of(word);
    row.ops.insert(row.ops.end(), ops.begin(), ops.end());
  }
  row.local = [rewrite = given->rewrite](Graph& graph, Node& node) { return run_rule(rewrite, graph, node); };
  return row;
}

}  // namespace hybridnet::c_api

using namespace hybridnet;

int hn_rule_unregister(const char* name) {
  return c_api::guarded([&] {
    c_api::require(name, "hn_rule_unregister", "name");
    Runtime::get();
    RewriteDatabase::remove(name);
  });
}
