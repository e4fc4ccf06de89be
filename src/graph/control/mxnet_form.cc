#include "graph/control/mxnet_form.h"

#include <algorithm>
#include <unordered_map>

namespace hybridnet {
namespace {

// in_data_locs, in_state_locs and remain_locs list the inputs of the body that receive slices, states and captured
// values, each input once. Inputs of the node: data, states, captured values, then the number of iterations if counted.
struct ForeachForm {
  int32_t num_args = 0, num_outputs = 0, num_out_data = 0;
  OptionalInts in_data_locs, in_state_locs, remain_locs;
  bool reverse = false, scalar_slices = false, counted = false;
  int64_t length = -1, truncate_gradient = 0, detach_every = 0;
  std::string checkpoint;
  static void describe(ParamSchema<ForeachForm>& schema);
};

// Per input of the condition and of the body: the index of the node's input that feeds it. Variable i is input
// func_var_locs[i] of the body; an input of the condition fed by the same input of the node is that variable, too.
struct WhileLoopForm {
  int32_t num_args = 0, num_outputs = 0, num_out_data = 0;
  int64_t max_iterations = 0;
  OptionalInts cond_input_locs, func_input_locs, func_var_locs;
  bool unbounded = false, limited = false, scalar_slices = false, exact = false;
  std::string on_limit;
  OptionalInts free_axes;
  std::string checkpoint;
  static void describe(ParamSchema<WhileLoopForm>& schema);
};

// Per input of each body: the index of the node's input that feeds it.
struct CondForm {
  int32_t num_args = 0, num_outputs = 0, then_extra = 0, else_extra = 0;
  OptionalInts cond_input_locs, then_input_locs, else_input_locs;
  bool dynamic = false, strict_shape = false;
  static void describe(ParamSchema<CondForm>& schema);
};

template <typename Form>
void describe_counts(ParamSchema<Form>& schema) {
  schema.field("num_args", &Form::num_args).at_least(0);
  schema.field("num_outputs", &Form::num_outputs).at_least(0);
}

void ForeachForm::describe(ParamSchema<ForeachForm>& schema) {
  describe_counts(schema);
  schema.field("num_out_data", &ForeachForm::num_out_data).at_least(0);
  schema.field("in_data_locs", &ForeachForm::in_data_locs);
  schema.field("in_state_locs", &ForeachForm::in_state_locs);
  schema.field("remain_locs", &ForeachForm::remain_locs);
  schema.field("reverse", &ForeachForm::reverse).default_value(false);
  schema.field("scalar_slices", &ForeachForm::scalar_slices).default_value(false);
  schema.field("counted", &ForeachForm::counted).default_value(false);
  schema.field("length", &ForeachForm::length).default_value(-1);
  schema.field("truncate_gradient", &ForeachForm::truncate_gradient).default_value(0);
  schema.field("detach_every", &ForeachForm::detach_every).default_value(0);
  schema.field("checkpoint", &ForeachForm::checkpoint).default_value("");
}

void WhileLoopForm::describe(ParamSchema<WhileLoopForm>& schema) {
  describe_counts(schema);
  schema.field("num_out_data", &WhileLoopForm::num_out_data).at_least(0);
  schema.field("max_iterations", &WhileLoopForm::max_iterations).at_least(0);
  schema.field("cond_input_locs", &WhileLoopForm::cond_input_locs);
  schema.field("func_input_locs", &WhileLoopForm::func_input_locs);
  schema.field("func_var_locs", &WhileLoopForm::func_var_locs);
  schema.field("unbounded", &WhileLoopForm::unbounded).default_value(false);
  schema.field("limited", &WhileLoopForm::limited).default_value(false);
  schema.field("scalar_slices", &WhileLoopForm::scalar_slices).default_value(false);
  schema.field("exact", &WhileLoopForm::exact).default_value(false);
  schema.field("on_limit", &WhileLoopForm::on_limit).default_value("stop").one_of({"stop", "warn", "raise"});
  schema.field("free_axes", &WhileLoopForm::free_axes).default_value("()");
  schema.field("checkpoint", &WhileLoopForm::checkpoint).default_value("");
}

void CondForm::describe(ParamSchema<CondForm>& schema) {
  describe_counts(schema);
  schema.field("then_extra", &CondForm::then_extra).default_value(0);
  schema.field("else_extra", &CondForm::else_extra).default_value(0);
  schema.field("dynamic", &CondForm::dynamic).default_value(false);
  schema.field("strict_shape", &CondForm::strict_shape).default_value(false);
  schema.field("cond_input_locs", &CondForm::cond_input_locs);
  schema.field("then_input_locs", &CondForm::then_input_locs);
  schema.field("else_input_locs", &CondForm::else_input_locs);
}

size_t at(const std::optional<int64_t>& index) { return static_cast<size_t>(*index); }

// ---------------------------------------------------------------------------------------------------- reading
// Changes bodies in place: they were just read from a file, so nothing else refers to them.
class Reader {
 public:
  Reader(const Op& op, std::string name, std::vector<NodeEntry> inputs, std::vector<Ref<Subgraph>> bodies)
      : op_(op), name_(std::move(name)), inputs_(std::move(inputs)), bodies_(std::move(bodies)) {}

