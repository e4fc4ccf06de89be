// Parses the text of a graph. Every name, count and size is checked before use: texts come from users.
#include <algorithm>
#include <charconv>
#include <mutex>
#include <set>
#include <unordered_map>

#include "graph/control/control_flow.h"
#include "graph/notation.h"
#include "graph/notation_scanner.h"
#include "graph/notation_values.h"
#include "op/attr_text.h"

namespace hybridnet {
namespace {

constexpr int kMaxDepth = 64;               // nesting depth of regions, the same as in files
constexpr int64_t kMaxOutputs = 1 << 20;    // limit for all nodes together: parameters set the counts
constexpr int64_t kAnyNumber = -1;          // any number of outputs
constexpr int64_t kMaxNumber = 0x7fffffff;  // largest number of outputs and of a repeated name

// File names of source locations live as long as the process, like the ones that traces record.
const char* kept_file_name(const std::string& name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard<std::mutex> lock(mutex);
  return names.insert(name).first->c_str();
}

using ParamTexts = std::vector<std::pair<std::string, std::string>>;

class Parser {
 public:
  Parser(std::string_view text, const MakeConstant& make) : in_(text), make_(make) {}

  Graph run() {
    in_.expect_word("graph");
    Graph graph(in_.take_word("train"));
    graph_ = &graph;
    Region top;
    while (!in_.at_end()) {
      if (in_.peek() == '%') {
        read_node(top, 0);
      } else if (in_.take_word("output")) {
        results_.push_back(read_entry(top));
      } else if (in_.take_word("state")) {
        read_state(top);
      } else {
        in_.fail("a line that begins with %name, 'output' or 'state'");
      }
    }
    put_together();
    return graph;
  }

 private:
  // The values that the lines of one region may read.
  struct Region {
    std::unordered_map<std::string, NodePtr> nodes;  // by label
    bool is_body = false;
  };
  struct Label {
    std::string text, name;
    size_t at = 0;
  };
  struct Made {  // a node made by a line outside bodies
    NodePtr node;
    std::vector<Format> formats;
  };
  struct State {
    NodePtr input;
    NodeEntry value;
  };
  struct Given {  // the rest of a line, after operator and inputs
    ParamTexts params;
    AttrDict attrs;
    std::vector<TensorSpec> specs;
    std::vector<Format> formats;
    SourceLocation where;
    std::string block;
  };

  // ---- names
  Label read_label() {
    Label label;
    in_.skip();
    label.at = in_.at();
    in_.expect('%', "a value: %name");
    label.name = in_.peek_here() == '"' ? in_.string("a name") : in_.word_here("a name behind %");
    label.text = "%" + label.name;
    if (in_.take_here('\'')) {
      const int64_t count = in_.integer("a number behind '", 2, kMaxNumber);
      label.text += '\0' + std::to_string(count);
    }
    return label;
  }

  void define(Region& region, const Label& label, const NodePtr& node) {
    if (!region.nodes.try_emplace(label.text, node).second)
      in_.fail_at(label.at, "a name that is not taken: each value is made once", "%" + label.name + " again");
    node->name = label.name;
  }

  NodeEntry read_entry(const Region& region) {
    const Label label = read_label();
    const auto found = region.nodes.find(label.text);
    if (found == region.nodes.end())
      in_.fail_at(label.at,
                  region.is_body ? "a value of this body, made on a line above: bodies see their slots only"
                                 : "a value that a line above makes",
                  "%" + label.name + ", which none does");
    const int64_t outputs = found->second->num_outputs();
    if (outputs == 1) return {found->second, 0};
    if (!in_.take_here('.'))
      in_.fail_at(label.at, "one of the " + std::to_string(outputs) + " outputs: %" + label.name + ".0", "no number");
    const int64_t index = in_.integer("the number of an output", 0, outputs - 1);
    return {found->second, static_cast<uint32_t>(index)};
  }

  std::vector<NodeEntry> read_entries(const Region& region, char open, char close) {
    std::vector<NodeEntry> entries;
    in_.list(open, close, [&] { entries.push_back(read_entry(region)); });
    return entries;
  }

