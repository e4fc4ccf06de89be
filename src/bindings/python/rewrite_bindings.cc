// Rules written in Python: patterns, the database, and the drivers that run rules on a graph.
#include <memory>

#include "graph/pattern.h"
#include "graph/rule_words.h"
#include "graph_handles.h"
#include "op_info.h"

namespace hybridnet::python {
namespace {

using Callable = std::shared_ptr<const KeptCallable>;

Callable kept(const py::object& object) { return kept_callable(object); }

// ---- rows
LocalRule local_rule(const Callable& function, const std::string& name) {
  return [function, name](Graph& graph, Node& node) {
    AcquireGil gil;
    const AccessScope scope(graph, "rewrite '" + name + "'", NodePtr(&node));
    return run_rule_code([&] {
      const py::object result =
          function->get()(GraphHandle{scope.access()}, NodeHandle{scope.access(), NodePtr(&node)});
      return replacement_from(scope.access(), node, result);
    });
  };
}

// A pass has changed the graph if it has edited it, or if it returns True.
GraphPass global_rule(const Callable& function, const Callable& requirements, const std::string& name) {
  return [function, requirements, name](Graph& graph) {
    AcquireGil gil;
    const AccessScope scope(graph, "rewrite '" + name + "'");
    const Graph::Checkpoint before = graph.num_edits_kept();
    return run_rule_code([&] {
      if (!requirements->get().is_none()) requirements->get()(GraphHandle{scope.access()});
      const py::object result = function->get()(GraphHandle{scope.access()});
      graph.validate();  // while the features that the rule attached still exist: they are detached when it ends
      return graph.edited_since(before) || result.is(py::bool_(true));
    });
  };
}

// A pattern and the function that makes the replacement of a match: (graph, node, {name: Entry, number or list}) ->
// result of a rule.
struct PatternRule {
  PatternPtr pattern;
  Callable make;
};

LocalRule pattern_rule(std::vector<PatternRule> rules, const std::string& name) {
  auto set = std::make_shared<PatternSet>();
  for (const PatternRule& rule : rules) set->add(*rule.pattern);
  return [set, rules = std::move(rules), name](Graph& graph, Node& node) {
    for (const int candidate : set->candidates(node)) {
      const PatternRule& rule = rules[static_cast<size_t>(candidate)];
      Binding binding;
      if (!match(graph, *rule.pattern, NodePtr(&node), &binding)) continue;
      AcquireGil gil;
      const AccessScope scope(graph, "rewrite '" + name + "'", NodePtr(&node));
      Replacement wanted = run_rule_code([&] {
        py::dict names;
        for (const auto& [key, operand] : binding.one) names[py::str(key)] = operand_to(scope.access(), operand);
        for (const auto& [key, operands] : binding.many) {
          py::list list;
          for (const Operand& operand : operands) list.append(operand_to(scope.access(), operand));
          names[py::str(key)] = list;
        }
        const py::object result =
            rule.make->get()(GraphHandle{scope.access()}, NodeHandle{scope.access(), NodePtr(&node)}, names);
        return replacement_from(scope.access(), node, result);
      });
      if (wanted.changed()) return wanted;
    }
    return no_change();
  };
}

std::vector<std::string> parameters_of(const std::string& op) {
  std::vector<std::string> names;
  for (const FieldInfo& field : op_registry().at(op).schema->fields()) names.push_back(field.name);
  return names;
}

Trait trait_from(const std::string& name) {
  static const std::map<std::string, Trait> traits{{"any", Trait::kAny},
                                                   {"identity", Trait::kIdentity},
                                                   {"view", Trait::kView},
                                                   {"pointwise", Trait::kPointwise},
                                                   {"commutative", Trait::kCommutative},
                                                   {"image", Trait::kImage},
                                                   {"activation", Trait::kActivation}};
  const auto found = traits.find(name);
  if (found != traits.end()) return found->second;
  raise(ErrorKind::kValue, {.input = "traits",
                            .expected = "any, identity, view, pointwise, commutative, image or activation",
                            .given = "'" + name + "'"});
}

Exactness exactness_from(const std::string& name) {
  if (name == "same") return Exactness::kBitwise;
  if (name == "rounding") return Exactness::kRounding;
  if (name == "unsafe") return Exactness::kUnsafe;
  raise(ErrorKind::kValue,
        {.input = "values", .expected = "'same', 'rounding' or 'unsafe'", .given = "'" + name + "'"});
}

// A row that is not in a database yet.
struct RowHandle {
  std::shared_ptr<Rewrite> row;
};

RowHandle make_row(const std::string& name, const py::object& local, const py::object& global,
                   const py::object& requirements, const py::list& patterns, const std::vector<std::string>& ops,
                   const std::vector<std::string>& traits, const std::set<std::string>& tags, const std::string& values,
                   const std::string& phase, bool in_place, const std::string& what) {
  auto row = std::make_shared<Rewrite>();
  row->stages = {Stage::kOwn};
  row->name = name;
  row->tags = tags;
  row->exactness = exactness_from(values);
  row->phase = phase == "cleanup" ? Phase::kCleanup : phase == "final" ? Phase::kFinal : Phase::kSweep;
  row->in_place = in_place;
  row->what = what;
  for (const std::string& op : ops) {
    const std::vector<std::string> names = operators_of(op);
    row->ops.insert(row->ops.end(), names.begin(), names.end());
  }
  for (const std::string& trait : traits) row->traits.push_back(trait_from(trait));
  if (!patterns.empty()) {
    std::vector<PatternRule> rules;
    bool any_root = false;
    for (const py::handle item : patterns) {
      const py::tuple pair = py::reinterpret_borrow<py::tuple>(item);
      rules.push_back({pair[0].cast<std::shared_ptr<Pattern>>(), kept(pair[1])});
      const std::vector<std::string> roots = roots_of(*rules.back().pattern);
      any_root = any_root || roots.empty();
      row->ops.insert(row->ops.end(), roots.begin(), roots.end());
    }
    if (any_root) row->ops.clear();
    row->local = pattern_rule(std::move(rules), name);
  } else if (!local.is_none()) {
    row->local = local_rule(kept(local), name);
  } else {
    row->pass = global_rule(kept(global), kept(requirements), name);
  }
  return {std::move(row)};
}

RowHandle make_partition(const std::string& name, const py::object& supports, const py::object& make, size_t min_nodes,
                         const std::set<std::string>& tags, const std::string& what) {
  auto row = std::make_shared<Rewrite>();
  row->stages = {Stage::kOwn};
  row->name = name;
  row->tags = tags;
  row->exactness = Exactness::kRounding;
  row->what = what;
  row->pass = partition_pass(name, supports, make, min_nodes);
  return {std::move(row)};
}

// db: name of a stage, or empty for a position in the pipeline itself.
void add_row(const RowHandle& handle, const std::string& db, double position, const std::vector<std::string>& after) {
  Rewrite row = *handle.row;
  row.stages = {db.empty() ? Stage::kOwn : stage_named(db)};
  row.position = position;
  row.after = after;
  RewriteDatabase::add({std::move(row)});
}

// ---- patterns
using MutablePattern = std::shared_ptr<Pattern>;

Pattern::Test test_from(const py::object& where) {
  if (where.is_none()) return nullptr;
  return [test = kept(where)](const Graph& graph, const Operand& operand) {
    AcquireGil gil;
    const AccessScope scope(const_cast<Graph&>(graph), "a constraint of a pattern");
    return run_rule_code([&] {
      const py::object holds = test->get()(GraphHandle{scope.access()}, operand_to(scope.access(), operand));
      const int truth = PyObject_IsTrue(holds.ptr());
      if (truth < 0) throw py::error_already_set();
      return truth != 0;
    });
  };
}

MutablePattern pattern_of(Pattern::Kind kind, const std::string& name, const py::object& where) {
  auto pattern = std::make_shared<Pattern>();
  pattern->kind = kind;
  pattern->name = name;
  pattern->where = test_from(where);
  return pattern;
}

std::vector<PatternPtr> pattern_list(const std::vector<MutablePattern>& patterns) {
  return {patterns.begin(), patterns.end()};
}

void bind_patterns(py::module_& m) {
  py::class_<Pattern, MutablePattern>(m, "Pattern", "The pattern of a rule, made by hybridnet.rewrite.P.")
      .def_static("any", [](const std::string& name,
                            const py::object& where) { return pattern_of(Pattern::Kind::kAny, name, where); })
      .def_static("rest", [](const std::string& name) { return pattern_of(Pattern::Kind::kRest, name, py::none()); })
      .def_static("number",
                  [](const std::string& name, const py::object& value, double tolerance, const py::object& where) {
                    MutablePattern pattern = pattern_of(Pattern::Kind::kNumber, name, where);
                    if (!value.is_none()) pattern->value = value.cast<double>();
                    pattern->tolerance = tolerance;
                    return pattern;
                  })
      .def_static("one_of",
                  [](const std::vector<MutablePattern>& alternatives) {
                    MutablePattern pattern = pattern_of(Pattern::Kind::kOneOf, "", py::none());
                    pattern->inputs = pattern_list(alternatives);
                    return pattern;
                  })
      .def_static("operator", [](const std::string& op, const std::vector<MutablePattern>& inputs,
                                 const py::dict& params, const std::string& name, bool shared,
                                 const py::object& where) {
        auto pattern = std::make_shared<Pattern>(*Pattern::of_operator(op, pattern_list(inputs)));
        for (const auto& [key, value] : params) {
          const std::string field = key.cast<std::string>();
          if (pattern->op != nullptr && pattern->op->schema->find(field) < 0)
            raise(ErrorKind::kParam,
                  {.op = pattern->op->name, .input = field, .message = "the operator has no parameter of this name"});
          pattern->params.emplace_back(field, to_attr_value(value.ptr(), field.c_str()));
        }
        pattern->name = name;
        pattern->shared = shared;
        pattern->where = test_from(where);
        return pattern;
      });
}

// ---- drivers
template <typename Run>
bool run_on(const GraphHandle& handle, const Run& run) {
  Graph& graph = handle.access->get("rewriting");
  ReleaseGil release(false);
  return run(graph);
}

std::vector<const Rewrite*> rows_from(const std::vector<RowHandle>& handles) {
  std::vector<const Rewrite*> rows;
  for (const RowHandle& handle : handles) rows.push_back(handle.row.get());
  return rows;
}

// Returns the lines of a report as dicts.
py::list lines_of(const PassReport& report) {
  py::list lines;
  for (const PassReport::Line& line : report.lines()) {
    py::dict row;
    row["name"] = line.name;
    row["stage"] = line.stage;
    row["tried"] = line.tried;
    row["fired"] = line.fired;
    row["failed"] = line.failed;
    row["rejected"] = line.rejected;
    row["made"] = line.made;
    row["dropped"] = line.dropped;
    row["microseconds"] = line.microseconds;
    lines.append(row);
  }
  return lines;
}

// A checkpoint that is released in any case: a rule may stop the program.
struct OpenCheckpoint {
  explicit OpenCheckpoint(Graph& g) : graph(g), at(g.checkpoint()) {}
  ~OpenCheckpoint() { graph.release(at); }
  OpenCheckpoint(const OpenCheckpoint&) = delete;
  Graph& graph;
  const Graph::Checkpoint at;
};

template <typename Run>
py::tuple reported(const GraphHandle& handle, const Query& query, const Run& run) {
  PassReport report;
  bool changed = false;
  {
    const PipelineScope scope({.query = QueryScope::applied_to(query), .report = &report});
    changed = run_on(handle, run);
  }
  return py::make_tuple(changed, lines_of(report), report.warnings());
}

// Reports each change of a graph to Python: name of the rewrite, place, text of the graph before and after.
class Tracer final : public RewriteObserver {
 public:
  explicit Tracer(const py::object& note) : note_(kept(note)) {}
  std::unique_ptr<Watch> watch(const Graph& graph) override { return std::make_unique<Texts>(*this, graph); }
  void enter() { scope_ = std::make_unique<ObserverScope>(*this); }
  void exit() { scope_.reset(); }

