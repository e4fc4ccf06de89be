// Executable graphs: CachedOp (hybridize) and Executor (bind), and the pipeline of rewrites that optimizes them.
#include <map>

#include "casters.h"
#include "graph/control/closed_body.h"
#include "hybridnet/pass.h"
#include "hybridnet/plan.h"
#include "ndarray/donated.h"
#include "passes/gradient/remat.h"
#include "plan/graph_callable.h"
#include "plan/storages.h"
#include "plan/task.h"

namespace hybridnet::python {
namespace {

std::vector<NDArray> arrays_of(const py::handle& sequence, const char* what) {
  std::vector<NDArray> arrays;
  for (const py::handle item : py::iter(sequence)) {
    if (item.is_none())
      arrays.emplace_back();
    else
      arrays.push_back(expect_array(item.ptr(), what));
  }
  return arrays;
}

// pybind11 holds these handles by its own smart pointer; the objects inside have the library's reference count.
struct CachedOpHandle {
  Ref<GraphCallable> op;
  std::vector<bool> numpy;       // per output: whether it is an array of mx.np; empty: the class of the first input
  std::vector<uint8_t> donated;  // per input: its array must not be read after a call; empty: none
};
struct ExecutorHandle {
  Ref<Executor> executor;
};

py::object wrap_output(const CachedOpHandle& handle, size_t i, NDArray array, const py::args& args) {
  if (i >= handle.numpy.size()) return args.empty() ? py::cast(std::move(array)) : wrap_like(std::move(array), args[0]);
  PyObject* result = wrap_array_as(std::move(array), handle.numpy[i] ? np_class.type : nd_class.type);
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

// The donated arguments of a call. They have no values from its beginning on, so that no other thread donates them,
// too. After a call that failed those have their values again that it has not written over.
class DonatedArguments {
 public:
  // Under the GIL.
  DonatedArguments(const std::vector<uint8_t>& donated, const py::args& args, const std::vector<NDArray>& inputs)
      : args_(args), inputs_(inputs) {
    const size_t count = std::min(donated.size(), inputs.size());  // a call may have too few arguments
    for (size_t i = 0; i < count; ++i)
      if (donated[i] != 0) taken_.push_back({i, overwrites_of(inputs[i])});
    for (const Taken& taken : taken_) array_of(args[taken.input].ptr()) = donated_array(inputs[taken.input]);
  }
  void give_back_unwritten() const {
    for (const Taken& taken : taken_)
      if (overwrites_of(inputs_[taken.input]) == taken.overwrites)
        array_of(args_[taken.input].ptr()) = inputs_[taken.input];
  }

 private:
  struct Taken {
    size_t input;
    uint64_t overwrites;
  };
  static uint64_t overwrites_of(const NDArray& array) {
    return array.impl()->chunk->overwrites.load(std::memory_order_relaxed);
  }

  const py::args& args_;
  const std::vector<NDArray>& inputs_;
  std::vector<Taken> taken_;
};

py::object call(const CachedOpHandle& handle, const py::args& args, const py::object& out,
                const std::optional<std::pair<uint64_t, uint64_t>>& key) {
  std::vector<NDArray> inputs, targets;
  inputs.reserve(args.size());
  for (size_t i = 0; i < args.size(); ++i) inputs.push_back(expect_array(args[i].ptr(), "input"));
  if (!out.is_none()) targets = is_array(out.ptr()) ? std::vector<NDArray>{array_of(out.ptr())} : arrays_of(out, "out");
  std::vector<NDArray> results;
  const DonatedArguments donated(handle.donated, args, inputs);
  try {
    ReleaseGil release(true);
    results = handle.op->call(inputs, targets, key ? std::optional(RngKey{key->first, key->second}) : std::nullopt);
  } catch (...) {
    donated.give_back_unwritten();
    throw;
  }
  if (!out.is_none()) return out;
  if (results.size() == 1) return wrap_output(handle, 0, std::move(results[0]), args);
  py::list list;
  for (size_t i = 0; i < results.size(); ++i) list.append(wrap_output(handle, i, std::move(results[i]), args));
  return list;
}

CallOptions options_from(const py::kwargs& given) {
  std::vector<std::pair<std::string, AttrValue>> options;
  for (const auto& [key, value] : given)
    options.emplace_back(key.cast<std::string>(), to_attr_value(value.ptr(), "option"));
  return CallOptions::parse(options);
}

// Attribute of a variable with a value that may change: functions read the value in every call.
const char kShared[] = "__shared__";

NodePtr variable_of(const Symbol& symbol) {
  if (symbol.outputs.size() == 1 && symbol.outputs[0].node->is_variable()) return symbol.outputs[0].node;
  raise(ErrorKind::kType, {.input = "inputs", .expected = "a variable"});
}

NodeEntry only_output(const Symbol& symbol, const char* what) {
  if (symbol.outputs.size() == 1) return symbol.outputs[0];
  raise(ErrorKind::kType, {.input = what, .expected = "a Symbol with one output"});
}

CachedOpHandle make_function(const std::vector<Symbol>& inputs, const std::vector<Symbol>& outputs,
                             const std::vector<std::pair<int, Symbol>>& updates, bool atomic,
                             const std::vector<bool>& numpy, const std::vector<uint8_t>& donated,
                             const std::vector<uint8_t>& borrowed, const py::kwargs& given) {
  GraphDefinition graph;
  for (const Symbol& input : inputs) graph.inputs.push_back(variable_of(input));
  for (const Symbol& output : outputs) graph.outputs.push_back(only_output(output, "outputs"));
  for (const auto& [input, value] : updates) graph.updates.push_back({input, only_output(value, "updates")});
  graph.atomic = atomic;
  graph.donated = donated;
  graph.borrowed = borrowed;
  const CallOptions options = options_from(given);
  return {make_ref<GraphCallable>(function_definition(std::move(graph), options.name), options), numpy, donated};
}

// Asks without the GIL: the call may wait for another thread that compiles, which may need the GIL for operators in
// Python.
template <typename Ask>
auto without_gil(const Ask& ask) {
  return [ask](CachedOpHandle& handle) {
    ReleaseGil release(false);
    return ask(*handle.op);
  };
}

void bind_cached_op(py::module_& m) {
  m.def(
      "release_as_zeros", [](const py::object& array) { push_released_zeros(expect_array(array.ptr(), "array")); },
      "Fills an array with zeros that take no memory until it is written again.");
  py::class_<CachedOpHandle>(m, "CachedOp", "A graph made executable once and run many times, with gradient.")
      .def(py::init([](const Symbol& symbol, const std::vector<bool>& numpy, const std::vector<uint8_t>& donated,
                       const py::kwargs& options) {
             GraphDefinition graph{symbol.list_inputs(), symbol.outputs};
             graph.donated = donated;
             return CachedOpHandle{make_ref<GraphCallable>(std::move(graph), CompileOptions(options_from(options))),
                                   numpy, donated};
           }),
           py::arg("symbol"), py::kw_only(), py::arg("numpy") = std::vector<bool>(),
           py::arg("donated") = std::vector<uint8_t>(),
           "numpy: per output, whether it is an array of mx.np; all as the first input if empty. donated: per input, "
           "whether calls may write into its memory; none if empty. options: those of CallOptions in plan.h.")
      .def(
          "__call__",
          [](const CachedOpHandle& h, const py::args& args, const py::object& out,
             const std::optional<std::pair<uint64_t, uint64_t>>& key) { return call(h, args, out, key); },
          py::arg("out") = py::none(), py::arg("key") = py::none(),
          "Inputs in the order of symbol.list_inputs(); returns an array or a list of arrays. key: of its random "
          "numbers, from next_rng_key(); else it takes the next.")
      .def_property_readonly("is_random", without_gil([](GraphCallable& f) { return f.uses_random(); }))
      .def_property_readonly("symbol", [](CachedOpHandle& h) { return h.op->symbol(); })
      .def_property_readonly("num_plans", without_gil([](GraphCallable& f) { return f.counts().plans; }))
      .def_property_readonly("num_linked", without_gil([](GraphCallable& f) { return f.counts().linked; }))
      .def_property_readonly("num_layouts", without_gil([](GraphCallable& f) { return f.counts().layouts; }))
      .def_property_readonly("num_rewritten", without_gil([](GraphCallable& f) { return f.counts().rewritten; }))
      .def_property_readonly("num_kernels", without_gil([](GraphCallable& f) { return f.num_kernels(); }))
      .def(
          "copy",
          [](CachedOpHandle& h, bool share_memory, bool delete_updates, const std::string& name) {
            ReleaseGil release(false);
            return CachedOpHandle{h.op->copy(share_memory, delete_updates, name), h.numpy, h.donated};
          },
          py::kw_only(), py::arg("share_memory"), py::arg("delete_updates"), py::arg("name"),
          "See GraphCallable::copy in plan/graph_callable.h.")
      .def_property_readonly("is_torn", without_gil([](GraphCallable& f) { return f.is_torn(); }))
      .def("forget_torn", [](CachedOpHandle& h) { h.op->forget_torn(); })
      .def("summary", without_gil([](GraphCallable& f) { return f.summary(); }))
      .def("plan_text", without_gil([](GraphCallable& f) { return f.plan_text(); }))
      .def("fired_rewrites", without_gil([](GraphCallable& f) { return f.fired_rewrites(); }))
      .def("graph_text", without_gil([](GraphCallable& f) { return f.graph_text(); }));
}

void bind_functions(py::module_& m) {
  m.def("function", &make_function, py::arg("inputs"), py::arg("outputs"), py::arg("updates"), py::kw_only(),
        py::arg("atomic") = true, py::arg("numpy") = std::vector<bool>(), py::arg("donated") = std::vector<uint8_t>(),
        py::arg("borrowed") = std::vector<uint8_t>(),
        "A CachedOp of given inputs, variables all, with updates: pairs of the number of an input and its new value.");
  m.def(
      "variables_of",
      [](const std::vector<Symbol>& symbols) {
        Symbol all;
        for (const Symbol& symbol : symbols)
          all.outputs.insert(all.outputs.end(), symbol.outputs.begin(), symbol.outputs.end());
        check_leaks(all.outputs);
        py::list list;
        for (Node* node : topological_order(all.outputs)) {
          const bool is_shared = node->attrs.count(kShared) != 0;
          if (!node->is_variable() || (node->constant && !is_shared)) continue;
          list.append(py::make_tuple(
              reinterpret_cast<uintptr_t>(node), Symbol{{{NodePtr(node), 0}}},
              is_shared ? py::cast(NDArray(Ref<ArrayImpl>(static_cast<ArrayImpl*>(node->constant.get()))))
                        : py::none()));
        }
        return list;
      },
      "(identity, variable, array of a shared variable, else None) of every variable that Symbols depend on, but for "
      "constants.");
  m.def(
      "declared_spec",
      [](const Symbol& symbol) {
        const TensorSpec spec = declared_spec(*variable_of(symbol));
        return py::make_tuple(py::cast(spec.shape), spec.dtype == DType::kUnknown ? py::none() : py::cast(spec.dtype));
      },
      "(shape, dtype) that a variable declares; None where it does not.");
  m.def(
      "array_id",
      [](const py::object& array) { return reinterpret_cast<uintptr_t>(expect_array(array.ptr(), "array").impl()); },
      "Equal for objects that are one array, as long as one of them is alive.");
  m.def(
      "variable_id", [](const Symbol& symbol) { return reinterpret_cast<uintptr_t>(variable_of(symbol).get()); },
      "A number that no other living variable has.");
  m.def(
      "shared_variable",
      [](const py::object& cls, const py::object& array, const std::string& name) {
        const NDArray& value = expect_array(array.ptr(), "value");
        NodePtr node = make_variable(name);
        // Attributes, not specs: values that depend on the variable are not traced arrays.
        node->attrs["__shape__"] = py::str(py::cast(value.shape())).cast<std::string>();
        node->attrs[kShared] = "1";
        node->attrs["__dtype__"] = std::to_string(static_cast<int>(value.dtype()));
        node->constant = Ref<Object>(value.impl());
        watch_overwrites(*value.impl()->chunk);
        node->block = trace_state().block;
        node->where = current_location();
        PyObject* result = wrap_symbol(Symbol{{{node, 0}}}, reinterpret_cast<PyTypeObject*>(cls.ptr()));
        if (result == nullptr) throw py::error_already_set();
        return py::reinterpret_steal<py::object>(result);
      },
      "A variable, of this subclass of Symbol, that stands for the array.");
}

std::vector<std::string> names_with_gradients_by_rows(const Symbol& symbol,
                                                      const std::map<std::string, std::string>& stypes) {
  const GraphDefinition graph{symbol.list_inputs(), symbol.outputs};
  std::vector<StorageType> storages;
  for (const NodePtr& input : graph.inputs) {
    const auto found = stypes.find(input->name);
    storages.push_back(found == stypes.end() ? StorageType::kDefault : storage_type_from_name(found->second));
  }
  const std::vector<bool> by_rows = gradients_by_rows(graph, storages);
  std::vector<std::string> names;
  for (size_t i = 0; i < by_rows.size(); ++i)
    if (by_rows[i]) names.push_back(graph.inputs[i]->name);
  return names;
}

void bind_executor(py::module_& m) {
  py::class_<ExecutorHandle>(m, "Executor", "A graph bound to arrays.")
      .def(py::init([](const Symbol& symbol, const py::object& arguments, const py::object& gradients,
                       const std::vector<std::string>& requests, const py::object& auxiliaries,
                       const py::kwargs& options) {
             std::vector<GradReq> reqs;
             for (const std::string& req : requests) reqs.push_back(grad_req_from_name(req));
             return ExecutorHandle{make_ref<Executor>(symbol, arrays_of(arguments, "args"),
                                                      arrays_of(gradients, "args_grad"), reqs,
                                                      arrays_of(auxiliaries, "aux_states"), options_from(options))};
           }),
           py::arg("symbol"), py::arg("arguments"), py::arg("gradients"), py::arg("requests"), py::arg("auxiliary"),
           py::pos_only())
      .def("forward",
           [](ExecutorHandle& h, bool train) {
             ReleaseGil release(true);
             h.executor->forward(train);
           })
      .def("backward",
           [](ExecutorHandle& h, const py::object& out_grads) {
             const std::vector<NDArray> grads = arrays_of(out_grads, "out_grads");
             ReleaseGil release(true);
             h.executor->backward(grads);
           })
      .def("outputs", [](ExecutorHandle& h) { return h.executor->outputs(); })
      .def("plan_text", [](ExecutorHandle& h) { return h.executor->plan_text(); })
      .def("memory_bytes", [](ExecutorHandle& h) { return h.executor->memory_bytes(); });
  m.def("gradients_by_rows", &names_with_gradients_by_rows,
        "Names of variables whose gradient is row_sparse; stypes: storage of variables by name.");
}

py::dict describe(const Rewrite& row, const Pipeline& pipeline) {
  py::dict result;
  result["name"] = row.name;
  result["stage"] = pipeline.info(row).name;
  result["position"] = row.stage() == Stage::kOwn ? row.position : pipeline.info(row).position;
  result["tags"] = std::vector<std::string>(row.tags.begin(), row.tags.end());
  result["after"] = row.after;
  result["values"] = row.exactness == Exactness::kBitwise    ? "same"
                     : row.exactness == Exactness::kRounding ? "rounding"
                                                             : "unsafe";
  result["what"] = row.what;
  result["why"] = row.why;
  return result;
}

void bind_pipeline(py::module_& m) {
  m.def(
      "pipeline_stages",
      [] {
        py::list list;
        const std::shared_ptr<const Pipeline> pipeline = RewriteDatabase::current();
        for (const StageInfo& stage : pipeline->stages()) {
          py::dict row;
          row["name"] = stage.name;
          row["graph"] = stage.graph;
          row["position"] = stage.position;
          row["equilibrium"] = stage.equilibrium;
          row["what"] = stage.what;
          list.append(row);
        }
        return list;
      },
      "Stages of the pipeline of rewrites, in the order in which they run.");
  m.def(
      "pipeline_rows",
      [] {
        py::list list;
        const std::shared_ptr<const Pipeline> pipeline = RewriteDatabase::current();
        for (const Rewrite& row : pipeline->rows()) list.append(describe(row, *pipeline));
        return list;
      },
      "Rows of the pipeline of rewrites, once per stage, in the order in which they run.");
  m.def(
      "check_passes",
      [](const std::string& passes) { RewriteDatabase::current()->check(Query::parse(passes), "passes"); },
      py::arg("passes"), "Raises ParamError for words that are no name or tag of the pipeline.");
  m.def(
      "check_remat", [](const std::string& remat) { RematPolicy::parse(remat); }, py::arg("remat"),
      "Raises ParamError unless it is 'auto', 'none' or a number of bytes.");
}

}  // namespace

void bind_plans(py::module_& m) {
  bind_pipeline(m);
  bind_cached_op(m);
  bind_functions(m);
  bind_executor(m);
}

}  // namespace hybridnet::python
