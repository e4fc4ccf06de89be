// Executable graphs: CachedOp (hybridize) and Executor (bind); the pipeline of rewrites that makes them.
#include "casters.h"
#include "hybridnet/pass.h"
#include "hybridnet/plan.h"

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

py::object one_or_list(std::vector<NDArray> arrays, const py::handle& like) {
  const auto wrap = [&](NDArray a) { return like ? wrap_like(std::move(a), like) : py::cast(std::move(a)); };
  if (arrays.size() == 1) return wrap(std::move(arrays[0]));
  py::list list;
  for (NDArray& array : arrays) list.append(wrap(std::move(array)));
  return list;
}

py::object call(CachedOp& op, const py::args& args, const py::object& out) {
  std::vector<NDArray> inputs, targets;
  inputs.reserve(args.size());
  for (size_t i = 0; i < args.size(); ++i) inputs.push_back(expect_array(args[i].ptr(), "input"));
  if (!out.is_none()) targets = is_array(out.ptr()) ? std::vector<NDArray>{array_of(out.ptr())} : arrays_of(out, "out");
  std::vector<NDArray> results;
  {
    ReleaseGil release(true);
    results = op.call(inputs, targets);
  }
  if (!out.is_none()) return out;
  return one_or_list(std::move(results), args.empty() ? py::handle() : py::handle(args[0]));
}

CachedOpConfig config_from(bool static_alloc, const std::string& passes, const std::string& name) {
  CachedOpConfig config;
  config.static_alloc = static_alloc;
  config.passes = passes;
  config.name = name;
  return config;
}

// pybind11 holds these by a smart pointer of its own; the library counts them itself.
struct CachedOpHandle {
  Ref<CachedOp> op;
};
struct ExecutorHandle {
  Ref<Executor> executor;
};

// Another thread may be compiling, which keeps these waiting, and may need the GIL for it: for operators in Python.
template <typename Result>
Result without_gil(Result (CachedOp::*ask)() const, CachedOpHandle& handle) {
  ReleaseGil release(false);
  return (*handle.op.*ask)();
}

void bind_cached_op(py::module_& m) {
  py::class_<CachedOpHandle>(m, "CachedOp", "A graph made executable once and run many times, with gradient.")
      .def(py::init([](const Symbol& symbol, bool static_alloc, const std::string& passes, const std::string& name) {
             return CachedOpHandle{make_ref<CachedOp>(symbol, config_from(static_alloc, passes, name))};
           }),
           py::arg("symbol"), py::kw_only(), py::arg("static_alloc") = false, py::arg("passes") = "",
           py::arg("name") = "")
      .def(
          "__call__",
          [](CachedOpHandle& h, const py::args& args, const py::object& out) { return call(*h.op, args, out); },
          py::arg("out") = py::none(),
          "Inputs in the order of symbol.list_inputs(); returns an array or a list of arrays.")
      .def_property_readonly("symbol", [](CachedOpHandle& h) { return h.op->symbol(); })
      .def_property_readonly("num_plans", [](CachedOpHandle& h) { return without_gil(&CachedOp::num_plans, h); })
      .def_property_readonly("num_linked", [](CachedOpHandle& h) { return without_gil(&CachedOp::num_linked, h); })
      .def_property_readonly("num_layouts", [](CachedOpHandle& h) { return without_gil(&CachedOp::num_layouts, h); })
      .def_property_readonly("num_rewritten",
                             [](CachedOpHandle& h) { return without_gil(&CachedOp::num_rewritten, h); })
      .def("summary", [](CachedOpHandle& h) { return without_gil(&CachedOp::summary, h); })
      .def("plan_text", [](CachedOpHandle& h) { return without_gil(&CachedOp::plan_text, h); })
      .def("fired_rewrites", [](CachedOpHandle& h) { return without_gil(&CachedOp::fired_rewrites, h); })
      .def("graph_text", [](CachedOpHandle& h) { return without_gil(&CachedOp::graph_text, h); });
}

void bind_executor(py::module_& m) {
  py::class_<ExecutorHandle>(m, "Executor", "A graph bound to arrays.")
      .def(py::init([](const Symbol& symbol, const py::object& arguments, const py::object& gradients,
                       const std::vector<std::string>& requests, const py::object& auxiliaries) {
        std::vector<GradReq> reqs;
        for (const std::string& req : requests) reqs.push_back(grad_req_from_name(req));
        return ExecutorHandle{make_ref<Executor>(symbol, arrays_of(arguments, "args"),
                                                 arrays_of(gradients, "args_grad"), reqs,
                                                 arrays_of(auxiliaries, "aux_states"))};
      }))
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
}

py::dict describe(const Rewrite& row) {
  py::dict result;
  result["name"] = row.name;
  result["rule"] = row.rule;
  result["stage"] = pipeline().info(row.stage).name;
  result["tags"] = std::vector<std::string>(row.tags.begin(), row.tags.end());
  result["after"] = row.after;
  result["exact"] = row.exactness == Exactness::kBitwise;
  result["what"] = row.what;
  result["why"] = row.why;
  return result;
}

void bind_pipeline(py::module_& m) {
  m.def(
      "pipeline_stages",
      [] {
        py::list list;
        for (const StageInfo& stage : pipeline().stages()) {
          py::dict row;
          row["name"] = stage.name;
          row["graph"] = stage.graph;
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
        for (const Rewrite& row : pipeline().rows()) list.append(describe(row));
        return list;
      },
      "Rows of the pipeline of rewrites, in the order in which they run.");
  m.def(
      "check_passes", [](const std::string& passes) { pipeline().check(Query::parse(passes), "passes"); },
      py::arg("passes"), "Raises ParamError for words that are no name, rule or tag of the pipeline.");
}

}  // namespace

void bind_plans(py::module_& m) {
  bind_pipeline(m);
  bind_cached_op(m);
  bind_executor(m);
}

}  // namespace hybridnet::python
