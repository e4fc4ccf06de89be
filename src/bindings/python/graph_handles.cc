// Graph, Node and Entry of mx.rewrite.
#include "graph_handles.h"

#include <algorithm>
#include <cstring>

#include "graph/drawing.h"
#include "graph/notation.h"
#include "graph/pattern.h"
#include "hybridnet/imperative.h"
#include "op_info.h"
#include "passes/control/size_questions.h"
#include "plan/compilation.h"

namespace hybridnet::python {
namespace {

[[noreturn]] void throw_foreign(const char* what) {
  raise(ErrorKind::kValue, {.input = what,
                            .message = "it belongs to another graph",
                            .fix = "use nodes of this graph, or the results of graph.add()"});
}

// ---- reading
const Node& checked_node(const NodeHandle& handle, const char* use) {
  if (!handle.access->get(use).contains(handle.node.get()))
    raise(ErrorKind::kValue, {.node = handle.node->name,
                              .message = std::string(use) + " of a node that is no longer in the graph",
                              .fix = "ask `node in graph` first: a replacement drops nodes without readers"});
  return *handle.node;
}

EntryHandle entry_at(const AccessPtr& access, const NodeEntry& entry) { return {access, entry}; }

py::list entries(const AccessPtr& access, const std::vector<NodeEntry>& list) {
  py::list result;
  for (const NodeEntry& entry : list) result.append(entry_at(access, entry));
  return result;
}

py::list nodes_of(const AccessPtr& access, const std::vector<Node*>& list) {
  py::list result;
  for (Node* node : list) result.append(NodeHandle{access, NodePtr(node)});
  return result;
}

py::list outputs_of(const NodeHandle& handle) {
  checked_node(handle, "Node.outputs");
  py::list result;
  for (int i = 0; i < handle.node->num_outputs(); ++i)
    result.append(entry_at(handle.access, {handle.node, static_cast<uint32_t>(i)}));
  return result;
}

py::object op_name(const NodeHandle& handle) {
  const Node& node = checked_node(handle, "Node.op");
  return node.is_variable() ? py::object(py::none()) : py::object(py::str(node.op->name));
}

std::optional<double> flops_of(const NodeHandle& handle) {
  const Node& node = checked_node(handle, "Node.flops");
  if (node.is_variable()) return 0.0;
  std::vector<TensorSpec> in;
  for (const NodeEntry& entry : node.inputs) in.push_back(entry.node->specs[entry.index]);
  const auto is_known = [](const TensorSpec& spec) { return spec.shape.known(); };
  if (!std::all_of(in.begin(), in.end(), is_known) || !std::all_of(node.specs.begin(), node.specs.end(), is_known))
    return {};
  return node.op->flops(node.params->data(), in, node.specs);
}

py::dict params_of(const NodeHandle& handle) {
  const Node& node = checked_node(handle, "Node.params");
  py::dict result;
  if (node.is_variable()) return result;
  const auto& fields = node.op->schema->fields();
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].hidden) continue;
    const AttrValue value = node.op->schema->get(node.params->data(), static_cast<int>(i));
    result[py::str(fields[i].name)] = py::reinterpret_steal<py::object>(from_attr_value(value).release());
  }
  return result;
}

py::object value_of(const NodeHandle& handle) {
  const Node& node = checked_node(handle, "Node.value");
  if (!node.constant) return py::none();
  return py::cast(NDArray(Ref<ArrayImpl>(static_cast<ArrayImpl*>(node.constant.get()))));
}

py::list clients_of(const GraphHandle& handle, const py::object& object) {
  const Graph& graph = handle.access->get("Graph.clients");
  const NodeEntry entry = entry_from(handle.access, object, "entry");
  py::list result;
  for (const Client& client : graph.clients(entry)) {
    py::object who = client.kind == Client::Kind::kNode
                         ? py::cast(NodeHandle{handle.access, NodePtr(client.node)})
                         : py::object(py::str(client.kind == Client::Kind::kOutput ? "output" : "state"));
    result.append(py::make_tuple(std::move(who), client.index));
  }
  return result;
}

