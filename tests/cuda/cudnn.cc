// cuDNN's functions for graphs of one convolution. Descriptors, their order, sizes, alignment, workspace and memory are
// checked, when they are described and when the convolution is pushed; it runs as late as a kernel does, and its
// accesses count as those of a kernel.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "cudnn_math.h"
#include "cudnn_parts.h"
#include "faults.h"
#include "library_objects.h"
#include "memory.h"
#include "schedule.h"

using namespace standin;

namespace {

// cudnnBackendNumericalNote_t.
constexpr int kTensorCore = 0, kDownConvert = 1, kReducedReduction = 2, kNondeterministic = 4, kWinograd = 5,
              kStrictNan = 9, kOfTheFuture = 23;

int64_t g_least_workspace = 0;  // world().mutex

template <class Body>
int dnn(const char* function, Body body) {
  return library_call(function, kDnnNotReady, kDnnInternal, body);
}

int refuse(int status, const char* function, const std::string& what) {
  report(std::string("descriptor: ") + function + ": " + what);
  return status;
}

// The engines of the heuristics. Only some of these may be taken; the others give other values, need more memory than
// there is, or do not finalize.
std::vector<Engine> engines_of(int mode, const Problem& problem) {
  const int64_t bytes = std::max<int64_t>(elements_of(problem.y) * 4, g_least_workspace);
  if (mode == 2) return {{{}, g_least_workspace}};
  if (problem.w.sizes[1] == 1 && problem.x.sizes[1] > 1) return {};  // depthwise: the fallback has an engine
  return {{{kNondeterministic}, 0},
          {{kTensorCore, kDownConvert}, 0},
          {{kTensorCore, kReducedReduction}, 0},
          {{kWinograd, kStrictNan}, 0},
          {{kOfTheFuture}, 0},
          {{}, 0, false},
          {{}, int64_t{1} << 40},
          {{kTensorCore}, bytes},
          {{kStrictNan}, bytes}};
}

const void* this_thread() {
  static thread_local char place;
  return &place;
}

// ---- attributes that are read

int give_configs(World& w, const Part& heuristics, int64_t wanted, int64_t* found, void* values) {
  const Problem problem = problem_of(*heuristics.part(201));
  const std::vector<Engine> engines = engines_of(heuristics.number(200), problem);
  *found = static_cast<int64_t>(engines.size());
  auto* const places = static_cast<Part**>(values);
  for (int64_t i = 0; i < std::min(wanted, *found); ++i) {
    if (!exists(places[i], "cudnnBackendGetAttribute")) return kDnnBadParameter;
    if (places[i]->kind != PartKind::kConfig || places[i]->finalized)
      return refuse(kDnnBadParameter, "cudnnBackendGetAttribute", "a result is no new configuration");
    places[i]->engine = engines[static_cast<size_t>(i)];
    places[i]->problem = problem;
    places[i]->finalized = true;
  }
  if (wanted > 0) ++w.counters.convolution_choices;
  return kDnnDone;
}

int give_engine(const Part& config, int64_t wanted, int64_t* found, void* values) {
  *found = 1;
  if (wanted == 0) return kDnnDone;
  Part* const engine = *static_cast<Part**>(values);
  if (!exists(engine, "cudnnBackendGetAttribute")) return kDnnBadParameter;
  if (engine->kind != PartKind::kEngine || engine->finalized)
    return refuse(kDnnBadParameter, "cudnnBackendGetAttribute", "the place of an engine is no new engine");
  engine->engine = config.engine;
  engine->finalized = true;
  return kDnnDone;
}

int get(World& w, const Part& part, int attribute, int type, int64_t wanted, int64_t* found, void* values) {
  const char* const function = "cudnnBackendGetAttribute";
  if (!part.finalized) return refuse(kDnnNotFinalized, function, "the descriptor is not finalized");
  if (!found || (wanted > 0 && !values)) return refuse(kDnnNull, function, "no place for values");
  const auto expects = [&](PartKind kind, int name, int needed) {
    return part.kind == kind && attribute == name && type == needed;
  };
  if (expects(PartKind::kHeuristics, 202, 15)) return give_configs(w, part, wanted, found, values);
  if (expects(PartKind::kConfig, 300, 15)) return give_engine(part, wanted, found, values);
  if (expects(PartKind::kEngine, 1303, 11)) {
    *found = static_cast<int64_t>(part.engine.notes.size());
    std::copy_n(part.engine.notes.begin(), std::min(wanted, *found), static_cast<int*>(values));
    return kDnnDone;
  }
  if (expects(PartKind::kPlan, 402, 3)) {
    *found = 1;
    if (wanted > 0) *static_cast<int64_t*>(values) = part.engine.workspace_bytes;
    return kDnnDone;
  }
  return refuse(kDnnBadParameter, function, "attribute " + std::to_string(attribute) + " of this type is not known");
}

int finalize(Part& part) {
  if (const std::string wrong = why_incomplete(part); !wrong.empty())
    return refuse(kDnnBadParameter, "cudnnBackendFinalize",
                  "descriptor of kind " + std::to_string(static_cast<int>(part.kind)) + ": " + wrong);
  if (part.kind == PartKind::kPlan) {
    part.engine = part.part(401)->engine;
    part.problem = part.part(401)->problem;
    if (!part.engine.finalizes) return kDnnUnsupported;
  }
  part.finalized = true;
  return kDnnDone;
}

// ---- execution

struct Tensor {
  const char* name;
  const Problem::Tensor* tensor;
  uint64_t address = 0;
  Bytes bytes{0, 0};
};

struct Execution {
  const Part& plan;
  const Part& pack;
  const Context& context;
  Tensor tensors[3] = {
      {"the filter", &plan.problem.w}, {"the image", &plan.problem.x}, {"the response", &plan.problem.y}};
  uint64_t workspace = 0;

