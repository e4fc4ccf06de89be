// Tracing of foreach, while_loop and cond: bodies are opened, run by Python, cut out of the graph, and put into a node.
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "casters.h"
#include "control_bodies.h"
#include "graph/control/closed_body.h"
#include "graph/control/loop_view.h"
#include "graph/control/rules.h"
#include "location.h"
#include "plan/control/control_kernel.h"
#include "traced_memory.h"
#include "traced_modes.h"

namespace hybridnet::python {
namespace {

struct OpenBody {
  int id = 0;
  std::string description;  // "the body of foreach at file:line"
  std::unordered_map<const Node*, NodePtr> made;
  uint64_t first_memory = detail::next_chunk_id();  // arrays of this thread with smaller numbers are older
};

struct Bodies {
  std::vector<OpenBody> open;
  int next_id = 1;
};

Bodies& bodies() {
  thread_local Bodies state;
  return state;
}

// An input of a body, for a value that passes to it: a variable with the spec of `like`, or with that of its slices.
struct Slot {
  std::string name;
  py::object like;
  bool is_slice = false;
  std::vector<int> free_axes;  // sizes that may differ from iteration to iteration
};

OpenBody& open_body_of(int id) {
  Bodies& state = bodies();
  if (state.open.empty() || state.open.back().id != id)
    raise(ErrorKind::kError, {.message = "bodies of control flow are closed in the order in which they were opened"});
  return state.open.back();
}

Symbol make_slot(OpenBody& body, const Slot& slot, bool scalar_slices) {
  const NodePtr variable = make_variable(slot.name);
  variable->where = python_location();
  TensorSpec spec;
  bool traced = true;
  if (is_array(slot.like.ptr())) {
    spec = array_of(slot.like.ptr()).spec();
  } else if (const TensorSpec* known = traced_spec(entry_of(slot.like.ptr(), slot.name.c_str()))) {
    spec = *known;
  } else {
    traced = false;
  }
  for (int axis : slot.free_axes)
    if (axis < spec.shape.ndim()) spec.shape[axis] = kUnknownDim;
  if (traced) variable->specs = {slot.is_slice ? slice_spec(spec, scalar_slices) : spec};
  body.made.emplace(variable.get(), variable);
  return Symbol{{{variable, 0}}};
}

struct BodyHandle {
  CapturedBody captured;
  uint64_t first_memory = 0;  // copied from the OpenBody
};

void close(Bodies& state, const CapturedBody* captured) {
  OpenBody body = std::move(state.open.back());
  state.open.pop_back();
  if (captured) {
    // Nodes that stay outside belong to the surrounding body from now on.
    for (const NodeEntry& entry : captured->captured) {
      for (Node* node : topological_order({entry})) {
        const auto found = body.made.find(node);
        if (found == body.made.end()) continue;
        if (!state.open.empty()) state.open.back().made.insert(*found);
        body.made.erase(found);
      }
    }
  }
  for (const auto& [address, node] : body.made) close_with_body(*node, body.description);
}

// Opens a body: nodes that are made from now on belong to it. Returns its number and the variables of its slots.
std::pair<int, std::vector<Symbol>> open_body(const std::string& construct, const std::string& line,
                                              const std::vector<Slot>& slots, bool scalar_slices) {
  Bodies& state = bodies();
  state.open.push_back({state.next_id++, construct + (line.empty() ? "" : " (" + line + ")"), {}});
  const int id = state.open.back().id;
  std::vector<Symbol> variables;
  try {
    for (const Slot& slot : slots) variables.push_back(make_slot(state.open.back(), slot, scalar_slices));
  } catch (...) {
    close(state, nullptr);
    throw;
  }
  return {id, std::move(variables)};
}

BodyHandle close_body(int id, const std::vector<py::object>& results, const std::vector<py::object>& slots,
                      bool hoist) {
  OpenBody& body = open_body_of(id);
  std::vector<NodeEntry> entries;
  for (const py::object& result : results) entries.push_back(entry_of(result.ptr(), "result"));
  std::vector<NodePtr> variables;
  for (const py::object& slot : slots) {
    const NodeEntry variable = expect_symbol(slot.ptr(), "slot").outputs.at(0);  // also if the body has written to it
    const bool is_own = body.made.count(variable.node.get()) != 0;
    variables.push_back(is_own ? variable.node : current_entry(variable).node);
  }
  CaptureOptions options;
  options.hoist = hoist;
  options.made_inside = [&](const Node* node) { return body.made.count(node) != 0; };
  check_leaks(entries);
  BodyHandle handle{capture_body(entries, variables, options), body.first_memory};
  close(bodies(), &handle.captured);
  return handle;
}

// Returns the nodes of a body among which a checkpoint policy chooses: the ones that compute something, in execution
// order.
std::vector<Node*> computing_nodes(const BodyHandle& handle) {
  static const OpRef copy{"_copy"};
  std::vector<Node*> nodes;
  for (Node* node : topological_order(handle.captured.body->outputs)) {
    const bool passes_on = node->op == &copy.op() && node->inputs[0].node->is_variable();
    if (!node->is_variable() && !passes_on) nodes.push_back(node);
  }
  return nodes;
}

// True if the body, or a body inside it, writes to states such as running statistics.
bool writes_states(const std::vector<NodeEntry>& outputs) {
  const std::vector<Node*> nodes = topological_order(outputs);
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) {
    if (node->op != nullptr && node->op->has_writebacks() &&
        (!node->op->writeback_active || node->op->writeback_active(node->params->data(), true)))
      return true;
    return std::any_of(node->subgraphs.begin(), node->subgraphs.end(),
                       [](const Ref<Subgraph>& body) { return writes_states(body->outputs); });
  });
}