  // ---- lines
  void read_node(Region& region, int depth) {
    const Label label = read_label();
    in_.expect('=', "'=' behind the name");
    in_.skip();
    const size_t at = in_.at();
    NodePtr node;
    Given given;
    if (in_.peek() == '"') {
      node = read_operator(region, in_.string("the name of an operator"), at, &given);
    } else {
      const std::string word = in_.word("an operator, 'input', 'constant', 'loop', 'while' or 'branch'");
      if (in_.peek() == '(') {
        node = read_operator(region, word, at, &given);
      } else if (word == "input" && !region.is_body) {
        node = make_variable(label.name);
        read_rest(&given, at, 1);
        if (given.specs.empty() || !given.specs[0].known())
          in_.fail("the type of the input, such as ': float32(2, 3)'");
      } else if (word == "constant") {
        node = read_constant(&given, at);
      } else if (word == notation::kForeachWords.word || word == notation::kWhileWords.word) {
        node = read_loop(region, word == notation::kForeachWords.word, depth, at, &given);
      } else if (word == notation::kBranchWord) {
        node = read_branch(region, depth, at, &given);
      } else {
        in_.fail_at(at, "an operator with its inputs in brackets, 'input', 'constant', 'loop', 'while' or 'branch'",
                    "'" + word + "'");
      }
    }
    node->attrs = std::move(given.attrs);
    node->where = given.where;
    node->block = std::move(given.block);
    node->specs = std::move(given.specs);
    define(region, label, node);
    if (region.is_body) return;
    if (!node->is_variable()) infer(*node, at);
    made_.push_back({node, std::move(given.formats)});
  }

  void put_together() {
    EntryMap map;
    std::vector<NodeEntry> all;
    for (const Made& made : made_) {
      if (made.node->is_variable() && !made.node->constant) {
        const NodePtr input = graph_->add_input(made.node->name, made.node->specs[0]);
        input->attrs = made.node->attrs;
        input->where = made.node->where;
        input->block = made.node->block;
        map[{made.node, 0}] = {input, 0};
      } else {
        all.push_back({made.node, 0});
      }
    }
    graph_->import(all, nullptr, map);
    for (const Made& made : made_)
      for (uint32_t i = 0; i < made.formats.size(); ++i) graph_->set_format(map.at({made.node, i}), made.formats[i]);
    for (const NodeEntry& result : results_) graph_->add_output(map.at(result));
    for (const State& state : states_)
      graph_->add_writeback(graph_->input_index(map.at({state.input, 0}).node.get()), map.at(state.value));
  }

  // Completes the specs of the line. A spec in the line must agree with the inferred one.
  void infer(Node& node, size_t at) {
    const std::vector<TensorSpec> said = node.specs;
    std::vector<TensorSpec> in;
    for (const NodeEntry& input : node.inputs) in.push_back(input.node->specs[input.index]);
    node.specs.resize(static_cast<size_t>(node.num_outputs()));
    in_.guarded(at, [&] { infer_node(node, in, node.specs, graph_->train()); });
    for (size_t i = 0; i < node.specs.size(); ++i) {
      const TensorSpec& spec = node.specs[i];
      if (!spec.known())
        in_.fail_at(at, "types of the outputs that inference does not find: ': float32(2, 3)'",
                    "output " + std::to_string(i) + " of type " + spec.str());
      if (i < said.size() && said[i].known() && !(said[i] == spec))
        in_.fail_at(at, "the type that the operator gives, " + spec.str(), said[i].str());
    }
  }

  void read_state(Region& top) {
    in_.skip();
    const size_t at = in_.at();
    const NodeEntry input = read_entry(top);
    if (!input.node->is_variable() || input.node->constant) in_.fail_at(at, "an input of the graph", "another value");
    in_.expect('<', "'<-'");
    in_.expect('-', "'<-'");
    in_.skip();
    const size_t from = in_.at();
    const NodeEntry value = read_entry(top);
    const TensorSpec &wanted = input.node->specs[0], &given = value.node->specs[value.index];
    if (!(wanted == given)) in_.fail_at(from, wanted.str() + ", as the input has it", given.str());
    states_.push_back({input.node, value});
  }