  NodePtr node_of(const ForeachForm& p) {
    Subgraph& body = *bodies_[0];
    const size_t slots = p.in_data_locs.size() + p.in_state_locs.size() + p.remain_locs.size();
    require(slots == body.inputs.size(),
            "in_data_locs, in_state_locs and remain_locs name each input of the body once");
    require(slots + (p.counted ? 1 : 0) == inputs_.size(), "there is one node input per input of the body");
    std::vector<bool> seen(slots);
    std::vector<NodePtr> ordered;
    for (const OptionalInts* list : {&p.in_data_locs, &p.in_state_locs, &p.remain_locs}) {
      in_range(*list, slots, "an input of the body");
      for (const std::optional<int64_t>& index : *list) {
        require(!seen[at(index)], "each input of the body is named once");
        seen[at(index)] = true;
        ordered.push_back(body.inputs[at(index)]);
      }
    }
    check_outputs(p.num_outputs, p.num_out_data, p.in_state_locs.size(), body);
    require(!p.in_data_locs.empty() || p.length >= 0, "a loop without data says its length");
    body.inputs = std::move(ordered);
    LoopSpec loop;
    loop.num_seq = static_cast<int32_t>(p.in_data_locs.size());
    loop.num_carry = static_cast<int32_t>(p.in_state_locs.size());
    loop.num_out = p.num_out_data;
    loop.reverse = p.reverse;
    loop.scalar_slices = p.scalar_slices;
    loop.counted = p.counted;
    if (p.length >= 0) loop.length = p.length;
    loop.truncate_gradient = p.truncate_gradient;
    loop.detach_every = p.detach_every;
    loop.checkpoint = p.checkpoint;
    return made(std::move(loop));
  }

