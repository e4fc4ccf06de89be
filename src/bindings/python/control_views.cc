// View of mx.rewrite: a loop or branch taken apart; Python edits its bodies as graphs.
#include <optional>

#include "graph/control/body_graph.h"
#include "graph/control/loop_view.h"
#include "graph_handles.h"
#include "op_info.h"

namespace hybridnet::python {
namespace {

constexpr const char* kBranchNames[] = {"pred", "then", "else"};

// A loop or branch taken apart. Handles of its bodies become invalid with it.
struct View {
  AccessPtr outer;  // the graph that holds the node
  NodePtr node;
  std::optional<LoopView> loop;
  std::vector<std::unique_ptr<Graph>> branches;  // predicate, then, else; empty for loops
  std::vector<std::vector<NodeEntry>> outside;   // per branch body: the values of its inputs
  BranchSpec branch;
  std::vector<std::pair<std::string, AccessPtr>> bodies;
  bool is_over = false;

  View() = default;
  View(const View&) = delete;
  ~View() { end(); }
  void end() {
    for (const auto& [name, access] : bodies) access->end();
    is_over = true;
  }
  void open(const char* name, Graph& body) {
    auto access = std::make_shared<GraphAccess>();
    access->graph = &body;
    access->given_to = "the view of '" + node->name + "'";
    bodies.emplace_back(name, std::move(access));
  }
  // Returns the graph that holds the node. Throws ValueError naming `use` if the view has been frozen.
  Graph& graph(const char* use) const {
    Graph& around = outer->get(use);
    if (is_over)
      raise(ErrorKind::kValue, {.node = node->name,
                                .message = std::string(use) + " of a view that has been frozen",
                                .fix = "make a new view: call view() of the node that freeze() returned"});
    if (!around.contains(node.get()))
      raise(ErrorKind::kValue,
            {.node = node->name, .message = std::string(use) + " of a node that is no longer in the graph"});
    return around;
  }
  AccessPtr body(size_t index) const { return bodies[index].second; }
  AccessPtr last_body() const { return bodies.back().second; }
};
using ViewPtr = std::shared_ptr<View>;

[[noreturn]] void throw_no_loop(const View& view, const char* use) {
  raise(ErrorKind::kValue, {.node = view.node->name,
                            .message = std::string(use) + " is for loops, and the node is a branch",
                            .fix = "use add_input() of branches"});
}

ViewPtr view_of(const NodeHandle& handle) {
  Graph& graph = handle.access->get("Node.view");
  const Node& node = *handle.node;
  if (!graph.contains(&node))
    raise(ErrorKind::kValue, {.node = node.name, .message = "view of a node that is no longer in the graph"});
  const ControlKind kind = control_kind(node);
  if (node.is_variable() || node.subgraphs.empty())
    raise(ErrorKind::kValue, {.op = node.op ? node.op->name : "",
                              .node = node.name,
                              .message = "the node has no bodies",
                              .fix = "ask node.bodies first"});
  if (has_dynamic_shape(node) || has_dynamic_body(node))
    raise(ErrorKind::kUnsupported, {.op = node.op->name,
                                    .node = node.name,
                                    .message = "shapes in its bodies are known only when it runs",
                                    .fix = "leave such nodes out: exact outputs, shape_invariants, boolean_mask"});
  auto view = std::make_shared<View>();
  view->outer = handle.access;
  view->node = handle.node;
  if (kind == ControlKind::kCond) {
    view->branch = branch_of(node);
    for (size_t b = 0; b < node.subgraphs.size(); ++b) {
      view->branches.push_back(std::make_unique<Graph>(graph_of_body(graph, node, b)));
      view->outside.push_back(node.inputs);
      view->open(kBranchNames[b], *view->branches.back());
    }
    return view;
  }
  view->loop.emplace(graph, node);
  if (view->loop->condition) view->open("test", *view->loop->condition);
  view->open("do", view->loop->body);
  return view;
}

py::dict bodies_of(const ViewPtr& view) {
  view->graph("View.bodies");
  py::dict result;
  for (const auto& [name, access] : view->bodies) result[py::str(name)] = GraphHandle{access};
  return result;
}

py::object inner_of(const AccessPtr& body, const NodePtr& input) {
  return input ? py::cast(EntryHandle{body, {input, 0}}) : py::object(py::none());
}

// Returns the rows of a kind: (outer entry or None, inner entry or None, body output entry or None, output of the node,
// -1 if none).
py::list loop_rows(const ViewPtr& view, const std::string& kind) {
  view->graph("View");
  if (!view->loop) throw_no_loop(*view, kind.c_str());
  const LoopView& loop = *view->loop;
  const AccessPtr body = view->last_body();
  py::list rows;
  auto slot = [&](const LoopView::Slot& s, const py::object& given, int output) {
    rows.append(py::make_tuple(EntryHandle{view->outer, s.outer}, inner_of(body, s.inner), given, output));
  };
  if (kind == "seqs")
    for (const LoopView::Slot& s : loop.data) slot(s, py::none(), -1);
  if (kind == "invs")
    for (const LoopView::Slot& s : loop.captured) slot(s, py::none(), -1);
  if (kind == "carries")
    for (const LoopView::Carry& c : loop.carries)
      slot(c.slot, py::cast(EntryHandle{body, loop.entry(c.next)}), c.output);
  if (kind == "outs")
    for (const LoopView::Out& o : loop.outs)
      rows.append(py::make_tuple(py::none(), py::none(), EntryHandle{body, loop.entry(o.value)}, o.output));
  return rows;
}

// Returns per slot and output of the unchanged node: kind, and four indices (outer input, inner input, inner output,
// outer output), -1 if it has none there. body: index of a branch's body.
py::list index_rows(const ViewPtr& view, size_t body) {
  view->graph("View.index_map");
  const Node& node = *view->node;
  py::list rows;
  auto add = [&](const char* kind, int64_t outer_in, int64_t inner_in, int64_t inner_out, int64_t outer_out) {
    rows.append(py::make_tuple(kind, outer_in, inner_in, inner_out, outer_out));
  };
  if (!view->loop) {
    const auto inputs = static_cast<int64_t>(node.inputs.size());
    for (int64_t k = 0; k < inputs; ++k) add("input", k, k, -1, -1);
    if (body > 0)
      for (size_t i = 0; i < branch_of(node).outputs_of(body - 1); ++i)
        add("output", -1, -1, static_cast<int64_t>(i), static_cast<int64_t>(branch_of(node).output_of(body - 1, i)));
    return rows;
  }
  const LoopSpec& spec = loop_of(node);
  for (size_t k = 0; k < spec.slots(); ++k) {
    const auto slot = static_cast<int64_t>(k);
    if (k < spec.seqs()) {
      add("seq", slot, slot, -1, -1);
    } else if (k < spec.first_invariant()) {
      const auto output = static_cast<int64_t>(spec.final_carry(k - spec.seqs()));
      add("carry", slot, slot, output, output);
    } else {
      add("inv", slot, slot, -1, -1);
    }
  }
  for (int64_t i = 0; i < spec.num_out; ++i) add("out", -1, -1, i, i);
  return rows;
}

EntryHandle add_invariant(const ViewPtr& view, const py::object& outer) {
  view->graph("View.add_inv");
  if (!view->loop) throw_no_loop(*view, "View.add_inv");
  const NodeEntry entry = entry_from(view->outer, outer, "entry");
  return {view->last_body(), {view->loop->add_invariant(entry).inner, 0}};
}

EntryHandle add_sequence(const ViewPtr& view, const py::object& outer) {
  Graph& graph = view->graph("View.add_seq");
  if (!view->loop || view->loop->has_condition())
    raise(ErrorKind::kValue, {.node = view->node->name, .message = "only foreach has sequences"});
  const NodeEntry entry = entry_from(view->outer, outer, "entry");
  const TensorSpec& spec = graph.spec(entry);
  const int64_t rows = view->loop->rows();
  if (spec.shape.ndim() == 0 || spec.shape[0] != rows)
    raise(ErrorKind::kShape, {.node = view->node->name,
                              .input = "entry",
                              .expected = std::to_string(rows) + " rows, one per iteration of the loop",
                              .given = spec.str()});
  const TensorSpec slice = slice_spec(spec, view->loop->spec.scalar_slices);
  return {view->last_body(), {view->loop->add_sequence(entry, slice, entry.node->name).inner, 0}};
}

EntryHandle add_input(const ViewPtr& view, const std::string& body, const py::object& outer) {
  Graph& graph = view->graph("View.add_input");
  const NodeEntry entry = entry_from(view->outer, outer, "entry");
  for (size_t b = 0; b < view->branches.size(); ++b) {
    if (view->bodies[b].first != body) continue;
    view->outside[b].push_back(entry);
    return {view->body(b), {view->branches[b]->add_input(entry.node->name, graph.spec(entry)), 0}};
  }
  raise(ErrorKind::kValue,
        {.node = view->node->name,
         .input = "body",
         .expected = view->loop ? "a branch; loops have add_inv() and add_seq()" : "pred, then or else",
         .given = "'" + body + "'"});
}

// Adds an output: a value of the loop's body, or one value of each branch. Returns its index.
int add_output(const ViewPtr& view, const py::list& values) {
  view->graph("View.add_output");
  const size_t wanted = view->loop ? 1 : 2;
  if (values.size() != wanted)
    raise(ErrorKind::kType, {.node = view->node->name,
                             .expected = view->loop ? "one value of the body" : "a value of each branch",
                             .given = std::to_string(values.size())});
  if (view->loop) {
    LoopView& loop = *view->loop;
    const NodeEntry entry = entry_from(view->last_body(), values[0], "value");
    loop.outs.push_back({loop.output_of(entry), -1});
    return static_cast<int>(loop.outs.size()) - 1;
  }
  if (view->branch.then_extra > 0 || view->branch.else_extra > 0)
    raise(ErrorKind::kUnsupported, {.node = view->node->name,
                                    .message = "an output of both branches cannot follow outputs of one branch alone"});
  NodeEntry entries[2];
  for (size_t b = 0; b < 2; ++b) entries[b] = entry_from(view->body(b + 1), values[b], kBranchNames[b + 1]);
  if (!(view->branches[1]->spec(entries[0]) == view->branches[2]->spec(entries[1])))
    raise(ErrorKind::kShape, {.node = view->node->name,
                              .expected = view->branches[1]->spec(entries[0]).str() + ", the spec of the then branch",
                              .given = view->branches[2]->spec(entries[1]).str()});
  for (size_t b = 0; b < 2; ++b) view->branches[b + 1]->add_output(entries[b]);
  return view->branch.num_out++;
}

void remove_output(const ViewPtr& view, int index) {
  Graph& graph = view->graph("View.remove_output");
  if (!view->loop) throw_no_loop(*view, "View.remove_output");
  std::vector<LoopView::Out>& outs = view->loop->outs;
  if (index < 0 || index >= static_cast<int>(outs.size()))
    raise(
        ErrorKind::kIndex,
        {.node = view->node->name, .expected = "below " + std::to_string(outs.size()), .given = std::to_string(index)});
  const int output = outs[static_cast<size_t>(index)].output;
  if (output >= 0 && graph.is_used(*view->node, output))
    raise(ErrorKind::kValue, {.node = view->node->name,
                              .message = "output " + std::to_string(output) + " has readers",
                              .fix = "replace its readers first"});
  outs.erase(outs.begin() + index);
}

// Adds the node with its edited bodies to the graph, without readers.
NodePtr put_together(const View& view, Graph& graph) {
  if (view.loop) return view.loop->put_together(graph, *view.node);
  std::array<BoundBody, 3> bound;
  for (size_t b = 0; b < 3; ++b) bound[b] = {freeze(*view.branches[b], view.branches[b]->outputs()), view.outside[b]};
  return add_cond(graph, *view.node, view.branch, std::move(bound));
}

// Returns the replacement of each output of the original node; null if there is none.
std::vector<NodeEntry> successors(const View& view, const NodePtr& made) {
  std::vector<NodeEntry> now(view.node->specs.size());
  if (!view.loop) {
    for (uint32_t i = 0; i < now.size(); ++i) now[i] = {made, i};
    return now;
  }
  const LoopView& loop = *view.loop;
  for (size_t i = 0; i < loop.outs.size(); ++i)
    if (loop.outs[i].output >= 0) now[static_cast<size_t>(loop.outs[i].output)] = loop.out(made, i);
  for (size_t s = 0; s < loop.carries.size(); ++s)
    if (loop.carries[s].output >= 0) now[static_cast<size_t>(loop.carries[s].output)] = loop.final_carry(made, s);
  if (loop.has_condition()) now.back() = loop.final_carry(made, loop.carries.size());  // number of iterations
  return now;
}

template <typename Edit>
auto all_or_nothing(Graph& graph, const Edit& edit) {
  const Graph::Checkpoint start = graph.checkpoint();
  try {
    auto result = edit();
    graph.release(start);
    return result;
  } catch (...) {
    graph.revert(start);
    graph.release(start);
    throw;
  }
}

void validate_bodies(const View& view, const char* use) {
  for (const auto& [name, access] : view.bodies) access->get(use).validate();
}

// Returns the result that a local rule must return for this view.
py::dict replacement_of(const ViewPtr& view) {
  Graph& graph = view->graph("View.replacement");
  validate_bodies(*view, "View.replacement");
  const NodePtr made = all_or_nothing(graph, [&] { return put_together(*view, graph); });
  py::dict result;
  const std::vector<NodeEntry> now = successors(*view, made);
  for (uint32_t i = 0; i < now.size(); ++i)
    if (now[i].node) result[py::cast(EntryHandle{view->outer, {view->node, i}})] = EntryHandle{view->outer, now[i]};
  view->end();
  return result;
}

// Replaces the original node by the node with the edited bodies. After an error the graph is unchanged.
NodeHandle freeze_view(const ViewPtr& view) {
  Graph& graph = view->graph("View.freeze");
  validate_bodies(*view, "View.freeze");
  const NodePtr made = all_or_nothing(graph, [&] {
    const NodePtr node = put_together(*view, graph);
    move_readers(graph, *view->node, successors(*view, node));
    graph.validate();
    return node;
  });
  view->end();
  return {view->outer, made};
}

}  // namespace

void bind_control_views(py::module_& m) {
  py::class_<View, ViewPtr>(m, "View",
                            "A loop or branch taken apart: bodies as graphs to edit, slots by group. freeze() puts it "
                            "together again.")
      .def_static("of", &view_of, py::arg("node"))
      .def_property_readonly("node",
                             [](const ViewPtr& v) {
                               return NodeHandle{v->outer, v->node};
                             })
      .def_property_readonly("is_loop", [](const ViewPtr& v) { return v->loop.has_value(); })
      .def_property_readonly("bodies", &bodies_of, "Graphs by name: do and test of loops; pred, then and else.")
      .def("loop_rows", &loop_rows, py::arg("kind"))
      .def("index_rows", &index_rows, py::arg("body"))
      .def("add_inv", &add_invariant, py::arg("entry"),
           "The body of a loop may read this value of the graph around, the same in each iteration: its entry there.")
      .def("add_seq", &add_sequence, py::arg("entry"), "Each iteration of a foreach gets one row of this value.")
      .def("add_input", &add_input, py::arg("body"), py::arg("entry"),
           "A body of a branch may read this value of the graph around: its entry there.")
      .def("add_output", [](const ViewPtr& v, const py::args& values) { return add_output(v, py::list(values)); })
      .def("remove_output", &remove_output, py::arg("index"),
           "A stacked output of a loop goes. Raises ValueError if something reads it.")
      .def("replacement", &replacement_of,
           "Returns the replacement that a local rule returns: new values for the outputs of the node, with its bodies "
           "as "
           "they are now. The view and the handles of its bodies end.")
      .def("freeze", &freeze_view,
           "Replaces the node by one with the bodies as they are now, and returns it. An error changes nothing. The "
           "view "
           "and the handles of its bodies end.");
}

}  // namespace hybridnet::python