// Returns per node: operator, name, attributes, and shape and dtype of each output; unknown ones are None.
py::list describe_nodes(const BodyHandle& handle) {
  py::list result;
  for (const Node* node : computing_nodes(handle)) {
    std::map<std::string, std::string> attrs(node->attrs.begin(), node->attrs.end());
    for (auto& [key, value] : node->op->schema->print(node->params->data())) attrs[key] = std::move(value);
    py::list specs;
    for (size_t i = 0; i < static_cast<size_t>(node->num_outputs()); ++i) {
      const TensorSpec spec = i < node->specs.size() ? node->specs[i] : TensorSpec{};
      specs.append(spec.known() ? py::object(py::make_tuple(spec.shape, spec.dtype)) : py::none());
    }
    result.append(py::make_tuple(node->op->name, node->name, std::move(attrs), std::move(specs)));
  }
  return result;
}

void keep_nodes(const BodyHandle& handle, const std::vector<bool>& kept) {
  const std::vector<Node*> nodes = computing_nodes(handle);
  for (size_t i = 0; i < nodes.size(); ++i)
    if (kept.at(i)) nodes[i]->attrs[kKeepAttribute] = "1";
}

void abandon_body(int id) {
  Bodies& state = bodies();
  while (!state.open.empty() && state.open.back().id >= id) close(state, nullptr);
}

std::vector<NodeEntry> entries_of(const std::vector<py::object>& objects) {
  std::vector<NodeEntry> entries;
  for (const py::object& object : objects) entries.push_back(entry_of(object.ptr(), "input"));
  return entries;
}

// The node's outputs.
template <typename Spec>
std::vector<Symbol> make_control_node(const char* op, Spec spec, std::vector<Ref<Subgraph>> subgraphs,
                                      std::vector<NodeEntry> inputs, const py::object& name) {
  spec.num_args = static_cast<int32_t>(inputs.size());
  const NodePtr node =
      make_node(op_registry().at(op), make_name(name.ptr(), op + 1), boxed(std::move(spec)), std::move(inputs));
  node->subgraphs = std::move(subgraphs);
  node->where = python_location();
  node->block = trace_state().block;
  node->attrs = make_attributes(nullptr);
  note_made_node(node);
  infer_made_node(*node);
  Symbol symbol;
  for (int i = 0; i < node->num_outputs(); ++i) symbol.outputs.push_back({node, static_cast<uint32_t>(i)});
  std::vector<Symbol> outputs;
  for (const NodeEntry& entry : without_gradient_in_pause(std::move(symbol)).outputs) outputs.push_back({{entry}});
  return outputs;
}

// Options by their names in LoopSpec::describe. Throws ParamError for an unknown name or a value that does not fit.
LoopSpec make_loop_spec(const std::string& op, const py::kwargs& options) {
  const Op& declared = op_registry().at(op);
  std::vector<std::pair<std::string, AttrValue>> values;
  for (const auto& [key, value] : options)
    values.emplace_back(key.cast<std::string>(), to_attr_value(value.ptr(), "option"));
  return declared.schema->parse(values, op)->as<LoopSpec>();
}

std::vector<Symbol> make_foreach(const BodyHandle& handle, const std::vector<py::object>& data,
                                 const std::vector<py::object>& states, LoopSpec loop, const py::object& name) {
  const CapturedBody& body = handle.captured;
  std::vector<NodeEntry> inputs = entries_of(data);
  for (const NodeEntry& state : entries_of(states)) inputs.push_back(state);
  inputs.insert(inputs.end(), body.captured.begin(), body.captured.end());
  loop.num_seq = static_cast<int32_t>(data.size());
  loop.num_carry = static_cast<int32_t>(states.size());
  loop.num_out = static_cast<int32_t>(body.body->outputs.size() - states.size());
  return make_control_node("_foreach", std::move(loop), {body.body}, std::move(inputs), name);
}