std::string describe(const NodeEntry& entry, const Graph& graph) {
  const std::string name =
      entry.node->is_variable() ? "'" + entry.node->name + "'" : entry.node->op->name + " '" + entry.node->name + "'";
  return name + (entry.node->num_outputs() > 1 ? " output " + std::to_string(entry.index) : std::string()) + ": " +
         graph.spec(entry).str();
}

// ---- editing
ParamsPtr params_from(const Op& op, const py::kwargs& given, size_t num_inputs) {
  std::vector<std::pair<std::string, AttrValue>> values;
  for (const auto& [key, value] : given)
    values.emplace_back(key.cast<std::string>(), to_attr_value(value.ptr(), "parameter"));
  if (!op.count_param.empty() && !given.contains(op.count_param.c_str()))
    values.emplace_back(op.count_param, AttrValue(static_cast<int64_t>(num_inputs)));
  return op.schema->parse(values, op.name);
}

NodePtr origin_from(const AccessPtr& access, const py::object& like) {
  if (like.is_none()) return access->origin;
  if (!py::isinstance<NodeHandle>(like))
    raise(ErrorKind::kType, {.input = "like", .expected = "a Node", .given = short_repr(like.ptr())});
  return like.cast<const NodeHandle&>().node;
}

// Copies the memory formats of the original node's outputs to the new node.
void take_formats(Graph& graph, const NodePtr& made, const NodePtr& origin) {
  if (!origin || !graph.contains(origin.get()) || made->specs.size() != origin->specs.size()) return;
  for (uint32_t i = 0; i < made->specs.size(); ++i)
    if (made->specs[i].shape.ndim() == origin->specs[i].shape.ndim())
      graph.set_format({made, i}, graph.format({origin, i}));
}

NodeHandle add(const GraphHandle& handle, const std::string& op_name, const py::args& inputs, const py::object& like,
               const py::object& name, const py::kwargs& params) {
  const AccessPtr& access = handle.access;
  Graph& graph = access->get("Graph.add");
  const NodePtr origin = origin_from(access, like);
  NodePtr made;
  if (const Arithmetic* arithmetic = find_arithmetic(op_name); arithmetic != nullptr && inputs.size() == 2) {
    made = add_arithmetic(graph, *arithmetic, operand_from(access, inputs[0], "input 0"),
                          operand_from(access, inputs[1], "input 1"), origin.get());
  } else {
    const Op& op = op_registry().at(op_name);
    std::vector<NodeEntry> in;
    for (size_t i = 0; i < inputs.size(); ++i)
      in.push_back(entry_from(access, inputs[i], ("input " + std::to_string(i)).c_str()));
    ParamsPtr parsed = params_from(op, params, in.size());
    if ((!op.variadic || op.num_inputs_) && static_cast<int>(in.size()) != op.num_inputs(parsed->data()))
      raise(ErrorKind::kType, {.op = op.name,
                               .expected = std::to_string(op.num_inputs(parsed->data())) + " inputs",
                               .given = std::to_string(in.size())});
    made = graph.add(op, std::move(parsed), std::move(in), origin.get());
  }
  if (!name.is_none()) made->name = name.cast<std::string>();
  take_formats(graph, made, origin);
  return {access, made};
}

EntryHandle constant(const GraphHandle& handle, const NDArray& array) {
  Graph& graph = handle.access->get("Graph.constant");
  if (!array) raise(ErrorKind::kType, {.input = "array", .expected = "an NDArray", .given = "None"});
  const NDArray own = NDArray::empty(array.spec());  // a copy: later writes to the user's array must not change it
  array.copy_to(own.data());
  return {handle.access, {graph.add_constant(Ref<Object>(own.impl()), own.spec()), 0}};
}

void replace(const GraphHandle& handle, const py::object& old, const py::object& now) {
  Graph& graph = handle.access->get("Graph.replace");
  const NodeEntry before = entry_from(handle.access, old, "old"), after = entry_from(handle.access, now, "new");
  const Graph::Checkpoint start = graph.checkpoint();
  try {
    graph.replace(before, after);
  } catch (...) {  // some readers may have moved already
    graph.revert(start);
    graph.release(start);
    throw;
  }
  graph.release(start);
}