  NodePtr node_of(const WhileLoopForm& p) {
    Subgraph &condition = *bodies_[0], &body = *bodies_[1];
    check_sources(p.cond_input_locs, condition);
    check_sources(p.func_input_locs, body);
    in_range(p.func_var_locs, body.inputs.size(), "an input of the body");
    require(condition.outputs.size() == 1, "the condition has one output");
    check_outputs(p.num_outputs, p.num_out_data, p.func_var_locs.size(), body);
    require(!p.unbounded || p.limited || p.exact || p.num_out_data == 0,
            "a loop with stacked outputs has max_iterations, or is exact");
    require(p.free_axes.size() % 2 == 0, "free_axes are pairs of a variable and an axis");
    for (size_t i = 0; i < p.free_axes.size(); ++i) {
      const std::optional<int64_t>& number = p.free_axes[i];
      const auto bound = i % 2 == 0 ? static_cast<int64_t>(p.func_var_locs.size()) : int64_t{kMaxDims};
      require(number && *number >= 0 && *number < bound, "free_axes name variables and their axes");
    }
    require(!p.limited || !inputs_.empty(), "the last input is the limit");
    // Variables first, then the other inputs of the node in the order of the file. If a body also reads the initial
    // value of a variable, or the limit, as an invariant, that is one more slot.
    std::vector<NodeEntry> ordered;
    std::vector<std::optional<size_t>> variable_of_input(body.inputs.size()), variable_from(inputs_.size()),
        invariant(inputs_.size());
    for (size_t i = 0; i < p.func_var_locs.size(); ++i) {
      const size_t input = at(p.func_var_locs[i]), source = at(p.func_input_locs[input]);
      require(!variable_of_input[input], "each variable has an input of the body");
      variable_of_input[input] = variable_from[source] = i;
      ordered.push_back(inputs_[source]);
    }
    auto invariant_slot = [&](size_t source) {
      if (!invariant[source]) {
        invariant[source] = ordered.size();
        ordered.push_back(inputs_[source]);
      }
      return *invariant[source];
    };
    for (size_t i = 0; i < inputs_.size() - (p.limited ? 1 : 0); ++i)
      if (!variable_from[i]) invariant_slot(i);
    std::vector<size_t> of_condition, of_body;
    for (const std::optional<int64_t>& source : p.cond_input_locs)
      of_condition.push_back(variable_from[at(source)] ? *variable_from[at(source)] : invariant_slot(at(source)));
    for (size_t k = 0; k < body.inputs.size(); ++k)
      of_body.push_back(variable_of_input[k] ? *variable_of_input[k] : invariant_slot(at(p.func_input_locs[k])));
    std::swap(inputs_, ordered);
    place(condition, of_condition);
    place(body, of_body);
    if (p.limited) inputs_.push_back(ordered.back());

    LoopSpec loop;
    loop.num_carry = static_cast<int32_t>(p.func_var_locs.size());
    loop.num_out = p.num_out_data;
    loop.scalar_slices = p.scalar_slices;
    loop.counted = p.limited;
    if (!p.unbounded) loop.max_iterations = p.max_iterations;
    loop.exact = p.exact;
    loop.on_limit = p.on_limit;
    loop.free_axes = p.free_axes;
    loop.checkpoint = p.checkpoint;
    return made(std::move(loop));
  }

  NodePtr node_of(const CondForm& p) {
    const OptionalInts* const lists[] = {&p.cond_input_locs, &p.then_input_locs, &p.else_input_locs};
    for (size_t b = 0; b < 3; ++b) {
      check_sources(*lists[b], *bodies_[b]);
      std::vector<size_t> slots;
      for (const std::optional<int64_t>& source : *lists[b]) slots.push_back(at(source));
      place(*bodies_[b], slots);
    }
    require(bodies_[0]->outputs.size() == 1, "the predicate has one output");
    const int64_t common = int64_t{p.num_outputs} - p.then_extra - p.else_extra;
    require(p.then_extra >= 0 && p.else_extra >= 0 && common >= 0, "extra outputs are among num_outputs");
    require(static_cast<int64_t>(bodies_[1]->outputs.size()) == common + p.then_extra &&
                static_cast<int64_t>(bodies_[2]->outputs.size()) == common + p.else_extra,
            "both branches have num_outputs outputs");
    BranchSpec branch;
    branch.num_out = static_cast<int32_t>(common);
    branch.then_extra = p.then_extra;
    branch.else_extra = p.else_extra;
    branch.dynamic = p.dynamic;
    branch.strict_shape = p.strict_shape;
    return made(std::move(branch));
  }