  // ---- the rest of a line, after operator and inputs
  void read_rest(Given* given, size_t at, int64_t outputs) {
    read_attributes(&given->attrs);
    if (in_.take(':')) {
      do {
        given->specs.push_back(read_spec());
        Format format = Format::kPlain;
        if (in_.take_here('/')) {
          in_.expect_word("channels_last");
          format = Format::kChannelsLast;
        }
        given->formats.push_back(format);
      } while (in_.take(','));
      if (outputs != kAnyNumber && static_cast<int64_t>(given->specs.size()) != outputs)
        in_.fail_at(at, "types of all " + std::to_string(outputs) + " outputs, or none",
                    std::to_string(given->specs.size()));
    }
    if (in_.take('@')) {
      const size_t where = in_.at();
      const std::string place = in_.string("a place in quotes, such as \"net.py:12\"");
      const size_t colon = place.rfind(':');
      int32_t line = 0;
      if (colon == std::string::npos ||
          std::from_chars(place.data() + colon + 1, place.data() + place.size(), line).ptr !=
              place.data() + place.size())
        in_.fail_at(where, "a place such as \"net.py:12\"", "no line number");
      given->where = {kept_file_name(place.substr(0, colon)), line};
    }
    if (in_.take_word("in")) given->block = in_.string("the path of a block in quotes");
  }

  void read_attributes(AttrDict* attrs) {
    if (in_.peek() != '[') return;
    in_.list('[', ']', [&] {
      const size_t at = in_.at();
      std::string key = in_.peek() == '"' ? in_.string("an attribute") : in_.word("an attribute");
      in_.expect('=', "'='");
      if (!attrs->emplace(key, in_.string("the value of an attribute, in quotes")).second)
        in_.fail_at(at, "each attribute once", "'" + key + "' again");
    });
  }

  void read_params(ParamTexts* params) {
    if (in_.peek() != '{') return;
    in_.list('{', '}', [&] {
      std::string key = in_.word("a parameter");
      in_.expect('=', "'='");
      params->emplace_back(std::move(key), in_.peek() == '"' ? in_.string("a value") : in_.value());
    });
  }

  TensorSpec read_spec() {
    TensorSpec spec;
    in_.skip();
    const size_t at = in_.at();
    if (!in_.take('?')) {
      const std::string name = in_.word("a type, such as float32(2, 3)");
      in_.guarded(at, [&] { spec.dtype = dtype_from_name(name); });
    }
    std::vector<int64_t> dims;
    bool rank_known = true;
    in_.expect('(', "the shape in brackets");
    while (!in_.take(')')) {
      in_.skip();
      if (dims.empty() && in_.starts_with("?...")) {
        in_.advance(4);
        in_.expect(')', "')'");
        rank_known = false;
        break;
      }
      if (dims.size() == kMaxDims) in_.fail("at most " + std::to_string(kMaxDims) + " sizes");
      dims.push_back(in_.take('?') ? kUnknownDim : in_.integer("a size", 0, INT64_MAX));
      if (in_.peek() != ')') in_.expect(',', "',' or ')'");
    }
    if (rank_known) spec.shape = Shape(std::span<const int64_t>(dims));
    if (!spec.shape.is_possible()) in_.fail_at(at, "a shape that fits into memory", spec.str());
    return spec;
  }

  // ---- operators and constants
  NodePtr read_operator(const Region& region, const std::string& name, size_t at, Given* given) {
    const Op* op = nullptr;
    in_.guarded(at, [&] { op = &op_registry().at(name); });
    if (!op->subgraph_names.empty()) in_.fail_at(at, "'loop', 'while' or 'branch', with regions", "'" + name + "'");
    std::vector<NodeEntry> inputs = read_entries(region, '(', ')');
    read_params(&given->params);
    if (op->variadic && !op->count_param.empty() &&
        std::none_of(given->params.begin(), given->params.end(),
                     [&](const auto& param) { return param.first == op->count_param; }))
      given->params.emplace_back(op->count_param, std::to_string(inputs.size()));
    NodePtr node = make_checked(*op, std::move(inputs), given, at);
    read_rest(given, at, node->num_outputs());
    return node;
  }

  static int64_t num_inputs_of(const Op& op, const Params& params, size_t given) {
    if (!op.variadic || op.num_inputs_) return op.num_inputs(params.data());
    if (op.count_param.empty()) return static_cast<int64_t>(given);
    const AttrValue count = op.schema->get(params.data(), op.schema->find(op.count_param));
    const int64_t* number = std::get_if<int64_t>(&count.value);
    return number != nullptr ? *number : static_cast<int64_t>(given);
  }

