// The functions of the CUDA driver (libcuda.so.1), found when the process first uses a GPU. The declarations are our
// own, so that the build needs no CUDA header; names and values are those of the driver's binary interface.
// Owner:   a Driver belongs to its backend; the library stays loaded until the process ends.
// Threads: a loaded Driver is constant; the functions are safe from any thread.
// Throws:  nothing; load_driver() returns the reason why a driver cannot be used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/symbol.h"

namespace hybridnet::cuda {

using DeviceNumber = int;
using Pointer = unsigned long long;  // an address of device memory
struct ContextTag;
struct StreamTag;
struct EventTag;
struct ModuleTag;
struct FunctionTag;
struct GraphTag;
struct GraphExecTag;
struct GraphNodeTag;
using Context = ContextTag*;
using StreamHandle = StreamTag*;
using EventHandle = EventTag*;
using ModuleHandle = ModuleTag*;
using FunctionHandle = FunctionTag*;
using GraphHandle = GraphTag*;
using GraphExecHandle = GraphExecTag*;
using GraphNodeHandle = GraphNodeTag*;
using ConditionHandle = unsigned long long;  // CUgraphConditionalHandle

// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelNodeParams {
  FunctionHandle function = nullptr;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, dynamic_shared_bytes = 0;
  void** arguments = nullptr;
  void** extra = nullptr;
  void* kernel = nullptr;
  Context context = nullptr;
};

// CUgraphNodeParams with CUDA_CONDITIONAL_NODE_PARAMS in its union; all other bytes are 0.
struct ConditionalNodeParams {
  int type = 13;  // CU_GRAPH_NODE_TYPE_CONDITIONAL
  int reserved_before[3] = {};
  ConditionHandle condition = 0;
  int kind = 0;                   // kIfNode or kWhileNode
  unsigned num_bodies = 1;        // 2 (an else graph) needs CUDA 12.8
  GraphHandle* bodies = nullptr;  // set by the driver, which owns the graphs
  Context context = nullptr;
  long long rest_of_union[25] = {};
  long long reserved_after = 0;
};
static_assert(sizeof(ConditionalNodeParams) == 256, "the size of CUgraphNodeParams");

// Values of the driver's enumerations.
inline constexpr int kAttributeMultiprocessors = 16, kAttributeMajor = 75, kAttributeMinor = 76,
                     kAttributeMemoryPools = 115;  // CUdevice_attribute
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kPinnedForAllContexts = 1;           // CU_MEMHOSTALLOC_PORTABLE
inline constexpr int kMaxDynamicSharedBytes = 8;               // CUfunction_attribute
inline constexpr int kIfNode = 0, kWhileNode = 1;              // CUgraphConditionalNodeType
inline constexpr int kJitErrorLog = 5, kJitErrorLogBytes = 6;  // CUjit_option

class Driver {
  std::vector<Symbol*> table_;  // every member below, in this order

 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  const std::vector<Symbol*>& table() const { return table_; }

  // ---- devices and contexts
  Function<Result(unsigned flags)> init{table_, "cuInit", 2000};
  Function<Result(int* version)> driver_version{table_, "cuDriverGetVersion", 2020};
  Function<Result(int* count)> device_count{table_, "cuDeviceGetCount", 2000};
  Function<Result(DeviceNumber* device, int ordinal)> device_get{table_, "cuDeviceGet", 2000};
  Function<Result(char* name, int bytes, DeviceNumber device)> device_name{table_, "cuDeviceGetName", 2000};
  Function<Result(int* value, int attribute, DeviceNumber device)> device_attribute{table_, "cuDeviceGetAttribute",
                                                                                    2000};
  Function<Result(size_t* bytes, DeviceNumber device)> device_memory{table_, "cuDeviceTotalMem_v2", 3020};
  Function<Result(Context* context, DeviceNumber device)> retain_context{table_, "cuDevicePrimaryCtxRetain", 7000};
  Function<Result(DeviceNumber device)> release_context{table_, "cuDevicePrimaryCtxRelease_v2", 11000};
  Function<Result(Context context)> set_context{table_, "cuCtxSetCurrent", 4000};

  // ---- memory
  Function<Result(size_t* free, size_t* total)> memory_info{table_, "cuMemGetInfo_v2", 3020};
  Function<Result(Pointer* memory, size_t bytes)> allocate{table_, "cuMemAlloc_v2", 3020};
  Function<Result(Pointer memory)> free{table_, "cuMemFree_v2", 3020};
  Function<Result(Pointer* memory, size_t bytes, StreamHandle stream)> allocate_ordered{table_, "cuMemAllocAsync",
                                                                                        11020, Need::kOptional};
  Function<Result(Pointer memory, StreamHandle stream)> free_ordered{table_, "cuMemFreeAsync", 11020, Need::kOptional};
  Function<Result(void** memory, size_t bytes, unsigned flags)> allocate_pinned{table_, "cuMemHostAlloc", 2020};
  Function<Result(void* memory)> free_pinned{table_, "cuMemFreeHost", 2000};

