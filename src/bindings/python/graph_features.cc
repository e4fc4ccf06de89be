// Graph features written in Python: objects whose methods are called for each edit.
#include <algorithm>

#include "graph_handles.h"

namespace hybridnet::python {
namespace {

class PythonFeature final : public GraphFeature {
 public:
  explicit PythonFeature(const AccessPtr& access, py::object object) : access_(access), object_(std::move(object)) {}
  std::string name() const override {
    AcquireGil gil;
    return type_name(object_.get().ptr());
  }
  const py::object& object() const { return object_.get(); }
  void attached(Graph&) override { call("on_attach"); }
  void detached(Graph&) override { call("on_detach"); }
  void imported(Graph& graph, Node& node) override {
    call("on_import", [&](const AccessPtr& access) {
      return py::make_tuple(NodeHandle{access, NodePtr(&node)}, graph.reason());
    });
  }
  void pruned(Graph& graph, Node& node) override {
    call("on_prune", [&](const AccessPtr& access) {
      return py::make_tuple(NodeHandle{access, NodePtr(&node)}, graph.reason());
    });
  }
  void input_changed(Graph& graph, const Client& client, const NodeEntry& before) override {
    call("on_change_input", [&](const AccessPtr& access) {
      const NodeEntry now = client.kind == Client::Kind::kNode ? client.node->inputs[static_cast<size_t>(client.index)]
                            : client.kind == Client::Kind::kOutput
                                ? graph.outputs()[static_cast<size_t>(client.index)]
                                : graph.writebacks()[static_cast<size_t>(client.index)].value;
      const py::object who = client.kind == Client::Kind::kNode
                                 ? py::cast(NodeHandle{access, NodePtr(client.node)})
                                 : py::object(py::str(client.kind == Client::Kind::kOutput ? "output" : "state"));
      return py::make_tuple(who, client.index, EntryHandle{access, before}, EntryHandle{access, now}, graph.reason());
    });
  }
  void validate(Graph&) override { call("validate"); }
  std::vector<std::pair<Node*, Node*>> orderings(const Graph&) override {
    std::vector<std::pair<Node*, Node*>> pairs;
    const AccessPtr access = access_.lock();
    if (!access) return pairs;
    AcquireGil gil;
    run_rule_code([&] {
      if (!py::hasattr(object_.get(), "orderings")) return;
      for (const py::handle item : py::iter(object_.get().attr("orderings")(GraphHandle{access}))) {
        const py::tuple pair = py::tuple(py::reinterpret_borrow<py::object>(item));
        pairs.emplace_back(pair[0].cast<const NodeHandle&>().node.get(), pair[1].cast<const NodeHandle&>().node.get());
      }
    });
    return pairs;
  }

 private:
  void call(const char* method) {
    call(method, [](const AccessPtr&) { return py::tuple(); });
  }
  template <typename Arguments>
  void call(const char* method, const Arguments& arguments) {
    const AccessPtr access = access_.lock();
    if (!access) return;
    AcquireGil gil;
    run_rule_code([&] {
      if (py::hasattr(object_.get(), method))
        object_.get().attr(method)(GraphHandle{access}, *py::tuple(arguments(access)));
    });
  }

  const std::weak_ptr<GraphAccess> access_;
  const KeptCallable object_;
};

const PythonFeature* python_feature(const std::shared_ptr<GraphFeature>& feature) {
  return dynamic_cast<const PythonFeature*>(feature.get());
}

}  // namespace

void attach_feature(const GraphHandle& handle, const py::object& object) {
  Graph& graph = handle.access->get("Graph.attach");
  for (const std::shared_ptr<GraphFeature>& known : handle.access->attached)
    if (python_feature(known)->object().is(object))
      raise(ErrorKind::kValue, {.input = "feature",
                                .given = short_repr(object.ptr()),
                                .message = "it is attached to this graph already",
                                .fix = "attach another feature of its class"});
  auto feature = std::make_shared<PythonFeature>(handle.access, object);
  graph.attach(feature);
  handle.access->attached.push_back(std::move(feature));
}

void detach_feature(const GraphHandle& handle, const py::object& object) {
  Graph& graph = handle.access->get("Graph.detach");
  std::vector<std::shared_ptr<GraphFeature>>& attached = handle.access->attached;
  const auto found = std::find_if(attached.begin(), attached.end(),
                                  [&](const auto& f) { return python_feature(f)->object().is(object); });
  if (found == attached.end())
    raise(ErrorKind::kValue,
          {.input = "feature", .given = short_repr(object.ptr()), .message = "it is not attached to this graph"});
  const std::shared_ptr<GraphFeature> keep = *found;
  attached.erase(found);
  graph.detach(*keep);
}

py::list attached_features(const GraphHandle& handle) {
  py::list result;
  for (const std::shared_ptr<GraphFeature>& feature : handle.access->attached)
    result.append(python_feature(feature)->object());
  return result;
}

}  // namespace hybridnet::python
