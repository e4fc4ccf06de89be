// The functions of cuBLASLt that products need, found when the process first needs them. The declarations are our own,
// so that the build needs no CUDA header; names and values are those of the library's binary interface (12.0 and
// later).
// Threads: a loaded CublasLt is constant; the functions are safe from any thread.
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

// cublasStatus_t.
inline constexpr Result kBlasExecutionFailed = 13, kBlasInternalError = 14, kBlasNotSupported = 15;
// cudaDataType_t.
inline constexpr int kFloat32Data = 0, kFloat64Data = 1, kFloat16Data = 2, kBFloat16Data = 14;
// cublasComputeType_t.
inline constexpr int kComputeFloat32 = 68, kComputeFloat64 = 70, kComputeTf32 = 77;
// cublasOperation_t.
inline constexpr int32_t kNotTransposed = 0, kTransposed = 1;
// cublasLtMatmulDescAttributes_t; the values are int32_t.
inline constexpr int kTransposeA = 3, kTransposeB = 4;
// cublasLtMatrixLayoutAttribute_t; the values are int32_t and int64_t.
inline constexpr int kBatchCount = 5, kBatchStride = 6;
// cublasLtMatmulPreferenceAttributes_t; the values are uint64_t, then uint32_t.
inline constexpr int kMaxWorkspaceBytes = 1, kReductionSchemes = 3;
inline constexpr int kAlignmentA = 5, kAlignmentB = 6, kAlignmentC = 7, kAlignmentD = 8;
// cublasLtReductionScheme_t. No sums of parts (0) is always allowed.
inline constexpr uint32_t kSumsInComputeType = 2;

// cublasLtMatmulAlgo_t.
struct MatmulAlgorithm {
  uint64_t data[8] = {};
};

// cublasLtMatmulHeuristicResult_t.
struct MatmulChoice {
  MatmulAlgorithm algorithm;
  size_t workspace_bytes = 0;
  Result state = 0;
  float waves = 0;
  int reserved[4] = {};
};
static_assert(sizeof(MatmulAlgorithm) == 64 && sizeof(MatmulChoice) == 96);

class CublasLt {
  std::vector<Symbol*> table_;  // every member below, in this order

 public:
  using Handle = struct CublasLtHandleTag*;
  using Descriptor = struct MatmulDescriptorTag*;
  using Layout = struct MatrixLayoutTag*;
  using Preference = struct MatmulPreferenceTag*;
  CublasLt() = default;
  CublasLt(const CublasLt&) = delete;
  const std::vector<Symbol*>& table() const { return table_; }

  Function<size_t()> version{table_, "cublasLtGetVersion", 10010};
  Function<const char*(Result status)> status_name{table_, "cublasLtGetStatusName", 11040, Need::kOptional};
  Function<Result(Handle* handle)> create{table_, "cublasLtCreate", 10010};
  Function<Result(Handle handle)> destroy{table_, "cublasLtDestroy", 10010};

  Function<Result(Descriptor* made, int compute_type, int scale_type)> descriptor_create{
      table_, "cublasLtMatmulDescCreate", 11000};
  Function<Result(Descriptor descriptor)> descriptor_destroy{table_, "cublasLtMatmulDescDestroy", 10010};
  Function<Result(Descriptor descriptor, int attribute, const void* value, size_t bytes)> descriptor_set{
      table_, "cublasLtMatmulDescSetAttribute", 10010};
  Function<Result(Layout* made, int type, uint64_t rows, uint64_t columns, int64_t leading)> layout_create{
      table_, "cublasLtMatrixLayoutCreate", 10010};
  Function<Result(Layout layout)> layout_destroy{table_, "cublasLtMatrixLayoutDestroy", 10010};
  Function<Result(Layout layout, int attribute, const void* value, size_t bytes)> layout_set{
      table_, "cublasLtMatrixLayoutSetAttribute", 10010};
  Function<Result(Preference* made)> preference_create{table_, "cublasLtMatmulPreferenceCreate", 10010};
  Function<Result(Preference preference)> preference_destroy{table_, "cublasLtMatmulPreferenceDestroy", 10010};
  Function<Result(Preference preference, int attribute, const void* value, size_t bytes)> preference_set{
      table_, "cublasLtMatmulPreferenceSetAttribute", 10010};

  Function<Result(Handle handle, Descriptor descriptor, Layout a, Layout b, Layout c, Layout d, Preference preference,
                  int wanted, MatmulChoice* choices, int* found)>
      choose{table_, "cublasLtMatmulAlgoGetHeuristic", 10010};
  Function<Result(Handle handle, Descriptor descriptor, const void* alpha, const void* a, Layout a_layout,
                  const void* b, Layout b_layout, const void* beta, const void* c, Layout c_layout, void* d,
                  Layout d_layout, const MatmulAlgorithm* algorithm, void* workspace, size_t workspace_bytes,
                  StreamHandle stream)>
      matmul{table_, "cublasLtMatmul", 10010};
};

inline constexpr LibraryName kCublasLt{"cuBLASLt", "libcublasLt.so", "cublas"};
// Places where a cuBLASLt may be. A library of CUDA 13 does not run with a driver of CUDA 12 (1000 * major + 10 *
// minor), so such a driver gets none.
std::vector<std::string> cublas_lt_files(const std::string& driver, const std::string& folders, int driver_version);

}  // namespace hybridnet::cuda