void replace_validate(const GraphHandle& handle, const py::object& pairs, const py::object& remove,
                      const std::string& reason) {
  Graph& graph = handle.access->get("Graph.replace_validate");
  Graph::Pairs wanted;
  const py::object items = PyDict_Check(pairs.ptr()) ? py::object(pairs.attr("items")()) : pairs;
  for (const py::handle item : py::iter(items)) {
    const py::tuple pair = py::tuple(py::reinterpret_borrow<py::object>(item));
    if (pair.size() != 2)
      raise(ErrorKind::kValue, {.input = "pairs", .expected = "(old, new)", .given = short_repr(item.ptr())});
    wanted.emplace_back(entry_from(handle.access, pair[0], "old"), entry_from(handle.access, pair[1], "new"));
  }
  std::vector<Node*> doomed;
  for (const py::handle item : py::iter(remove)) {
    const auto& node = item.cast<const NodeHandle&>();
    checked_node(node, "remove");
    doomed.push_back(node.node.get());
  }
  std::string why;
  std::string before = graph.set_reason(reason.empty() ? graph.reason() : reason);
  const bool done = graph.replace_validate(wanted, doomed, &why);
  graph.set_reason(std::move(before));
  if (!done) raise(ErrorKind::kValue, {.message = "the replacement was undone", .because = why});
}

void set_input(const GraphHandle& handle, const NodeHandle& node, int index, const py::object& entry) {
  Graph& graph = handle.access->get("Graph.set_input");
  checked_node(node, "Graph.set_input");
  const NodeEntry now = entry_from(handle.access, entry, "entry");
  if (index < 0 || index >= static_cast<int>(node.node->inputs.size()))
    raise(ErrorKind::kIndex, {.node = node.node->name,
                              .input = "index",
                              .expected = "below " + std::to_string(node.node->inputs.size()),
                              .given = std::to_string(index)});
  const NodeEntry& before = node.node->inputs[static_cast<size_t>(index)];
  if (!(graph.spec(before) == graph.spec(now)) || graph.format(before) != graph.format(now))
    raise(ErrorKind::kShape, {.node = node.node->name,
                              .expected = graph.spec(before).str(),
                              .given = graph.spec(now).str(),
                              .message = "an input may be exchanged for one of the same spec only"});
  graph.set_input(*node.node, index, now);
}

void set_output(const GraphHandle& handle, int index, const py::object& entry) {
  Graph& graph = handle.access->get("Graph.set_output");
  const NodeEntry now = entry_from(handle.access, entry, "entry");
  if (index < 0 || index >= static_cast<int>(graph.outputs().size()))
    raise(ErrorKind::kIndex, {.input = "index",
                              .expected = "below " + std::to_string(graph.outputs().size()),
                              .given = std::to_string(index)});
  const NodeEntry& before = graph.outputs()[static_cast<size_t>(index)];
  if (!(graph.spec(before) == graph.spec(now)) || graph.format(before) != graph.format(now))
    raise(ErrorKind::kShape, {.input = "output " + std::to_string(index),
                              .expected = graph.spec(before).str(),
                              .given = graph.spec(now).str(),
                              .message = "an output may be exchanged for one of the same spec only"});
  graph.set_output(index, now);
}

size_t checkpoint(const GraphHandle& handle) {
  const Graph::Checkpoint made = handle.access->get("Graph.checkpoint").checkpoint();
  handle.access->checkpoints.push_back(made);
  return handle.access->checkpoints.size() - 1;
}

// Undoes all edits since an open checkpoint. It stays open, later checkpoints end.
void revert(const GraphHandle& handle, size_t number) {
  Graph& graph = handle.access->get("Graph.revert");
  std::vector<Graph::Checkpoint>& open = handle.access->checkpoints;
  if (number >= open.size())
    raise(ErrorKind::kValue,
          {.input = "checkpoint",
           .message = "it is not open: it was released, or a revert to an earlier checkpoint ended it"});
  graph.revert(open[number]);
  for (; open.size() > number + 1; open.pop_back()) graph.release(open.back());
}

