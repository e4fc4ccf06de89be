// What the attributes of loops and branches are called and what they may be.
#include "graph/control/control_flow.h"

namespace hybridnet {

void ForeachParams::describe(ParamSchema<ForeachParams>& schema) {
  schema.field("num_args", &ForeachParams::num_args).at_least(0).doc("Number of inputs.");
  schema.field("num_outputs", &ForeachParams::num_outputs).at_least(0).doc("Number of outputs.");
  schema.field("num_out_data", &ForeachParams::num_out_data).at_least(0).doc("How many outputs are stacked.");
  schema.field("in_data_locs", &ForeachParams::in_data_locs).doc("Inputs of the body that receive slices.");
  schema.field("in_state_locs", &ForeachParams::in_state_locs).doc("Inputs of the body that receive states.");
  schema.field("remain_locs", &ForeachParams::remain_locs).doc("Inputs of the body that receive captured values.");
  schema.field("reverse", &ForeachParams::reverse).default_value(false).doc("Whether the last slice comes first.");
  schema.field("scalar_slices", &ForeachParams::scalar_slices)
      .default_value(false)
      .doc("Whether slices of vectors have shape () instead of (1,).");
  schema.field("counted", &ForeachParams::counted)
      .default_value(false)
      .doc("Whether the last input is the number of iterations.");
  schema.field("length", &ForeachParams::length).default_value(-1).doc("Number of iterations without data.");
  schema.field("truncate_gradient", &ForeachParams::truncate_gradient)
      .default_value(0)
      .doc("Gradients flow through the last so many iterations. 0: all.");
  schema.field("detach_every", &ForeachParams::detach_every)
      .default_value(0)
      .doc("Gradients of states stop at every so many iterations. 0: never.");
  schema.field("checkpoint", &ForeachParams::checkpoint).default_value("").doc("What is kept for the gradient.");
}

void WhileLoopParams::describe(ParamSchema<WhileLoopParams>& schema) {
  schema.field("num_args", &WhileLoopParams::num_args).at_least(0).doc("Number of inputs.");
  schema.field("num_outputs", &WhileLoopParams::num_outputs).at_least(0).doc("Number of outputs.");
  schema.field("num_out_data", &WhileLoopParams::num_out_data).at_least(0).doc("How many outputs are stacked.");
  schema.field("max_iterations", &WhileLoopParams::max_iterations).at_least(0).doc("Largest number of iterations.");
  schema.field("cond_input_locs", &WhileLoopParams::cond_input_locs).doc("Node input of each input of the condition.");
  schema.field("func_input_locs", &WhileLoopParams::func_input_locs).doc("Node input of each input of the body.");
  schema.field("func_var_locs", &WhileLoopParams::func_var_locs).doc("Body input of each loop variable.");
  schema.field("unbounded", &WhileLoopParams::unbounded)
      .default_value(false)
      .doc("Whether max_iterations does not count.");
  schema.field("limited", &WhileLoopParams::limited)
      .default_value(false)
      .doc("Whether the last input is the limit of this run.");
  schema.field("scalar_slices", &WhileLoopParams::scalar_slices)
      .default_value(false)
      .doc("Whether the number of iterations has shape () instead of (1,).");
  schema.field("exact", &WhileLoopParams::exact)
      .default_value(false)
      .doc("Whether outputs have as many rows as there were iterations, instead of max_iterations.");
  schema.field("on_limit", &WhileLoopParams::on_limit)
      .default_value("stop")
      .one_of({"stop", "warn", "raise"})
      .doc("What happens when the limit ends the loop while its condition holds.");
  schema.field("free_axes", &WhileLoopParams::free_axes)
      .default_value("()")
      .doc("Pairs of a loop variable and an axis whose size may change from iteration to iteration.");
  schema.field("checkpoint", &WhileLoopParams::checkpoint).default_value("").doc("What is kept for the gradient.");
}

void CondParams::describe(ParamSchema<CondParams>& schema) {
  schema.field("num_args", &CondParams::num_args).at_least(0).doc("Number of inputs.");
  schema.field("num_outputs", &CondParams::num_outputs).at_least(0).doc("Number of outputs.");
  schema.field("then_extra", &CondParams::then_extra).default_value(0).doc("Outputs that the then branch alone gives.");
  schema.field("else_extra", &CondParams::else_extra).default_value(0).doc("Outputs that the else branch alone gives.");
  schema.field("dynamic", &CondParams::dynamic)
      .default_value(false)
      .doc("Whether the sizes of outputs may differ between the branches.");
  schema.field("cond_input_locs", &CondParams::cond_input_locs).doc("Node input of each input of the predicate.");
  schema.field("then_input_locs", &CondParams::then_input_locs).doc("Node input of each input of the then branch.");
  schema.field("else_input_locs", &CondParams::else_input_locs).doc("Node input of each input of the else branch.");
}

std::vector<int> to_ints(const OptionalInts& list) {
  std::vector<int> result;
  for (const std::optional<int64_t>& item : list) result.push_back(static_cast<int>(item.value_or(-1)));
  return result;
}

OptionalInts to_locs(const std::vector<int>& list) { return {list.begin(), list.end()}; }

namespace {

// Checks of one node read from a file.
class NodeCheck {
 public:
  explicit NodeCheck(const Node& node) : node_(node), num_inputs_(static_cast<int64_t>(node.inputs.size())) {}