 private:
  void require(bool holds, const char* rule) const {
    if (holds) return;
    throw FormatError({.op = op_.name,
                       .node = name_,
                       .message = "its attributes do not fit its inputs and bodies",
                       .because = std::string("the rule is: ") + rule,
                       .fix = "save the model again"});
  }
  void in_range(const OptionalInts& list, size_t size, const char* what) const {
    for (const std::optional<int64_t>& index : list)
      require(index.has_value() && *index >= 0 && *index < static_cast<int64_t>(size), what);
  }
  void check_sources(const OptionalInts& list, const Subgraph& body) const {
    require(list.size() == body.inputs.size(), "input_locs name a node input per input of the body");
    in_range(list, inputs_.size(), "input_locs name inputs of the node");
  }
  void check_outputs(int64_t all, int64_t stacked, size_t states, const Subgraph& body) const {
    require(stacked >= 0 && stacked + static_cast<int64_t>(states) == all, "outputs are stacked ones, then states");
    require(static_cast<int64_t>(body.outputs.size()) == all, "the body has num_outputs outputs");
  }
  // Moves the readers of the body's input `from` to its input `to`.
  static void join(Subgraph& body, const NodePtr& from, const NodePtr& to) {
    auto change = [&](NodeEntry& entry) {
      if (entry.node == from) entry.node = to;
    };
    for (Node* node : topological_order(body.outputs)) std::for_each(node->inputs.begin(), node->inputs.end(), change);
    std::for_each(body.outputs.begin(), body.outputs.end(), change);
  }
  // Moves the inputs of a body to these slots of the node. Two inputs with the same slot become one.
  void place(Subgraph& body, const std::vector<size_t>& slots) {
    std::vector<NodePtr> placed(inputs_.size());
    for (size_t k = 0; k < slots.size(); ++k) {
      if (placed[slots[k]])
        join(body, body.inputs[k], placed[slots[k]]);
      else
        placed[slots[k]] = body.inputs[k];
    }
    for (size_t i = 0; i < placed.size(); ++i)
      if (!placed[i]) placed[i] = body_variable(inputs_[i]);
    body.inputs = std::move(placed);
  }
  template <typename Spec>
  NodePtr made(Spec spec) {
    spec.num_args = static_cast<int32_t>(inputs_.size());
    NodePtr node = make_node(op_, std::move(name_), boxed(std::move(spec)), std::move(inputs_));
    node->subgraphs = std::move(bodies_);
    return node;
  }