void release(const GraphHandle& handle, size_t number) {
  Graph& graph = handle.access->get("Graph.release");
  std::vector<Graph::Checkpoint>& open = handle.access->checkpoints;
  if (number >= open.size()) raise(ErrorKind::kValue, {.input = "checkpoint", .message = "it is not open"});
  for (; open.size() > number; open.pop_back()) graph.release(open.back());
}

// ---- making and freezing
class SymbolFreezer {
 public:
  explicit SymbolFreezer(const Graph& graph) : graph_(graph) {}
  Symbol run() {
    for (Node* node : graph_.order()) {
      std::vector<NodeEntry> inputs;
      for (const NodeEntry& input : node->inputs) inputs.push_back(mapped(input));
      copies_[node] = copy_of(*node, std::move(inputs));
    }
    Symbol symbol;
    for (const NodeEntry& output : graph_.outputs()) symbol.outputs.push_back(mapped(output));
    return symbol;
  }

 private:
  NodeEntry mapped(const NodeEntry& entry) const { return {copies_.at(entry.node.get()), entry.index}; }
  const Graph& graph_;
  std::unordered_map<const Node*, NodePtr> copies_;
};

GraphHandle graph_of(const Symbol& symbol, const py::dict& known, bool train) {
  std::map<std::string, TensorSpec> specs;
  for (const auto& [name, pair] : known) {
    const py::tuple t = py::reinterpret_borrow<py::tuple>(pair);
    specs[name.cast<std::string>()] = {t[0].cast<Shape>(), t[1].cast<DType>()};
  }
  const Symbol::Specs found = symbol.infer(specs, false, train);
  const std::vector<std::string> arguments = symbol.list_arguments(), states = symbol.list_auxiliary_states();
  for (size_t i = 0; i < arguments.size(); ++i) specs[arguments[i]] = found.arguments[i];
  for (size_t i = 0; i < states.size(); ++i) specs[states[i]] = found.auxiliaries[i];
  Graph graph(train);
  SpecMap all;
  EntryMap map;
  for (const NodePtr& variable : symbol.list_inputs()) {
    if (variable->constant) continue;
    const TensorSpec& spec = specs.at(variable->name);
    if (!spec.known())
      throw ShapeError({.input = variable->name,
                        .message = "its shape or dtype is not known: " + spec.str(),
                        .fix = "give shapes={'" + variable->name + "': (...)}"});
    all[{variable, 0}] = spec;
    const NodePtr input = graph.add_input(variable->name, spec);
    input->attrs = variable->attrs;
    map[{variable, 0}] = {input, 0};
  }
  if (!infer_specs(symbol.outputs, all, train))
    throw ShapeError({.message = "the shapes given do not determine every value of the graph",
                      .fix = "give more of them: shapes={name: shape}"});
  for (const NodeEntry& clone : graph.import(symbol.outputs, &all, map)) graph.add_output(clone);
  return owned_handle(std::move(graph));
}

py::tuple clone(const GraphHandle& handle) {
  const Graph& graph = handle.access->get("Graph.clone");
  EntryMap map;
  const GraphHandle copy = owned_handle(copy_of(graph, false, &map));
  py::dict equivalent;
  for (Node* node : graph.order()) {
    for (int i = 0; i < node->num_outputs(); ++i) {
      const NodeEntry entry{NodePtr(node), static_cast<uint32_t>(i)};
      if (const auto found = map.find(entry); found != map.end())
        equivalent[py::cast(entry_at(handle.access, entry))] = entry_at(copy.access, found->second);
    }
  }
  return py::make_tuple(copy, equivalent);
}

// ---- texts
std::string bytes_of(const Object& array) {
  const NDArray values(Ref<ArrayImpl>(static_cast<ArrayImpl*>(&const_cast<Object&>(array))));
  std::string bytes(static_cast<size_t>(values.spec().bytes()), '\0');
  values.copy_to(bytes.data());
  return bytes;
}

Ref<Object> constant_of(const TensorSpec& spec, std::string_view bytes) {
  const NDArray array = NDArray::empty(spec);
  std::memcpy(array.data(), bytes.data(), bytes.size());
  return Ref<Object>(array.impl());
}