  NodePtr make_checked(const Op& op, std::vector<NodeEntry> inputs, Given* given, size_t at) {
    NodePtr node;
    int64_t wanted = 0, outputs = 0;
    in_.guarded(at, [&] {
      for (const auto& [key, value] : given->params)
        if (op.schema->find(key) < 0)
          throw ParamError({.op = op.name, .input = key, .message = "there is no such parameter"});
      const ParamsPtr params = op.schema->parse(given->params, op.name, false);
      wanted = num_inputs_of(op, *params, inputs.size());
      node = make_node(op, op.name, params, std::move(inputs));
      outputs = node->num_outputs();
    });
    if (static_cast<int64_t>(node->inputs.size()) != wanted)
      in_.fail_at(at, std::to_string(wanted) + " inputs", std::to_string(node->inputs.size()));
    outputs_ += outputs;
    if (outputs < 1 || outputs_ > kMaxOutputs)
      in_.fail_at(at, "1 to " + std::to_string(kMaxOutputs) + " outputs of all nodes together",
                  std::to_string(outputs));
    return node;
  }

  NodePtr read_constant(Given* given, size_t at) {
    in_.skip();
    const size_t values = in_.at();
    std::vector<std::string> numbers;
    std::string bytes;
    const bool is_list = in_.peek() == '[';
    if (in_.starts_with("..."))
      in_.fail_at(values, "values: [1, 2]", "'...', which stands for values that were left out");
    if (is_list)
      in_.list('[', ']', [&] { numbers.push_back(in_.value()); });
    else
      read_digits(values, &bytes);
    read_rest(given, at, 1);
    if (given->specs.empty() || !given->specs[0].known()) in_.fail("the type of the constant, such as ': float32(2,)'");
    const TensorSpec& spec = given->specs[0];
    for (const std::string& number : numbers)
      if (!notation::append_value(bytes, spec.dtype, number))
        in_.fail_at(values, "numbers of type " + std::string(dtype_name(spec.dtype)), "'" + number + "'");
    if (static_cast<int64_t>(bytes.size()) != spec.bytes())
      in_.fail_at(values, std::to_string(spec.bytes()) + " bytes, as the type says", std::to_string(bytes.size()));
    NodePtr node = make_variable("_const");
    in_.guarded(at, [&] { node->constant = make_(spec, bytes); });
    return node;
  }

  void read_digits(size_t at, std::string* bytes) {
    const std::string digits = in_.string("values: [1, 2]");
    if (!notation::append_digits(*bytes, digits))
      in_.fail_at(at, "bytes of two digits each, 0 to 9 and a to f", "'" + digits.substr(0, 24) + "'");
  }

  // ---- loops and branches
  NodePtr new_slot(Region& region, bool has_outer_behind, const Region* outer, std::vector<NodeEntry>* outers) {
    const Label label = read_label();
    const NodePtr variable = make_variable(label.name);
    read_attributes(&variable->attrs);
    if (has_outer_behind) {
      in_.expect(':', "': %value' of the graph around");
      outers->push_back(read_entry(*outer));
    }
    if (in_.take(':')) variable->specs = {read_spec()};
    define(region, label, variable);
    return variable;
  }

  std::vector<NodePtr> read_slots(Region& region, std::string_view word, const Region& outer,
                                  std::vector<NodeEntry>* outers) {
    std::vector<NodePtr> slots;
    if (in_.take_word(word)) in_.list('{', '}', [&] { slots.push_back(new_slot(region, true, &outer, outers)); });
    return slots;
  }

  void read_lines(Region& region, int depth) {
    if (depth + 1 > kMaxDepth) in_.fail("regions at most " + std::to_string(kMaxDepth) + " deep");
    while (in_.peek() == '%') read_node(region, depth + 1);
  }

  // Reads a region that lists its own slots, up to its output values.
  Ref<Subgraph> read_plain_region(std::string_view word, size_t slots, int depth) {
    auto body = make_ref<Subgraph>();
    Region region{.nodes = {}, .is_body = true};
    in_.skip();
    const size_t at = in_.at();
    in_.expect_word(word);
    in_.list('(', ')', [&] { body->inputs.push_back(new_slot(region, false, nullptr, nullptr)); });
    if (body->inputs.size() != slots)
      in_.fail_at(at, std::to_string(slots) + " slots, as the node has inputs", std::to_string(body->inputs.size()));
    read_lines(region, depth);
    in_.expect_word("give");
    body->outputs = read_entries(region, '{', '}');
    return body;
  }

