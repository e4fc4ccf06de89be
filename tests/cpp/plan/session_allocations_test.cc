// Runs of a session allocate nothing, for any operator in its model. Allocations inside libraries are not counted:
// malloc (oneDNN's GEMM, LAPACK), and oneDNN's `new` for more than the blocks that a thread keeps.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>

#include "graph/build_graph.h"
#include "hybridnet/op.h"
#include "ops/op_samples.h"
#include "plan/bound_run.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HN_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HN_SANITIZED 1
#endif
#endif

namespace {
std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};

[[maybe_unused]] bool is_onednn(void* caller) {
  Dl_info info;
  return dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
         (std::strstr(info.dli_fname, "libdnnl") != nullptr || std::strstr(info.dli_fname, "libhnteam") != nullptr);
}
}  // namespace

#ifndef HN_SANITIZED
// Calls from the library come here, too.
void* operator new(size_t bytes) {
  if (counting.load(std::memory_order_relaxed) && !is_onednn(__builtin_return_address(0)))
    allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* block = std::malloc(bytes == 0 ? 1 : bytes)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
#endif

namespace hybridnet::graph_testing {
namespace {

// Not for prediction: an update creates parameters of its own.
const std::set<std::string> kExceptions = {"_update_with_rates"};
// Convolutions of 16-bit floats convert and pack their weights in each run.
const std::set<std::string> kExceptionsOfHalves = {"Convolution", "Deconvolution", "UpSampling", "_fused_convolution",
                                                   "_conv_backward_data"};

GraphDefinition definition_of(const Op& op, const Sample& sample) {
  GraphDefinition definition;
  std::vector<NodeEntry> inputs;
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    inputs.push_back(var("input" + std::to_string(i)));
    definition.inputs.push_back(inputs.back().node);
  }
  const ParamsPtr params = op.schema->parse(sample.attrs, op.name, false);
  const NodePtr node = make_node(op, op.name, params, inputs);
  const int outputs = op.num_visible_outputs(params->data());
  for (int i = 0; i < outputs; ++i) definition.outputs.push_back({node, static_cast<uint32_t>(i)});
  return definition;
}

// Returns null for operators that no session runs: sizes that depend on values, tables of random numbers, and the like.
std::unique_ptr<BoundRun> session_of(const Op& op, const Sample& sample, DType dtype) {
  const CallOptions options{.name = op.name, .static_alloc = true};
  try {
    const std::vector<NDArray> inputs = hybridnet::testing::SampleRun(op, sample, false).arrays(dtype);
    return std::make_unique<BoundRun>(make_ref<GraphCallable>(definition_of(op, sample), options), inputs,
                                      std::span<const NDArray>(), BoundRun::Calls::kMany);
  } catch (const Error&) {
    return nullptr;
  }
}

int64_t allocations_of(BoundRun& call, int runs) {
  allocations = 0;
  counting = true;
  for (int i = 0; i < runs; ++i) call.run();
  counting = false;
  return allocations;
}

TEST(SessionAllocations, NoOperatorAllocatesInRunsAfterTheFirstOnes) {
#ifdef HN_SANITIZED
  GTEST_SKIP() << "allocations cannot be counted: the sanitizer has an operator new of its own";
#endif
  int runs = 0;
  for (const Op* op : Runtime::get().ops().all()) {
    if (op->opaque || op->data_dependent_shape || kExceptions.contains(op->name)) continue;
    for (size_t i = 0; i < op->samples.size(); ++i) {
      for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
        if (dtype == DType::kFloat16 && kExceptionsOfHalves.contains(op->name)) continue;
        const std::unique_ptr<BoundRun> call = session_of(*op, op->samples[i], dtype);
        if (!call) continue;
        for (int k = 0; k < 5; ++k) call->run();
        EXPECT_EQ(allocations_of(*call, 4), 0) << op->name << ", sample " << i << ", " << dtype_name(dtype);
        ++runs;
      }
    }
  }
  EXPECT_GT(runs, 4000);
}

}  // namespace
}  // namespace hybridnet::graph_testing