std::string text_of(const GraphHandle& handle, bool values) {
  const Graph& graph = handle.access->get("Graph.text");
  return values ? write_notation(graph, bytes_of) : graph.text();
}

// ---- interrupts
class RuleInterrupted final : public StoppedByPython {
 public:
  explicit RuleInterrupted(py::error_already_set error) : error_(std::move(error)) {}
  void restore() const noexcept override { py::error_already_set(error_).restore(); }

 private:
  py::error_already_set error_;
};

// ---- Python classes
void bind_entry(py::module_& m) {
  py::class_<EntryHandle>(m, "Entry", "One output of a node of a graph that is being rewritten.")
      .def_property_readonly("node",
                             [](const EntryHandle& h) {
                               return NodeHandle{h.access, h.entry.node};
                             })
      .def_property_readonly("index", [](const EntryHandle& h) { return h.entry.index; })
      .def_property_readonly("graph", [](const EntryHandle& h) { return GraphHandle{h.access}; })
      .def_property_readonly("shape",
                             [](const EntryHandle& h) {
                               h.access->get("Entry.shape");
                               const Shape& shape = h.entry.node->specs[h.entry.index].shape;
                               note_shape_read(shape);
                               return shape;
                             })
      .def_property_readonly("dtype",
                             [](const EntryHandle& h) {
                               h.access->get("Entry.dtype");
                               return h.entry.node->specs[h.entry.index].dtype;
                             })
      .def_property_readonly(
          "number",
          [](const EntryHandle& h) {
            h.access->get("Entry.number");
            return number_of({h.entry, {}});
          },
          "The number that fills the array, where an operator such as zeros or full made it; else None.")
      .def("__eq__",
           [](const EntryHandle& a, const py::object& b) {
             return py::isinstance<EntryHandle>(b) && a == b.cast<const EntryHandle&>();
           })
      .def("__hash__", [](const EntryHandle& h) { return NodeEntryHash()(h.entry); })
      .def("__repr__", [](const EntryHandle& h) {
        return h.access->graph ? "<Entry " + describe(h.entry, *h.access->graph) + ">"
                               : std::string("<Entry of a graph that is gone>");
      });
}

void bind_node(py::module_& m) {
  py::class_<NodeHandle>(m, "Node",
                         "A use of an operator, or an input or constant, of a graph that is being rewritten.")
      .def_property_readonly("op", &op_name, "Name of the operator; None for inputs and constants.")
      .def_property_readonly("name", [](const NodeHandle& h) { return checked_node(h, "Node.name").name; })
      .def_property_readonly(
          "block", [](const NodeHandle& h) { return checked_node(h, "Node.block").block; },
          "Path of the block that made it.")
      .def_property_readonly(
          "where",
          [](const NodeHandle& h) {
            const Node& node = checked_node(h, "Node.where");
            return node.where.known() ? py::object(py::str(node.where.str())) : py::object(py::none());
          },
          "Python file and line that made it, or None.")
      .def_property_readonly("params", &params_of, "Parameters of the operator by name.")
      .def_property_readonly(
          "attrs", [](const NodeHandle& h) { return checked_node(h, "Node.attrs").attrs; },
          "A copy of the attributes that are no parameters.")
      .def_property_readonly(
          "inputs", [](const NodeHandle& h) { return entries(h.access, checked_node(h, "Node.inputs").inputs); })
      .def_property_readonly("outputs", &outputs_of, "Its entries, hidden outputs included.")
      .def_property_readonly(
          "operands",
          [](const NodeHandle& h) {
            py::list result;
            for (const Operand& operand : operands_of(checked_node(h, "Node.operands")))
              result.append(operand_to(h.access, operand));
            return result;
          },
          "Inputs in order; for arithmetic with a number, the number stands among them as a float.")
      .def_property_readonly("is_input",
                             [](const NodeHandle& h) {
                               checked_node(h, "Node.is_input");
                               return h.access->graph->input_index(h.node.get()) >= 0;
                             })
      .def_property_readonly(
          "is_constant", [](const NodeHandle& h) { return checked_node(h, "Node.is_constant").constant != nullptr; })
      .def_property_readonly("value", &value_of, "The array that a constant holds; None for other nodes.")
      .def_property_readonly(
          "bodies",
          [](const NodeHandle& h) {
            const Node& node = checked_node(h, "Node.bodies");
            return node.is_variable() ? std::vector<std::string>() : std::vector<std::string>(node.op->subgraph_names);
          },
          "Names of the bodies of a loop or branch.")
      .def_property_readonly("flops", &flops_of,
                             "Floating-point operations in prediction, a multiply-add being two, without its bodies; "
                             "None where the operator does not say, or a shape is not known.")
      .def_property_readonly("graph", [](const NodeHandle& h) { return GraphHandle{h.access}; })
      .def("__getitem__",
           [](const NodeHandle& h, int i) {
             const Node& node = checked_node(h, "Node[i]");
             const int n = node.num_outputs();
             if (i < -n || i >= n)
               raise(ErrorKind::kIndex,
                     {.node = node.name, .expected = std::to_string(n) + " outputs", .given = std::to_string(i)});
             return EntryHandle{h.access, {h.node, static_cast<uint32_t>(i < 0 ? i + n : i)}};
           })
      .def("__len__", [](const NodeHandle& h) { return checked_node(h, "len(Node)").num_outputs(); })
      .def("__eq__",
           [](const NodeHandle& a, const py::object& b) {
             return py::isinstance<NodeHandle>(b) && a == b.cast<const NodeHandle&>();
           })
      .def("__hash__", [](const NodeHandle& h) { return std::hash<const void*>()(h.node.get()); })
      .def("__repr__", [](const NodeHandle& h) {
        return "<Node " +
               (h.node->is_variable() ? std::string(h.node->constant ? "constant" : "input") : h.node->op->name) +
               " '" + h.node->name + "'>";
      });
}

