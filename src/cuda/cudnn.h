// The functions of cuDNN's graph interface that convolutions need, found when the process first needs them. The
// declarations are our own, so that the build needs no header of cuDNN; names and values are those of the library's
// binary interface (version 9).
// Threads: a loaded Cudnn is constant; a handle is used by one thread at a time, and so is a descriptor while it is
//          being described. Finalized descriptors are constant.
// Throws:  nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/driver.h"
#include "cuda/library_files.h"
#include "cuda/symbol.h"

namespace hybridnet::cuda {

// cudnnStatus_t: the thousands are the category.
constexpr bool is_unsupported(Result status) { return status / 1000 == 3; }
constexpr bool is_of_device(Result status) { return status / 1000 == 4 || status / 1000 == 5; }
inline constexpr Result kCompilationFailed = 4001;

// cudnnBackendDescriptorType_t.
enum class GraphPart : int {
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristics = 4,
  kExecutionPlan = 5,
  kForward = 10,
  kFilterGradient = 11,
  kDataGradient = 12,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
};

// cudnnBackendAttributeName_t.
enum class GraphAttribute : int {
  kConvolutionComputeType = 100,
  kConvolutionMode = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPostPaddings = 104,
  kConvolutionPrePaddings = 105,
  kConvolutionSpatialDimensions = 106,
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kConfigEngine = 300,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspaceBytes = 402,
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConvolution = 702,
  kForwardW = 703,
  kForwardX = 704,
  kForwardY = 705,
  kDataGradientAlpha = 706,
  kDataGradientBeta = 707,
  kDataGradientConvolution = 708,
  kDataGradientW = 709,
  kDataGradientDx = 710,
  kDataGradientDy = 711,
  kFilterGradientAlpha = 712,
  kFilterGradientBeta = 713,
  kFilterGradientConvolution = 714,
  kFilterGradientDw = 715,
  kFilterGradientX = 716,
  kFilterGradientDy = 717,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorDataType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNumericalNotes = 1303,
};

// cudnnBackendAttributeType_t.
enum class GraphType : int {
  kHandle = 0,
  kDataType = 1,
  kInt64 = 3,
  kFloat = 4,
  kDouble = 5,
  kPointer = 6,
  kConvolutionMode = 7,
  kHeuristicsMode = 8,
  kNumericalNote = 11,
  kDescriptor = 15,
};

enum class GraphData : int { kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kBFloat16 = 9 };  // cudnnDataType_t
enum class GraphConvolution : int { kCrossCorrelation = 1 };                             // cudnnConvolutionMode_t
enum class HeuristicsMode : int { kFallback = 2, kRanked = 3 };                          // cudnnBackendHeurMode_t

// cudnnBackendNumericalNote_t.
enum class NumericalNote : int {
  kTensorCore = 0,
  kDownConvertInputs = 1,
  kReducedPrecisionReduction = 2,
  kFft = 3,
  kNondeterministic = 4,
  kWinograd = 5,
  kWinograd4x4 = 6,
  kWinograd6x6 = 7,
  kWinograd13x13 = 8,
  kStrictNan = 9,
};

class Cudnn {
  std::vector<Symbol*> table_;  // every member below, in this order

 public:
  using Handle = struct CudnnHandleTag*;
  using Descriptor = void*;
  Cudnn() = default;
  Cudnn(const Cudnn&) = delete;
  const std::vector<Symbol*>& table() const { return table_; }

  Function<size_t()> version{table_, "cudnnGetVersion", 9000};
  Function<size_t()> runtime_version{table_, "cudnnGetCudartVersion", 9000};
  Function<const char*(Result status)> status_name{table_, "cudnnGetErrorString", 9000};
  Function<void(char* text, size_t bytes)> last_error{table_, "cudnnGetLastErrorString", 9000, Need::kOptional};
  Function<Result(Handle* handle)> create{table_, "cudnnCreate", 9000};
  Function<Result(Handle handle)> destroy{table_, "cudnnDestroy", 9000};
  Function<Result(Handle handle, StreamHandle stream)> set_stream{table_, "cudnnSetStream", 9000};

  Function<Result(GraphPart part, Descriptor* made)> descriptor_create{table_, "cudnnBackendCreateDescriptor", 9000};
  Function<Result(Descriptor descriptor)> descriptor_destroy{table_, "cudnnBackendDestroyDescriptor", 9000};
  Function<Result(Descriptor descriptor, GraphAttribute attribute, GraphType type, int64_t count, const void* values)>
      descriptor_set{table_, "cudnnBackendSetAttribute", 9000};
  // Writes up to `wanted` values; *found is the number that there are.
  Function<Result(Descriptor descriptor, GraphAttribute attribute, GraphType type, int64_t wanted, int64_t* found,
                  void* values)>
      descriptor_get{table_, "cudnnBackendGetAttribute", 9000};
  Function<Result(Descriptor descriptor)> finalize{table_, "cudnnBackendFinalize", 9000};
  Function<Result(Handle handle, Descriptor plan, Descriptor pack)> execute{table_, "cudnnBackendExecute", 9000};
};

// The library of the graph interface. It loads cuDNN's other libraries itself, from its own folder; libcudnn.so.9,
// which forwards to it, ends the process if it does not find it.
inline constexpr LibraryName kCudnn{"cuDNN", "libcudnn_graph.so", "cudnn"};
std::vector<std::string> cudnn_files(const std::string& driver, const std::string& folders);

}  // namespace hybridnet::cuda