// Returns the body with the values of its inputs: `first` for the slots, then the captured values.
BoundBody bound(const BodyHandle& handle, std::vector<NodeEntry> first) {
  first.insert(first.end(), handle.captured.captured.begin(), handle.captured.captured.end());
  return {handle.captured.body, std::move(first)};
}

std::vector<Symbol> make_while_loop(const BodyHandle& condition, const BodyHandle& function,
                                    const std::vector<py::object>& variables, const py::object& limit, LoopSpec loop,
                                    const py::object& name) {
  std::vector<NodeEntry> inputs = entries_of(variables);
  BoundBody bodies[] = {bound(condition, inputs), bound(function, inputs)};
  bind_bodies(inputs, bodies, variables.size());
  loop.num_carry = static_cast<int32_t>(variables.size());
  loop.num_out = static_cast<int32_t>(bodies[1].body->outputs.size() - variables.size());
  if (!limit.is_none()) {
    loop.counted = true;
    inputs.push_back(entry_of(limit.ptr(), "max_iterations"));
  }
  return make_control_node("_while_loop", std::move(loop), {bodies[0].body, bodies[1].body}, std::move(inputs), name);
}

std::vector<Symbol> make_cond(const py::object& pred, const BodyHandle& then_branch, const BodyHandle& else_branch,
                              bool dynamic, bool strict_shape, const py::object& name) {
  std::vector<NodeEntry> inputs{entry_of(pred.ptr(), "pred")};
  BoundBody bodies[] = {predicate_of(inputs[0], {}), bound(then_branch, {}), bound(else_branch, {})};
  bind_bodies(inputs, bodies);
  BranchSpec branch;
  branch.num_out = static_cast<int32_t>(then_branch.captured.body->outputs.size());
  branch.dynamic = dynamic;
  branch.strict_shape = strict_shape;
  return make_control_node("_cond", branch, {bodies[0].body, bodies[1].body, bodies[2].body}, std::move(inputs), name);
}

// Returns the names of the outside values that the body reads, except constants made while it was traced.
std::vector<std::string> foreign_values(const BodyHandle& handle) {
  std::vector<std::string> names;
  for (const NodeEntry& entry : handle.captured.captured) {
    const auto* constant = static_cast<const ArrayImpl*>(entry.node->constant.get());
    if (constant == nullptr)
      names.push_back("'" + entry.node->name + "'");
    else if (constant->chunk->id < handle.first_memory)
      names.push_back("an array " + entry.node->specs.at(entry.index).str());
  }
  return names;
}

// A node of an operator that programs do not call by name.
Symbol make_effect(const std::string& op, const std::vector<py::object>& inputs, const py::kwargs& params) {
  const Op& declared = op_registry().at(op);
  std::vector<std::pair<std::string, AttrValue>> given;
  for (const auto& [key, value] : params)
    given.emplace_back(key.cast<std::string>(), to_attr_value(value.ptr(), "parameter"));
  const NodePtr node = make_node(declared, make_name(py::none().ptr(), op.c_str() + 1),
                                 declared.schema->parse(given, op), entries_of(inputs));
  node->where = python_location();
  node->block = trace_state().block;
  note_made_node(node);
  infer_made_node(*node);
  return Symbol{{{node, 0}}};
}

Symbol write_state(const Symbol& data, const Symbol& value, const py::object& variable) {
  const Symbol& state = expect_symbol(variable.ptr(), "state");

  const Op& op = op_registry().at("_write_state");
  const NodePtr node = make_node(op, make_name(py::none().ptr(), "write_state"), op.default_params,
                                 {data.outputs.at(0), value.outputs.at(0), state.outputs.at(0)});
  node->where = python_location();
  node->block = trace_state().block;
  note_made_node(node);
  infer_made_node(*node);
  return Symbol{{{node, 0}}};
}

// Returns a broken rule as (error class, message, expected, given, because, fix).
py::object described(const std::optional<BrokenRule>& broken) {
  if (!broken) return py::none();
  const ErrorFields& e = broken->fields;
  return py::make_tuple(kind_name(broken->kind), e.message, e.expected, e.given, e.because, e.fix);
}

}  // namespace

void note_made_node(const NodePtr& node) {
  // A trace is checked when it ends: unused nodes that read such a value do no harm.
  if (!trace_state().active) check_reads_no_closed_body(*node);
  Bodies& state = bodies();
  if (!state.open.empty()) state.open.back().made.emplace(node.get(), node);
}

const std::string* body_around(const Node& node) {
  const Bodies& state = bodies();
  if (state.open.empty() || state.open.back().made.count(&node) != 0) return nullptr;
  return &state.open.back().description;
}

int innermost_body() {
  const Bodies& state = bodies();
  return state.open.empty() ? 0 : state.open.back().id;
}