void bind_graph(py::module_& m) {
  py::class_<GraphHandle>(m, "Graph", "The mutable owner of nodes while they are rewritten.")
      .def_static("of_symbol", &graph_of, py::arg("symbol"), py::arg("known"), py::arg("train"))
      .def_property_readonly("inputs",
                             [](const GraphHandle& h) {
                               std::vector<NodeEntry> list;
                               for (const NodePtr& node : h.access->get("Graph.inputs").inputs())
                                 list.push_back({node, 0});
                               return entries(h.access, list);
                             })
      .def_property_readonly(
          "outputs", [](const GraphHandle& h) { return entries(h.access, h.access->get("Graph.outputs").outputs()); })
      .def_property_readonly(
          "nodes", [](const GraphHandle& h) { return nodes_of(h.access, h.access->get("Graph.nodes").order()); },
          "All nodes, each behind its producers.")
      .def_property_readonly(
          "schedule",
          [](const GraphHandle& h) { return nodes_of(h.access, h.access->get("Graph.schedule").schedule()); },
          "All nodes in the order in which they will run.")
      .def_property_readonly("train", [](const GraphHandle& h) { return h.access->get("Graph.train").train(); })
      .def_property_readonly("reason", [](const GraphHandle& h) { return h.access->get("Graph.reason").reason(); })
      .def("__len__", [](const GraphHandle& h) { return h.access->get("len(Graph)").num_nodes(); })
      .def("__contains__", [](const GraphHandle& h,
                              const NodeHandle& node) { return h.access->get("in Graph").contains(node.node.get()); })
      .def("__eq__",
           [](const GraphHandle& a, const py::object& b) {
             return py::isinstance<GraphHandle>(b) && a.access == b.cast<const GraphHandle&>().access;
           })
      .def("__hash__", [](const GraphHandle& h) { return std::hash<const void*>()(h.access.get()); })
      .def("clients", &clients_of, py::arg("entry"))
      .def("add", &add, py::arg("op"), py::kw_only(), py::arg("like") = py::none(), py::arg("name") = py::none())
      .def("constant", &constant, py::arg("array"))
      .def("replace", &replace, py::arg("old"), py::arg("new"))
      .def("replace_validate", &replace_validate, py::arg("pairs"), py::arg("remove") = py::tuple(),
           py::arg("reason") = "")
      .def("set_input", &set_input, py::arg("node"), py::arg("index"), py::arg("entry"))
      .def("set_output", &set_output, py::arg("index"), py::arg("entry"))
      .def("remove_unused", [](const GraphHandle& h) { return h.access->get("Graph.remove_unused").remove_unused(); })
      .def("validate", [](const GraphHandle& h) { h.access->get("Graph.validate").validate(); })
      .def("checkpoint", &checkpoint)
      .def("revert", &revert, py::arg("checkpoint"))
      .def("release", &release, py::arg("checkpoint"))
      .def("attach", &attach_feature, py::arg("feature"))
      .def("detach", &detach_feature, py::arg("feature"))
      .def_property_readonly("features", &attached_features)
      .def("clone", &clone)
      .def("symbol", [](const GraphHandle& h) { return SymbolFreezer(h.access->get("Graph.symbol")).run(); })
      .def(
          "fingerprint",
          [](const GraphHandle& h) { return structure_hash(h.access->get("Graph.fingerprint"), bytes_of); },
          "A number that graphs of one structure share, bodies and values of constants included; names do not count.")
      .def("text", &text_of, py::arg("values") = true,
           "The graph as text that parse() reads back: a line per node, bodies of loops and branches indented.\n\n"
           "values: whether values of constants are written; without them graphs that hold constants cannot be read "
           "back.")
      .def(
          "dot", [](const GraphHandle& h) { return write_dot(h.access->get("Graph.dot")); },
          "The drawing of the graph in the language of Graphviz: a box per loop, branch and region.")
      .def_static("parse", [](const std::string& text) { return owned_handle(parse_notation(text, constant_of)); })
      .def("check", [](const GraphHandle& h) { h.access->get("Graph.check").check(); });
}

}  // namespace