  void refuse_told(const ParamTexts& params, size_t at) {
    for (const auto& [key, value] : params)
      if (notation::is_told_by_slots(key)) in_.fail_at(at, "slots, which tell '" + key + "'", key + "=" + value);
  }

  NodePtr read_loop(const Region& outer, bool is_foreach, int depth, size_t at, Given* given) {
    const Op& op = op_registry().at(is_foreach ? "_foreach" : "_while_loop");
    std::optional<int64_t> number;
    in_.expect('[', "the number of iterations in brackets; [] where only the run tells");
    if (in_.peek() != ']') number = in_.integer("a number of iterations", 0, INT64_MAX);
    in_.expect(']', "']'");
    Region region{.nodes = {}, .is_body = true};
    std::vector<NodeEntry> inputs;
    std::vector<NodePtr> slots;
    size_t ends[3];
    static constexpr std::string_view kGroups[] = {"seq", "carry", "inv"};
    for (size_t g = 0; g < 3; ++g) {
      if (g > 0 || is_foreach)
        for (NodePtr& slot : read_slots(region, kGroups[g], outer, &inputs)) slots.push_back(std::move(slot));
      ends[g] = slots.size();
    }
    const size_t num_seq = ends[0], num_carry = ends[1] - ends[0];
    bool counted = false;
    if (in_.take_word("count")) {
      in_.list('{', '}', [&] { inputs.push_back(read_entry(outer)); });
      if (inputs.size() != slots.size() + 1) in_.fail_at(at, "one number of iterations", "another number of them");
      counted = true;
    }
    read_params(&given->params);
    refuse_told(given->params, at);
    Given rest;
    read_rest(&rest, at, kAnyNumber);  // the number of outputs is known only after the regions are read
    std::vector<Ref<Subgraph>> bodies;
    if (!is_foreach) bodies.push_back(read_plain_region(notation::kLoopRegions[0], slots.size(), depth));
    if (!is_foreach && bodies[0]->outputs.size() != 1)
      in_.fail_at(at, "one value that the test gives", std::to_string(bodies[0]->outputs.size()));
    in_.expect_word(notation::kLoopRegions[1]);
    read_lines(region, depth);
    auto body = make_ref<Subgraph>();
    std::vector<NodeEntry> next = read_next(region, slots, num_seq, num_carry);
    in_.expect_word("out");
    in_.list('{', '}', [&] {
      in_.expect('.', "'.0: %value'");
      const auto count = static_cast<int64_t>(body->outputs.size());
      in_.integer("the number of the output", count, count);
      in_.expect(':', "':'");
      body->outputs.push_back(read_entry(region));
    });
    const size_t num_out = body->outputs.size();
    body->outputs.insert(body->outputs.end(), next.begin(), next.end());
    body->inputs = std::move(slots);
    bodies.push_back(std::move(body));

    ParamTexts& params = given->params;
    for (const auto& [key, value] : {std::pair<const char*, size_t>{"num_args", inputs.size()},
                                     {"num_seq", num_seq},
                                     {"num_carry", num_carry},
                                     {"num_out", num_out}})
      params.emplace_back(key, std::to_string(value));
    params.emplace_back("counted", counted ? "True" : "False");
    const std::string_view shown = is_foreach ? notation::kForeachWords.length : notation::kWhileWords.length;
    if (number && num_seq == 0) params.emplace_back(shown, std::to_string(*number));
    if (is_foreach && num_seq == 0 && !number)
      in_.fail_at(at, "a number of iterations: loop[3]", "loop[] without sequences");
    NodePtr node = finish_control(op, std::move(inputs), std::move(bodies), given, std::move(rest), at);
    check_loop(loop_of(*node), num_seq > 0 ? number : std::nullopt, *node, at);
    return node;
  }

  std::vector<NodeEntry> read_next(const Region& region, const std::vector<NodePtr>& slots, size_t first,
                                   size_t carries) {
    std::vector<NodeEntry> next;
    const size_t at = in_.at();
    if (in_.take_word("next"))
      in_.list('{', '}', [&] {
        const size_t here = in_.at();
        const NodeEntry slot = read_entry(region);
        if (next.size() >= carries || slot.node != slots[first + next.size()])
          in_.fail_at(here, "the carries of the loop in their order", "%" + slot.node->name);
        in_.expect(':', "':'");
        next.push_back(read_entry(region));
      });
    if (next.size() != carries)
      in_.fail_at(at, "next{...} with " + std::to_string(carries) + " carries", std::to_string(next.size()));
    return next;
  }