  const Op& op_;
  std::string name_;
  std::vector<NodeEntry> inputs_;
  std::vector<Ref<Subgraph>> bodies_;
};

// ---------------------------------------------------------------------------------------------------- writing
// Slots of a body in the order of the file: in the order in which its outputs reach them, then the unreached ones among
// the first `always`.
struct FileOrder {
  OptionalInts slots;
  std::vector<NodePtr> unread;
  FileOrder(const Subgraph& body, size_t always) {
    std::unordered_map<const Node*, int64_t> numbers;
    for (const NodePtr& input : body.inputs) numbers.emplace(input.get(), static_cast<int64_t>(numbers.size()));
    std::vector<bool> reached(body.inputs.size());
    for (const Node* node : topological_order(body.outputs)) {
      const auto found = numbers.find(node);
      if (found == numbers.end()) continue;
      slots.push_back(found->second);
      reached[at(slots.back())] = true;
    }
    for (size_t k = 0; k < always; ++k) {
      if (reached[k]) continue;
      slots.push_back(static_cast<int64_t>(k));
      unread.push_back(body.inputs[k]);
    }
  }
  // Returns the file positions of the slots in [first, end).
  OptionalInts places(size_t first, size_t end) const {
    OptionalInts result;
    for (size_t k = first; k < end; ++k)
      result.push_back(std::find(slots.begin(), slots.end(), std::optional<int64_t>(k)) - slots.begin());
    return result;
  }
};

template <typename Form>
FileForm printed(Form form, std::vector<std::vector<NodePtr>> unread) {
  static const ParamSchema<Form> schema;
  return {schema.print(&form), std::move(unread)};
}

FileForm form_of_foreach(const Node& node) {
  const LoopSpec& loop = loop_of(node);
  FileOrder order(*node.subgraphs[0], loop.slots());
  ForeachForm p;
  p.num_args = loop.num_args;
  p.num_outputs = loop.num_out + loop.num_carry;
  p.num_out_data = loop.num_out;
  p.in_data_locs = order.places(0, loop.seqs());
  p.in_state_locs = order.places(loop.seqs(), loop.first_invariant());
  p.remain_locs = order.places(loop.first_invariant(), loop.slots());
  p.reverse = loop.reverse;
  p.scalar_slices = loop.scalar_slices;
  p.counted = loop.counted;
  p.length = loop.length.value_or(-1);
  p.truncate_gradient = loop.truncate_gradient;
  p.detach_every = loop.detach_every;
  p.checkpoint = loop.checkpoint;
  return printed(std::move(p), {std::move(order.unread)});
}

FileForm form_of_while(const Node& node) {
  const LoopSpec& loop = loop_of(node);
  FileOrder tested(*node.subgraphs[0], 0), order(*node.subgraphs[1], loop.carries());
  WhileLoopForm p;
  p.num_args = loop.num_args;
  p.num_outputs = loop.num_out + loop.num_carry;
  p.num_out_data = loop.num_out;
  p.max_iterations = loop.max_iterations.value_or(0);
  p.unbounded = !loop.max_iterations;
  p.cond_input_locs = std::move(tested.slots);
  p.func_input_locs = order.slots;
  p.func_var_locs = order.places(0, loop.carries());
  p.limited = loop.counted;
  p.scalar_slices = loop.scalar_slices;
  p.exact = loop.exact;
  p.on_limit = loop.on_limit;
  p.free_axes = loop.free_axes;
  p.checkpoint = loop.checkpoint;
  return printed(std::move(p), {{}, std::move(order.unread)});
}

FileForm form_of_cond(const Node& node) {
  const BranchSpec& branch = branch_of(node);
  CondForm p;
  p.num_args = branch.num_args;
  p.num_outputs = branch.num_outputs();
  p.then_extra = branch.then_extra;
  p.else_extra = branch.else_extra;
  p.dynamic = branch.dynamic;
  p.strict_shape = branch.strict_shape;
  OptionalInts* const lists[] = {&p.cond_input_locs, &p.then_input_locs, &p.else_input_locs};
  for (size_t b = 0; b < 3; ++b) *lists[b] = FileOrder(*node.subgraphs[b], 0).slots;
  return printed(std::move(p), {{}, {}, {}});
}

}  // namespace

const SchemaBase* file_schema(const Op& op) {
  static const ParamSchema<ForeachForm> of_foreach;
  static const ParamSchema<WhileLoopForm> of_while;
  static const ParamSchema<CondForm> of_cond;
  switch (control_kind(op)) {
    case ControlKind::kForeach:
      return &of_foreach;
    case ControlKind::kWhileLoop:
      return &of_while;
    case ControlKind::kCond:
      return &of_cond;
    case ControlKind::kNone:
      break;
  }
  return nullptr;
}

NodePtr node_from_file(const Op& op, std::string name, const Params& attributes, std::vector<NodeEntry> inputs,
                       std::vector<Ref<Subgraph>> bodies) {
  Reader reader(op, std::move(name), std::move(inputs), std::move(bodies));
  switch (control_kind(op)) {
    case ControlKind::kForeach:
      return reader.node_of(attributes.as<ForeachForm>());
    case ControlKind::kWhileLoop:
      return reader.node_of(attributes.as<WhileLoopForm>());
    default:
      return reader.node_of(attributes.as<CondForm>());
  }
}

FileForm file_form(const Node& node) {
  switch (control_kind(node)) {
    case ControlKind::kForeach:
      return form_of_foreach(node);
    case ControlKind::kWhileLoop:
      return form_of_while(node);
    default:
      return form_of_cond(node);
  }
}

}  // namespace hybridnet