Graph& GraphAccess::get(const char* use) const {
  if (graph == nullptr)
    raise(ErrorKind::kValue, {.op = use,
                              .message = "the handle was given to " + given_to + ", which is over",
                              .fix = "use handles inside the rule only; keep names or texts instead"});
  return *graph;
}

void GraphAccess::end() {
  if (graph == nullptr) return;
  for (; !checkpoints.empty(); checkpoints.pop_back()) graph->release(checkpoints.back());
  for (const std::shared_ptr<GraphFeature>& feature : std::vector<std::shared_ptr<GraphFeature>>(attached)) {
    try {
      graph->detach(*feature);
    } catch (const std::exception&) {
      // on_detach may raise; no caller is left to receive the error
    }
  }
  attached.clear();
  graph = nullptr;
  origin = {};
}

AccessScope::AccessScope(Graph& graph, std::string given_to, NodePtr origin)
    : access_(std::make_shared<GraphAccess>()) {
  access_->graph = &graph;
  access_->given_to = std::move(given_to);
  access_->origin = std::move(origin);
}

NodeEntry entry_from(const AccessPtr& access, const py::handle& object, const char* what) {
  NodeEntry entry;
  const GraphAccess* from = nullptr;
  if (py::isinstance<EntryHandle>(object)) {
    const auto& handle = object.cast<const EntryHandle&>();
    entry = handle.entry, from = handle.access.get();
  } else if (py::isinstance<NodeHandle>(object)) {
    const auto& handle = object.cast<const NodeHandle&>();
    const int visible = handle.node->num_visible_outputs();
    if (visible != 1)
      raise(ErrorKind::kValue, {.node = handle.node->name,
                                .input = what,
                                .expected = "one output",
                                .given = std::to_string(visible) + " outputs",
                                .fix = "say which: node[0]"});
    entry = {handle.node, 0}, from = handle.access.get();
  } else {
    raise(ErrorKind::kType,
          {.input = what, .expected = "an Entry, or a Node of one output", .given = short_repr(object.ptr())});
  }
  const Graph& graph = access->get(what);
  if (from != access.get() && !graph.contains(entry.node.get())) throw_foreign(what);
  if (!graph.contains(entry.node.get()))
    raise(ErrorKind::kValue, {.node = entry.node->name,
                              .input = what,
                              .message = "the node is no longer in the graph",
                              .fix = "a replacement drops nodes without readers; make a new one"});
  return entry;
}