  void check_loop(const LoopSpec& loop, std::optional<int64_t> rows, const Node& node, size_t at) {
    const auto is_bad = [&](size_t i) {
      const std::optional<int64_t>& number = loop.free_axes[i];
      return !number || *number < 0 || *number >= (i % 2 == 0 ? int64_t{loop.num_carry} : int64_t{kMaxDims});
    };
    for (size_t i = 0; i < loop.free_axes.size(); ++i)
      if (loop.free_axes.size() % 2 != 0 || is_bad(i)) in_.fail_at(at, "free_axes of pairs (carry, axis)", "others");
    if (!rows) return;
    const NodeEntry& first = node.inputs[0];
    if (first.index >= first.node->specs.size()) return;
    const Shape& shape = first.node->specs[first.index].shape;
    if (shape.ndim() > 0 && shape[0] >= 0 && shape[0] != *rows)
      in_.fail_at(at, std::to_string(shape[0]) + " iterations, as the sequence has rows", std::to_string(*rows));
  }

  NodePtr read_branch(const Region& outer, int depth, size_t at, Given* given) {
    const Op& op = op_registry().at("_cond");
    in_.expect_word("inputs");
    std::vector<NodeEntry> inputs = read_entries(outer, '{', '}');
    read_params(&given->params);
    refuse_told(given->params, at);
    Given rest;
    read_rest(&rest, at, kAnyNumber);
    std::vector<Ref<Subgraph>> bodies;
    for (const std::string_view word : notation::kBranchRegions)
      bodies.push_back(read_plain_region(word, inputs.size(), depth));
    int64_t then_extra = 0;
    for (const auto& [key, value] : given->params)
      if (key == "then_extra" && !parse_int(value, &then_extra)) in_.fail_at(at, "then_extra with an integer", value);
    const auto given_by_then = static_cast<int64_t>(bodies[1]->outputs.size());
    if (then_extra < 0 || then_extra > given_by_then)
      in_.fail_at(at, "then_extra from 0 to " + std::to_string(given_by_then), std::to_string(then_extra));
    given->params.emplace_back("num_args", std::to_string(inputs.size()));
    given->params.emplace_back("num_out", std::to_string(given_by_then - then_extra));
    NodePtr node = finish_control(op, std::move(inputs), bodies, given, std::move(rest), at);
    const BranchSpec& branch = branch_of(*node);
    if (branch.else_extra < 0) in_.fail_at(at, "else_extra of 0 and more", std::to_string(branch.else_extra));
    for (size_t b = 0; b < 3; ++b) {
      const size_t wanted = b == 0 ? 1 : branch.outputs_of(b - 1);
      if (bodies[b]->outputs.size() != wanted)
        in_.fail_at(at, std::to_string(wanted) + " values given by '" + std::string(notation::kBranchRegions[b]) + "'",
                    std::to_string(bodies[b]->outputs.size()));
    }
    return node;
  }

  NodePtr finish_control(const Op& op, std::vector<NodeEntry> inputs, std::vector<Ref<Subgraph>> bodies, Given* given,
                         Given rest, size_t at) {
    NodePtr node = make_checked(op, std::move(inputs), given, at);
    if (!rest.specs.empty() && static_cast<int>(rest.specs.size()) != node->num_outputs())
      in_.fail_at(at, "types of all " + std::to_string(node->num_outputs()) + " outputs, or none",
                  std::to_string(rest.specs.size()));
    node->subgraphs = std::move(bodies);
    rest.params = std::move(given->params);
    *given = std::move(rest);
    return node;
  }

  NotationScanner in_;
  const MakeConstant& make_;
  Graph* graph_ = nullptr;
  std::vector<Made> made_;
  std::vector<NodeEntry> results_;
  std::vector<State> states_;
  int64_t outputs_ = 0;  // number of outputs of all nodes so far
};

}  // namespace

Graph parse_notation(std::string_view text, const MakeConstant& make) { return Parser(text, make).run(); }

}  // namespace hybridnet