  // ---- streams and events
  Function<Result(StreamHandle* stream, unsigned flags)> stream_create{table_, "cuStreamCreate", 2000};
  Function<Result(StreamHandle stream)> stream_destroy{table_, "cuStreamDestroy_v2", 4000};
  Function<Result(StreamHandle stream)> stream_synchronize{table_, "cuStreamSynchronize", 2000};
  Function<Result(StreamHandle stream, EventHandle event, unsigned flags)> stream_wait{table_, "cuStreamWaitEvent",
                                                                                       3020};
  Function<Result(EventHandle* event, unsigned flags)> event_create{table_, "cuEventCreate", 2000};
  Function<Result(EventHandle event, StreamHandle stream)> event_record{table_, "cuEventRecord", 2000};
  Function<Result(EventHandle event)> event_query{table_, "cuEventQuery", 2000};
  Function<Result(EventHandle event)> event_synchronize{table_, "cuEventSynchronize", 2000};
  Function<Result(EventHandle event)> event_destroy{table_, "cuEventDestroy_v2", 4000};

  // ---- copies
  Function<Result(Pointer to, const void* from, size_t bytes, StreamHandle stream)> copy_in{
      table_, "cuMemcpyHtoDAsync_v2", 3020};
  Function<Result(void* to, Pointer from, size_t bytes, StreamHandle stream)> copy_out{table_, "cuMemcpyDtoHAsync_v2",
                                                                                       3020};
  Function<Result(Pointer to, Pointer from, size_t bytes, StreamHandle stream)> copy{table_, "cuMemcpyDtoDAsync_v2",
                                                                                     3020};
  Function<Result(Pointer to, unsigned char value, size_t bytes, StreamHandle stream)> fill{table_, "cuMemsetD8Async",
                                                                                            3020};

  // ---- compiled kernels
  Function<Result(ModuleHandle* module, const void* image, unsigned count, int* options, void** values)> module_load{
      table_, "cuModuleLoadDataEx", 2010};
  Function<Result(ModuleHandle module)> module_unload{table_, "cuModuleUnload", 2000};
  Function<Result(FunctionHandle* function, ModuleHandle module, const char* name)> module_function{
      table_, "cuModuleGetFunction", 2000};
  Function<Result(FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                  unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes, StreamHandle stream,
                  void** arguments, void** extra)>
      launch{table_, "cuLaunchKernel", 4000};
  Function<Result(FunctionHandle function, int attribute, int value)> set_function_attribute{
      table_, "cuFuncSetAttribute", 9000, Need::kOptional};
  Function<Result(FunctionHandle function, size_t index, size_t* offset, size_t* bytes)> parameter_info{
      table_, "cuFuncGetParamInfo", 12040, Need::kOptional};

  // ---- graphs
  Function<Result(GraphHandle* graph, unsigned flags)> graph_create{table_, "cuGraphCreate", 10000, Need::kOptional};
  Function<Result(GraphHandle graph)> graph_destroy{table_, "cuGraphDestroy", 10000, Need::kOptional};
  Function<Result(GraphNodeHandle* node, GraphHandle graph, const GraphNodeHandle* before, size_t count,
                  const KernelNodeParams* params)>
      graph_add_kernel{table_, "cuGraphAddKernelNode_v2", 12000, Need::kOptional};
  Function<Result(GraphExecHandle* exec, GraphHandle graph, unsigned long long flags)> graph_instantiate{
      table_, "cuGraphInstantiateWithFlags", 11040, Need::kOptional};
  Function<Result(GraphExecHandle exec, GraphNodeHandle node, const KernelNodeParams* params)> exec_set_kernel{
      table_, "cuGraphExecKernelNodeSetParams_v2", 12000, Need::kOptional};
  Function<Result(GraphExecHandle exec, StreamHandle stream)> graph_launch{table_, "cuGraphLaunch", 10000,
                                                                           Need::kOptional};
  Function<Result(GraphExecHandle exec)> exec_destroy{table_, "cuGraphExecDestroy", 10000, Need::kOptional};

  Function<Result(ConditionHandle* condition, GraphHandle graph, Context context, unsigned start, unsigned flags)>
      condition_create{table_, "cuGraphConditionalHandleCreate", 12030, Need::kOptional};
  Function<Result(GraphNodeHandle* node, GraphHandle graph, const GraphNodeHandle* before, const void* edges,
                  size_t count, ConditionalNodeParams* params)>
      graph_add_node{table_, "cuGraphAddNode_v2", 12030, Need::kOptional};

  // ---- errors
  Function<Result(Result result, const char** name)> error_name{table_, "cuGetErrorName", 6000};

  // ---- recording of graphs by other libraries
  Function<Result(StreamHandle stream, int* status)> is_capturing{table_, "cuStreamIsCapturing", 10000,
                                                                  Need::kOptional};
};

inline constexpr int kOldestDriver = 12000;          // CUDA 12.0
inline constexpr int kOldestWithConditions = 12040;  // of graphs: nested ones, and copies in their bodies
std::string version_text(int version);               // 12040: "12.4"

// The reason why these functions are no usable driver: it is too old, or lacks a required one; empty if there is none.
std::string why_unusable(const Driver& driver);

// Loads a driver; null, and the reason, if there is none or it cannot be used. `wanted` is HYBRIDNET_CUDA_DRIVER: empty
// for libcuda.so.1, a path, "stand-in" for libhnstandin.so beside libhybridnet.so, or "none".
std::unique_ptr<const Driver> load_driver(const std::string& wanted, std::string* why_none);

}  // namespace hybridnet::cuda