 private:
  class Texts final : public Watch {
   public:
    Texts(const Tracer& tracer, const Graph& graph) : tracer_(tracer), graph_(graph), text_(graph.text()) {}
    void changed(const Rewrite& rewrite) override {
      std::string now = graph_.text();
      AcquireGil gil;
      run_rule_code([&] { tracer_.note_->get()(rewrite.name, PipelineScope::current().place, text_, now); });
      text_ = std::move(now);
    }

   private:
    const Tracer& tracer_;
    const Graph& graph_;
    std::string text_;
  };

  Callable note_;
  std::unique_ptr<ObserverScope> scope_;
};

// mx.rewrite.scope(): Python enters and leaves it on one thread.
class PythonQueryScope {
 public:
  explicit PythonQueryScope(std::string query) : query_(std::move(query)) {
    RewriteDatabase::current()->check(Query::parse(query_), "scope");
  }
  void enter() { scope_ = std::make_unique<QueryScope>(Query::parse(query_)); }
  void exit() { scope_.reset(); }

 private:
  std::string query_;
  std::unique_ptr<QueryScope> scope_;
};

void bind_drivers(py::module_& m) {
  m.def("run_to_equilibrium", [](const GraphHandle& graph, const std::vector<RowHandle>& rows) {
    return reported(graph, Query::parse(""), [&](Graph& g) { return run_to_equilibrium(g, rows_from(rows)); });
  });
  m.def("visit_once", [](const GraphHandle& graph, const std::vector<RowHandle>& rows, const std::string& order,
                         bool ignore_new, uint64_t seed) {
    const VisitOrder chosen = order == "random"    ? VisitOrder::kRandom
                              : order == "readers" ? VisitOrder::kReadersFirst
                                                   : VisitOrder::kProducersFirst;
    return reported(graph, Query::parse(""), [&](Graph& g) {
      return visit_once(g, rows_from(rows), {.order = chosen, .ignore_new = ignore_new, .seed = seed});
    });
  });
  m.def("run_row", [](const GraphHandle& graph, const RowHandle& row) {
    return reported(graph, Query::parse(""), [&](Graph& g) { return run_rewrite(g, *row.row); });
  });
  m.def("run_query", [](const GraphHandle& graph, const std::string& passes, double first, double end) {
    const Query query = Query::parse(passes);
    RewriteDatabase::current()->check(query, "passes");
    return reported(graph, query, [&](Graph& g) {
      const OpenCheckpoint before(g);
      run_pipeline(g, {first, end});
      return g.edited_since(before.at);
    });
  });
  py::class_<PythonQueryScope>(m, "QueryScope")
      .def(py::init<std::string>())
      .def("enter", &PythonQueryScope::enter)
      .def("exit", &PythonQueryScope::exit);
  py::class_<Tracer>(m, "Tracer").def(py::init<py::object>()).def("enter", &Tracer::enter).def("exit", &Tracer::exit);
  m.def("query_text", [](const std::string& text) { return Query::parse(text).text(); });
}

void bind_rows(py::module_& m) {
  py::class_<RowHandle>(m, "Row", "A rewrite that drivers can run and databases can hold.")
      .def_property_readonly("name", [](const RowHandle& h) { return h.row->name; })
      .def_property_readonly("ops", [](const RowHandle& h) { return h.row->ops; })
      .def_property(
          "in_place", [](const RowHandle& h) { return h.row->in_place; },
          [](const RowHandle& h, bool in_place) { h.row->in_place = in_place; });
  m.def("make_row", &make_row, py::arg("name"), py::kw_only(), py::arg("local") = py::none(),
        py::arg("global_") = py::none(), py::arg("requirements") = py::none(), py::arg("patterns") = py::list(),
        py::arg("ops") = std::vector<std::string>(), py::arg("traits") = std::vector<std::string>(),
        py::arg("tags") = std::set<std::string>(), py::arg("values") = "same", py::arg("phase") = "",
        py::arg("in_place") = false, py::arg("what") = "");
  m.def("make_partition", &make_partition, py::arg("name"), py::arg("supports"), py::arg("make"), py::arg("min_nodes"),
        py::arg("tags"), py::arg("what"));
  m.def("convex_sets", &convex_sets_of, py::arg("graph"), py::arg("supports"));
  m.def("own_row", [](const std::string& name) {
    return RowHandle{std::make_shared<Rewrite>(RewriteDatabase::current()->at(name))};
  });
  m.def("operators_of", &operators_of);
  m.def("parameters_of", &parameters_of);
  m.def("add_row", &add_row, py::arg("row"), py::arg("db"), py::arg("position"), py::arg("after"));
  m.def("remove_row", [](const std::string& name) { RewriteDatabase::remove(name); });
  m.def("rewrite_generation", [] { return RewriteDatabase::current()->generation(); });
}

}  // namespace

void bind_rewrites(py::module_& m) {
  py::module_ sub = m.def_submodule("rewrite", "Graphs, patterns and rules for hybridnet.rewrite.");
  bind_graph_handles(sub);
  bind_control_views(sub);
  bind_patterns(sub);
  bind_rows(sub);
  bind_drivers(sub);
}

}  // namespace hybridnet::python