Operand operand_from(const AccessPtr& access, const py::handle& object, const char* what) {
  if (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr())) return {{}, object.cast<double>()};
  return {entry_from(access, object, what), {}};
}

py::object operand_to(const AccessPtr& access, const Operand& operand) {
  if (operand.number) return py::float_(*operand.number);
  return py::cast(EntryHandle{access, operand.entry});
}

Replacement replacement_from(const AccessPtr& access, const Node& node, const py::object& result) {
  Replacement wanted;
  if (result.is_none() || result.is(py::bool_(false))) return wanted;
  const auto outputs = static_cast<size_t>(node.num_outputs());
  if (PyDict_Check(result.ptr())) {
    for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(result)) {
      if (PyUnicode_Check(key.ptr()) && key.cast<std::string>() == "remove") {
        for (const py::handle item : py::iter(value)) {
          if (!py::isinstance<NodeHandle>(item))
            raise(ErrorKind::kType, {.input = "remove", .expected = "Nodes", .given = short_repr(item.ptr())});
          wanted.remove.push_back(item.cast<const NodeHandle&>().node.get());
        }
        continue;
      }
      wanted.others.emplace_back(entry_from(access, key, "key of the result"),
                                 entry_from(access, value, "value of the result"));
    }
    return wanted;
  }
  if (py::isinstance<EntryHandle>(result) || py::isinstance<NodeHandle>(result)) {
    wanted.outputs.push_back(entry_from(access, result, "result"));
  } else if (PyList_Check(result.ptr()) || PyTuple_Check(result.ptr())) {
    for (const py::handle item : py::iter(result))
      wanted.outputs.push_back(item.is_none() ? NodeEntry{} : entry_from(access, item, "item of the result"));
  } else {
    raise(ErrorKind::kType, {.input = "result of the rule",
                             .expected = "None, an Entry, a list of one Entry per output, or a dict",
                             .given = short_repr(result.ptr())});
  }
  const auto visible = static_cast<size_t>(node.num_visible_outputs());
  if (wanted.outputs.size() != outputs && wanted.outputs.size() != visible)
    raise(ErrorKind::kValue, {.op = node.op->name,
                              .node = node.name,
                              .input = "result of the rule",
                              .expected = std::to_string(visible) + " entries, one per output",
                              .given = std::to_string(wanted.outputs.size())});
  wanted.outputs.resize(outputs);
  return wanted;
}

GraphHandle owned_handle(Graph graph) {
  auto access = std::make_shared<GraphAccess>();
  access->owned = std::make_unique<Graph>(std::move(graph));
  access->graph = access->owned.get();
  access->given_to = "graph";
  return {std::move(access)};
}

std::shared_ptr<const KeptCallable> kept_callable(const py::object& object) {
  return std::make_shared<const KeptCallable>(object);
}

KeptCallable::~KeptCallable() {
  if (!Py_IsInitialized()) {
    object_.release();  // the interpreter and its objects are gone
    return;
  }
  AcquireGil gil;
  object_ = py::object();
}

void rethrow_rule_error(py::error_already_set& error) {
  if (error.matches(PyExc_KeyboardInterrupt) || error.matches(PyExc_SystemExit)) throw RuleInterrupted(error);
  std::string text = py::str(error.value()).cast<std::string>();
  const std::string kind = py::str(error.type().attr("__name__")).cast<std::string>();
  std::string where;
  for (py::object place = error.trace() ? py::object(error.trace()) : py::object(py::none()); !place.is_none();
       place = place.attr("tb_next")) {
    const py::object code = place.attr("tb_frame").attr("f_code");
    where = " (" + code.attr("co_filename").cast<std::string>() + ":" +
            py::str(place.attr("tb_lineno")).cast<std::string>() + ")";
  }
  throw Error(ErrorKind::kError, {.message = kind + ": " + text + where});
}

void bind_graph_handles(py::module_& m) {
  bind_entry(m);
  bind_node(m);
  bind_graph(m);
}

}  // namespace hybridnet::python
