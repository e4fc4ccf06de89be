// Engine, memory, random seed, threads, environment.
#include <map>
#include <utility>

#include "base/front_end.h"
#include "base/interrupt.h"
#include "base/process_end.h"
#include "casters.h"
#include "engine/profile.h"
#include "engine/run_ahead.h"
#include "hybridnet/c_api.h"
#include "hybridnet/env.h"
#include "hybridnet/imperative.h"
#include "hybridnet/ndarray.h"
#include "hybridnet/runtime.h"
#include "hybridnet/threads.h"
#include "imperative/observed_reads.h"
#include "plan/request_queue.h"
#include "traced_memory.h"

namespace hybridnet::python {
namespace {

// The arrays that operators read while this thread traces a block.
ObservedReads& traced_reads() {
  thread_local ObservedReads reads;
  return reads;
}

void observe(bool on) {
  traced_reads().clear();
  observed_reads = on ? &traced_reads() : nullptr;
}

// Returns one array for each read memory that is also held elsewhere, and clears the list.
py::list shared_traced_reads() {
  std::map<const Chunk*, NDArray> found;
  for (const NDArray& array : std::exchange(traced_reads(), {})) found.try_emplace(array.impl()->chunk.get(), array);
  py::list result;
  for (const auto& [chunk, array] : found)
    if (chunk->ref_count() > 1 || array.impl()->ref_count() > 1) result.append(array);
  return result;
}

py::dict memory_statistics(int device_type, int device_id) {
  const Storage::Statistics s = Runtime::get().storage({static_cast<DeviceType>(device_type), device_id}).statistics();
  py::dict d;
  d["in_use"] = s.in_use;
  d["pooled"] = s.pooled;
  d["peak_in_use"] = s.peak_in_use;
  d["system_allocations"] = s.system_allocations;
  d["allocations"] = s.allocations;
  d["derived"] = s.derived;
  return d;
}

// Called by pushes before and after a wait for space in the queue: most pushes hold the GIL, which tasks may need to
// release Python's memory.
void* release_gil_if_held() { return PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr; }

void take_gil_again(void* state) {
  if (state != nullptr) restore_thread_or_sleep(static_cast<PyThreadState*>(state));
}

// True if Ctrl-C was pressed. Its handler runs after the push, when Python continues.
bool is_interrupted() {
  const AcquireGil gil;
  if (PyOS_InterruptOccurred() == 0) return false;
  note_interrupt();
  PyErr_SetInterrupt();
  return true;
}

// Issues warnings of the library as Python's UserWarning. If a filter makes one an error, it is an error of the work
// that it is about.
void give_warning(const std::string& text, SourceLocation where, WarningKind kind) {
  AcquireGil gil;
  const py::object category = kind == WarningKind::kGpuFallback
                                  ? py::module_::import("hybridnet.context").attr("GpuFallbackWarning")
                                  : py::reinterpret_borrow<py::object>(PyExc_UserWarning);
  const int failed = where.known()
                         ? PyErr_WarnExplicit(category.ptr(), text.c_str(), where.file, where.line, nullptr, nullptr)
                         : PyErr_WarnEx(category.ptr(), text.c_str(), 1);
  if (failed == 0) return;
  PyErr_Clear();
  throw ValueError({.message = text, .because = "warnings are errors here", .where = where});
}

// Throws if Ctrl-C was pressed; Python notices that only on its main thread.
void check_for_signals() {
  AcquireGil gil;
  if (PyErr_CheckSignals() < 0) throw PythonErrorIsSet();
}

}  // namespace

// The queue of hybridnet.serving.
void bind_request_queue(py::module_& m) {
  using Queue = RequestQueue<py::object>;
  py::class_<Queue>(m, "RequestQueue", "Which requests share a call, and when it begins. Times: of one clock, in ns.")
      .def(py::init([](int64_t max_rows, int64_t max_wait_ns, size_t max_waiting, int calls) {
             return Queue({max_rows, max_wait_ns, max_waiting, calls});
           }),
           py::arg("max_rows"), py::arg("max_wait_ns"), py::arg("max_waiting"), py::arg("calls"))
      .def("is_full", &Queue::is_full, "Whether as many wait as may.")
      .def("push", &Queue::push, py::arg("request"), py::arg("rows"), py::arg("now"))
      .def("next_start", &Queue::next_start, "None: not before a request comes or a call ends.")
      .def(
          "take",
          [](Queue& queue) {
            if (!queue.next_start())
              raise(ErrorKind::kValue, {.op = "take", .message = "no request waits, or no call may begin"});
            py::list batch;
            queue.take([&](py::object request) { batch.append(std::move(request)); });
            return batch;
          },
          "Begins a call of these requests.")
      .def("end_call", &Queue::end_call);
}

// Starts, stops and clears the records of src/engine/profile.h.
void bind_profile(py::module_& m) {
  m.def("profile_start", &profile::start);
  m.def("profile_stop", &profile::stop);
  m.def("profile_active", &profile::active);
  m.def("profile_now", &profile::now_ns, "Nanoseconds on the clock of the recorded events.");
  m.def(
      "profile_add",
      [](const std::string& name, const std::string& category, int64_t begin) {
        if (profile::active()) profile::detail::add(intern_file(name), intern_file(category), "", "", begin);
      },
      "An event of this thread that ends now, if the profiler runs.");
  m.def(
      "profile_take",
      [] {
        py::list events;
        for (const profile::Event& e : profile::take())
          events.append(py::make_tuple(e.name, e.category, e.begin_ns, e.end_ns, e.thread, e.node, e.block, e.inputs));
        return events;
      },
      "Events since the last call: (name, category, begin, end, thread, node, block, inputs), times in nanoseconds.");
}

void bind_runtime(py::module_& m) {
  run_ahead().set_hooks({release_gil_if_held, take_gil_again, is_interrupted});
  m.def(
      "run_ahead_waits", [] { return run_ahead().waits(); }, "How often a push has waited for room in the queue.");
  bind_request_queue(m);
  bind_profile(m);
  set_front_end({.warn = &give_warning, .check_interrupt = &check_for_signals});
  m.def("seed", &seed);
  m.def(
      "rng_state", [] { return std::pair(rng_state().seed, rng_state().stream); },
      "Seed, and number of the next draw of it.");
  m.def(
      "next_rng_key",
      [] {
        const RngKey key = next_rng_key();
        return std::pair(key.seed, key.stream);
      },
      "Takes a draw. Returns its key, which the call of a CachedOp accepts.");
  m.def("set_rng_state", [](uint64_t seed, uint64_t stream) { set_rng_state({seed, stream}); });
  m.def("is_np_shape", &is_np_shape);
  m.def("set_np_shape", &set_np_shape, "Returns the previous value.");
  m.def("engine_type", [] { return std::string(engine().type_name()); });
  m.def("isa", &hn_isa);
  m.def(
      "set_bulk_size",
      [](int size) {
        const int before = engine().bulk_size();
        engine().set_bulk_size(size);
        return before;
      },
      "Returns the previous value.");
  m.def(
      "shutdown",
      [] {
        ReleaseGil release(false);
        run_process_end();
      },
      "Drains the engine; called when the interpreter ends.");
  m.def("empty_cache", [](int device_type, int device_id) {
    ReleaseGil release(false);
    Runtime::get().storage({static_cast<DeviceType>(device_type), device_id}).release_pool();
  });
  m.def("memory_statistics", &memory_statistics);
  m.def("reset_peak_memory", [](int device_type, int device_id) {
    Runtime::get().storage({static_cast<DeviceType>(device_type), device_id}).reset_peak();
  });
  m.def("cpu_cores", &cpu_cores);
  m.def("set_cpu_cores", &set_cpu_cores);
  m.def(
      "current_location",
      [] {
        const SourceLocation where = current_location();
        return where.known() ? where.str() : std::string();
      },
      "The user's file:line, or ''.");
  m.def(
      "home", [] { return environment().home; }, "Folder for data and models, or ''.");
  m.def(
      "set_trace_state",
      [](bool active, std::string block, bool recording) {
        TraceState& state = trace_state();
        py::tuple before = py::make_tuple(state.active, state.block);
        if (active != state.active) observe(active);
        if (active && !state.active) {
          state.constants = 0;
          state.reads = 0;
          state.shape_read = {};
          state.scopes = {};
          state.training = autograd_state().training;
          state.recording = recording;
          begin_traced_memory();
        }
        state.active = active;
        if (!active) {
          state.held.clear();
          end_traced_memory();
        }
        state.block = std::move(block);
        return before;
      },
      py::arg("active"), py::arg("block"), py::arg("recording") = false,
      "Sets whether a block is traced, its path, and whether its caller records. Returns the first two from before.");
  m.def(
      "note_trace_read",
      [](unsigned bits) {
        TraceState& state = trace_state();
        if ((bits & ~state.reads & kReadShape) != 0) state.shape_read = current_location();
        state.reads |= bits;
      },
      "Python asks for a traced array's shape (1), rank (2) or dtype (4), for the training mode (8), or whether its "
      "caller "
      "records (16).");
  m.def("traced_array_reads", &shared_traced_reads,
        "The arrays that were read since tracing began and that others hold, too.");
  m.def(
      "check_held_constants", [] { check_held_constants(); },
      "Raises TraceError if an array was written to after the graph being traced has read it.");
  m.def(
      "trace_reads", [] { return trace_state().reads; }, "The bits of note_trace_read() since tracing began.");
  m.def(
      "trace_shape_line",
      [] {
        const SourceLocation where = trace_state().shape_read;
        return where.known() ? where.str() : std::string();
      },
      "file:line where a shape was asked for first, or ''.");
}

}  // namespace hybridnet::python