  const Tensor& target() const {
    return tensors[plan.problem.kind == PartKind::kFilterGradient ? 0
                   : plan.problem.kind == PartKind::kDataGradient ? 1
                                                                  : 2];
  }
};

constexpr const char* kExecute = "cudnnBackendExecute";

bool lacks(const std::string& what) {
  report(std::string("descriptor: ") + kExecute + ": " + what);
  return false;
}

bool has_pointers(Execution& e) {
  const std::vector<int64_t> ids = e.pack.integers(1000), pointers = e.pack.integers(1001);
  bool known = false;
  const size_t size = bytes_of(element_of(e.plan.problem.data_type, &known));
  if (ids.size() != 3) return lacks("the pack has not three tensors");
  for (Tensor& tensor : e.tensors) {
    const auto found = std::find(ids.begin(), ids.end(), tensor.tensor->id);
    if (found == ids.end()) return lacks(std::string("the pack lacks ") + tensor.name);
    tensor.address = static_cast<uint64_t>(pointers[static_cast<size_t>(found - ids.begin())]);
    tensor.bytes = {tensor.address, tensor.address + static_cast<uint64_t>(elements_of(*tensor.tensor)) * size};
  }
  e.workspace = reinterpret_cast<uintptr_t>(e.pack.pointer(1003));
  return true;
}

// The tensors and the workspace are memory of the device, aligned as the plan was promised, and apart.
bool has_right_memory(World& w, const Execution& e) {
  const Bytes room{e.workspace, e.workspace + static_cast<uint64_t>(e.plan.engine.workspace_bytes)};
  for (const Tensor& tensor : e.tensors) {
    if (!is_device_memory(w, tensor.bytes, e.context, kExecute, tensor.name)) return false;
    if (tensor.address % static_cast<uint64_t>(tensor.tensor->alignment) != 0) {
      report(std::string("alignment: ") + kExecute + " gets " + tensor.name + " at " + hex(tensor.address) +
             ", and its plan was made for a multiple of " + std::to_string(tensor.tensor->alignment));
      return false;
    }
    if ((&tensor != &e.target() && tensor.bytes.meets(e.target().bytes)) || tensor.bytes.meets(room)) {
      report(std::string("overlap: ") + tensor.name + " of " + kExecute +
             " shares memory with the result or the workspace");
      return false;
    }
  }
  if (room.begin == room.end) return true;
  if (room.begin % 256 != 0) {
    report(std::string("workspace: ") + kExecute + " gets one at " + hex(room.begin));
    return false;
  }
  return is_device_memory(w, room, e.context, kExecute, "the workspace");
}

// The values of an engine are those that its notes announce.
ConvolutionRun run_of(World& w, const Execution& e) {
  const Engine& engine = e.plan.engine;
  ConvolutionRun run{e.tensors[0].address, e.tensors[1].address, e.tensors[2].address};
  run.tf32 = engine.has(kTensorCore) && e.plan.problem.data_type == 0;
  if (engine.has(kNondeterministic)) run.error = 1e-6 * static_cast<double>(w.random() % 1024) / 1024;
  if (engine.has(kDownConvert) || engine.has(kReducedReduction)) run.error = 1;
  if (engine.has(kWinograd) || engine.has(kOfTheFuture)) run.offset = 1;
  return run;
}

int execute(World& w, DnnHandle* handle, Part& plan, const Part& pack) {
  if (plan.kind != PartKind::kPlan || pack.kind != PartKind::kPack || !plan.finalized || !pack.finalized)
    return refuse(kDnnNotFinalized, kExecute, "it gets no finalized plan, or no finalized pack");
  if (plan.pointer(400) != handle) return refuse(kDnnBadParameter, kExecute, "the plan is of another handle");
  if (w.broken != kSuccess) return kDnnFailed;
  if (t_context != handle->context || handle->set_by != this_thread())
    return refuse(kDnnBadParameter, kExecute, "another device is current, or another thread has set the stream");
  Result result = kSuccess;
  Stream* const stream = stream_of(w, handle->stream, kExecute, &result);
  if (!stream || stream->context != handle->context) return refuse(kDnnBadParameter, kExecute, "the stream is wrong");
  Execution e{plan, pack, *handle->context};
  if (!has_pointers(e) || !has_right_memory(w, e)) return kDnnBadParameter;
  const ConvolutionRun run = run_of(w, e);
  ++w.counters.convolutions;
  w.counters.tf32_convolutions += run.tf32 ? 1 : 0;
  Work work;
  work.name = kExecute;
  work.run = [&w, run, problem = plan.problem, room = e.workspace, device = handle->context->device,
              bytes = static_cast<size_t>(plan.engine.workspace_bytes)](const Work&) {
    return run_guarded(w, kExecute, device, [&] {
      std::memset(reinterpret_cast<void*>(room), 0x5a, bytes);
      convolve(problem, run);
      return kSuccess;
    });
  };
  plan.stream = stream;
  plan.ticket = push(w, *stream, std::move(work));
  return kDnnDone;
}

}  // namespace