bool is_open_body(int id) {
  const std::vector<OpenBody>& open = bodies().open;
  return id == 0 || std::any_of(open.begin(), open.end(), [id](const OpenBody& body) { return body.id == id; });
}

bool belongs_to_body(const Node& node) {
  const std::vector<OpenBody>& open = bodies().open;
  return closed_body_of(node) != nullptr ||
         std::any_of(open.begin(), open.end(), [&](const OpenBody& body) { return body.made.count(&node) != 0; });
}

void check_write_in_body(const NDArray& target) {
  const Bodies& state = bodies();
  if (state.open.empty()) return check_write_in_trace(target);
  if (target.impl()->chunk->id >= state.open.back().first_memory) return;
  ErrorFields e;
  e.message = "an array from outside is written to in place inside " + state.open.back().description;
  e.because = "the function is traced once, so the array would be written once and not in each iteration";
  e.fix = "carry the array as a state and return its new value";
  e.where = python_location();
  raise(ErrorKind::kTrace, std::move(e));
}

void bind_control_flow(py::module_& m) {
  py::class_<BodyHandle>(m, "ControlBody", "A traced body of a loop or branch.");
  py::class_<Slot>(m, "ControlSlot", "An input of a body, for a value that passes to it.")
      .def(py::init<std::string, py::object, bool, std::vector<int>>(), py::arg("name"), py::arg("like"),
           py::arg("is_slice") = false, py::arg("free_axes") = std::vector<int>())
      .def_readonly("like", &Slot::like);
  py::class_<LoopSpec>(m, "LoopSpec", "The options of a loop, named as the parameters of its operator.")
      .def(py::init(&make_loop_spec), py::arg("op"));
  m.def(
      "control_open", &open_body, py::arg("construct"), py::arg("line"), py::arg("slots"), py::arg("scalar_slices"),
      "Opens a body: nodes that are made from now on belong to it. Returns its number and the variables of its slots.");
  m.def("control_close", &close_body, "Cuts the open body out: results of its slots.");
  m.def("control_nodes", &describe_nodes, "(op, name, attributes, specs of outputs) per node of a body.");
  m.def(
      "control_writes_states", [](const BodyHandle& body) { return writes_states(body.captured.body->outputs); },
      "Whether a body writes to states such as running statistics.");
  m.def("control_keep", &keep_nodes, "Marks nodes of a body: their outputs are kept for the gradient.");
  m.def("control_abandon", &abandon_body, "Closes a body whose function failed, and those inside it.");
  m.def(
      "control_carry_rule",
      [](const std::string& which, const std::pair<Shape, DType>& before, const std::pair<Shape, DType>& after,
         const std::vector<bool>& free, bool may_free) {
        return described(carry_rule(which, {before.first, before.second}, {after.first, after.second}, free, may_free));
      },
      "Returns the error if a state may not change from the first spec to the second (see described()), else None.");
  m.def(
      "control_row_rule",
      [](const std::string& which, const std::pair<Shape, DType>& first, const std::pair<Shape, DType>& row) {
        return described(row_rule(which, {first.first, first.second}, {row.first, row.second}));
      },
      "Returns the error if the specs of an output in two iterations differ, else None.");
  m.def(
      "control_limit_rule", [](int64_t limit) { return described(limit_rule(limit)); },
      "Returns the error of on_limit='raise' for a loop whose condition still holds at its limit.");
  m.def(
      "control_limit_warning", [](int64_t limit) { return limit_warning(limit, python_location()); },
      "Returns the warning of on_limit='warn' for such a loop.");
  m.def("control_foreign", &foreign_values, "Names of the values that a body reads from around it.");
  m.def("write_state", &write_state, "data, with which value is written into the variable state.");
  m.def("make_effect", &make_effect, "A node of an operator of src/ops/control_flow/effects.cc.");
  m.def("control_foreach", &make_foreach);
  m.def("control_while_loop", &make_while_loop);
  m.def("control_cond", &make_cond);
  m.def(
      "set_loop_mode",
      [](const std::string& mode) {
        const LoopMode before = set_loop_mode(loop_mode_from_name(mode));
        return before == LoopMode::kInline ? "inline" : before == LoopMode::kAhead ? "ahead" : "auto";
      },
      "Sets how independent iterations run: auto, inline or ahead. Returns the previous mode.");
  m.def(
      "control_check_leaks", [](const Symbol& outputs) { check_leaks(outputs.outputs); },
      "Raises TraceError if outputs read values of a closed body.");
  m.def(
      "control_place", [] { return bodies().open.empty() ? std::string() : bodies().open.back().description; },
      "The innermost body that is being traced, as \"the body of foreach (file:line)\"; empty outside of bodies.");
}

}  // namespace hybridnet::python