  void foreach () const {
    const auto& p = params_of<ForeachParams>(node_);
    const Subgraph& body = *node_.subgraphs[0];
    const size_t slots = p.in_data_locs.size() + p.in_state_locs.size() + p.remain_locs.size();
    require(slots == body.inputs.size(),
            "in_data_locs, in_state_locs and remain_locs name each input of the body once");
    require(static_cast<int64_t>(slots) + (p.counted ? 1 : 0) == num_inputs_,
            "there is one node input per input of the body");
    std::vector<bool> seen(slots);
    for (const OptionalInts* list : {&p.in_data_locs, &p.in_state_locs, &p.remain_locs}) {
      in_range(*list, static_cast<int64_t>(slots), "an input of the body");
      for (int at : to_ints(*list)) {
        require(!seen[static_cast<size_t>(at)], "each input of the body is named once");
        seen[static_cast<size_t>(at)] = true;
      }
    }
    outputs(p.num_outputs, p.num_out_data, p.in_state_locs.size(), body);
    require(!p.in_data_locs.empty() || p.length >= 0, "a loop without data says its length");
  }

  void while_loop() const {
    const auto& p = params_of<WhileLoopParams>(node_);
    sources(p.cond_input_locs, 0);
    sources(p.func_input_locs, 1);
    in_range(p.func_var_locs, static_cast<int64_t>(p.func_input_locs.size()), "an input of the body");
    require(node_.subgraphs[0]->outputs.size() == 1, "the condition has one output");
    outputs(p.num_outputs, p.num_out_data, p.func_var_locs.size(), *node_.subgraphs[1]);
    require(!p.unbounded || p.limited || p.exact || p.num_out_data == 0,
            "a loop with stacked outputs has max_iterations, or is exact");
    require(p.free_axes.size() % 2 == 0, "free_axes are pairs of a variable and an axis");
    for (size_t i = 0; i < p.free_axes.size(); ++i) {
      const std::optional<int64_t>& number = p.free_axes[i];
      const auto bound = i % 2 == 0 ? static_cast<int64_t>(p.func_var_locs.size()) : int64_t{kMaxDims};
      require(number && *number >= 0 && *number < bound, "free_axes name variables and their axes");
    }
    require(!p.limited || num_inputs_ > 0, "the last input is the limit");
  }

  void cond() const {
    const auto& p = params_of<CondParams>(node_);
    sources(p.cond_input_locs, 0);
    sources(p.then_input_locs, 1);
    sources(p.else_input_locs, 2);
    require(node_.subgraphs[0]->outputs.size() == 1, "the predicate has one output");
    const int64_t common = int64_t{p.num_outputs} - p.then_extra - p.else_extra;
    require(p.then_extra >= 0 && p.else_extra >= 0 && common >= 0, "extra outputs are among num_outputs");
    require(static_cast<int64_t>(node_.subgraphs[1]->outputs.size()) == common + p.then_extra &&
                static_cast<int64_t>(node_.subgraphs[2]->outputs.size()) == common + p.else_extra,
            "both branches have num_outputs outputs");
  }

 private:
  void require(bool holds, const char* rule) const {
    if (holds) return;
    throw FormatError({.op = node_.op->name,
                       .node = node_.name,
                       .message = "its attributes do not fit its inputs and bodies",
                       .because = std::string("the rule is: ") + rule,
                       .fix = "save the model again"});
  }
  void in_range(const OptionalInts& list, int64_t size, const char* what) const {
    for (const std::optional<int64_t>& at : list) require(at.has_value() && *at >= 0 && *at < size, what);
  }
  void sources(const OptionalInts& list, size_t body) const {
    require(list.size() == node_.subgraphs[body]->inputs.size(), "input_locs name a node input per input of the body");
    in_range(list, num_inputs_, "input_locs name inputs of the node");
  }
  void outputs(int64_t all, int64_t stacked, size_t states, const Subgraph& body) const {
    require(stacked >= 0 && stacked + static_cast<int64_t>(states) == all, "outputs are stacked ones, then states");
    require(static_cast<int64_t>(body.outputs.size()) == all, "the body has num_outputs outputs");
  }

  const Node& node_;
  const int64_t num_inputs_;
};

}  // namespace

void check_control_node(const Node& node) {
  const NodeCheck check(node);
  switch (control_kind(node)) {
    case ControlKind::kForeach:
      return check.foreach ();
    case ControlKind::kWhileLoop:
      return check.while_loop();
    case ControlKind::kCond:
      return check.cond();
    case ControlKind::kNone:
      return;
  }
}

ControlKind control_kind(const Op& op) {
  if (op.subgraph_names.empty()) return ControlKind::kNone;
  if (op.name == "_foreach") return ControlKind::kForeach;
  return op.name == "_while_loop" ? ControlKind::kWhileLoop : ControlKind::kCond;
}

}  // namespace hybridnet