extern "C" {

// The least workspace of all engines from now on.
void hnstandin_workspace(long long bytes) {
  std::lock_guard lock(world().mutex);
  g_least_workspace = bytes;
}

size_t cudnnGetVersion() { return 91400; }
size_t cudnnGetCudartVersion() { return static_cast<size_t>(setting("HNSTANDIN_RUNTIME", 12080)); }
const char* cudnnGetErrorString(int status) {
  switch (status) {
    case kDnnNotReady:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case kDnnBadParameter:
      return "CUDNN_STATUS_BAD_PARAM";
    case kDnnNull:
      return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
    case kDnnNotFinalized:
      return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case kDnnBadType:
      return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
    case kDnnUnsupported:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case kDnnInternal:
      return "CUDNN_STATUS_INTERNAL_ERROR";
    case kDnnFailed:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "unknown";
  }
}
void cudnnGetLastErrorString(char* text, size_t bytes) {
  if (bytes > 0) std::snprintf(text, bytes, "the stand-in says no");
}

int cudnnCreate(DnnHandle** handle) {
  return dnn(__func__, [&](World& w) {
    if (!handle || !t_context) return kDnnNotReady;
    *handle = make_object(w, DnnHandle{t_context});
    return kDnnDone;
  });
}
int cudnnDestroy(DnnHandle* handle) {
  return dnn(__func__, [&](World& w) {
    if (!destroy_object(w, handle, "cudnnDestroy")) return kDnnBadParameter;
    for (const auto& [address, part] : all<Part>())
      if (part->kind == PartKind::kPlan && part->finalized && part->pointer(400) == handle)
        report("stale object: cudnnDestroy leaves a plan without its handle");
    return kDnnDone;
  });
}
int cudnnSetStream(DnnHandle* handle, void* stream) {
  const int status = dnn(__func__, [&](World& w) {
    Result result = kSuccess;
    if (!exists(handle, "cudnnSetStream") || !stream_of(w, stream, "cudnnSetStream", &result)) return kDnnBadParameter;
    handle->stream = stream;
    handle->set_by = this_thread();
    return kDnnDone;
  });
  std::this_thread::yield();  // another thread that uses the handle now is seen
  return status;
}
int cudnnBackendCreateDescriptor(PartKind kind, Part** made) {
  return dnn(__func__, [&](World& w) {
    if (!made) return kDnnNull;
    Part part;
    part.kind = kind;
    *made = make_object(w, std::move(part));
    return kDnnDone;
  });
}
int cudnnBackendDestroyDescriptor(Part* part) {
  return dnn(__func__, [&](World& w) {
    const auto found = all<Part>().find(part);
    const bool is_needed = found != all<Part>().end() && part->stream && part->stream->done < part->ticket;
    if (is_needed) report("early free: cudnnBackendDestroyDescriptor of a plan whose convolution has not run");
    return destroy_object(w, part, "cudnnBackendDestroyDescriptor") ? kDnnDone : kDnnBadParameter;
  });
}
int cudnnBackendSetAttribute(Part* part, int attribute, int type, int64_t count, const void* values) {
  return dnn(__func__, [&](World&) {
    if (!exists(part, "cudnnBackendSetAttribute")) return kDnnBadParameter;
    return set_attribute(*part, attribute, type, count, values);
  });
}
int cudnnBackendGetAttribute(Part* part, int attribute, int type, int64_t wanted, int64_t* found, void* values) {
  return dnn(__func__, [&](World& w) {
    if (!exists(part, "cudnnBackendGetAttribute")) return kDnnBadParameter;
    return get(w, *part, attribute, type, wanted, found, values);
  });
}
int cudnnBackendFinalize(Part* part) {
  return dnn(__func__,
             [&](World&) { return exists(part, "cudnnBackendFinalize") ? finalize(*part) : kDnnBadParameter; });
}
int cudnnBackendExecute(DnnHandle* handle, Part* plan, Part* pack) {
  return dnn(__func__, [&](World& w) {
    if (!exists(handle, kExecute) || !exists(plan, kExecute) || !exists(pack, kExecute)) return kDnnBadParameter;
    return execute(w, handle, *plan, *pack);
  });
}

}  // extern "C"
