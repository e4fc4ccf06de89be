// Kernels: the implementation of an operator for known dtypes and device, its arguments, and its linking.
// Owner: plans and the cache of imperative calls hold linked kernels; KernelArgs borrow all that they point to for one
// run. Threads: a kernel runs on any thread, also on several at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "hybridnet/base.h"

namespace hybridnet {

class DerivedData;
class ReaderCache;

// Physical order of a tensor's elements. Logical shapes never change with it. kChannelsLast: (N, C, spatial...) stored
// as (N, spatial..., C); appears inside Plans only.
enum class Format : int8_t { kPlain = 0, kChannelsLast = 1 };

struct TensorRef {
  void* data = nullptr;
  const Shape* shape = nullptr;
  DType dtype = DType::kUnknown;
  Format format = Format::kPlain;
  DerivedData* derived = nullptr;    // holds packed copies of the data (derived.h); null: none are kept
  ReaderCache* last_copy = nullptr;  // the copy that this argument used last; null: not remembered
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  int64_t size() const { return shape->size(); }
};

// Key of the counter-based generator for one use of a random op; element i of the result uses counter i.
struct RngKey {
  uint64_t seed = 0, stream = 0;
};

class KeptObjects;  // custom.h

struct KernelArgs {
  const void* params = nullptr;
  std::span<const TensorRef> in;
  std::span<const TensorRef> out;  // unwanted outputs have data == nullptr only if Op::skips_unwanted_outputs
  void* workspace = nullptr;       // Kernel::workspace_bytes() bytes, 64-byte aligned
  RngKey rng;                      // only for ops with random()
  bool train = false;
  KeptObjects* kept = nullptr;  // only for opaque ops in graphs; null if no gradient follows
};

// One linked implementation of a node for known types and device. Linked once, run many times, from any thread, also
// several at once: state that changes during run() must be guarded by the kernel.
class Kernel : public RefCounted<Kernel> {
 public:
  virtual ~Kernel() = default;
  virtual void run(const KernelArgs& args) = 0;
  virtual int64_t workspace_bytes() const { return 0; }
  // True if run() waits for a GPU: such a task does not run on the thread that pushes it.
  virtual bool waits_for_device() const { return false; }
  // For plan_text(): the implementation that linking chose ("brgemm:avx2"); empty if the operator has only one. Loops
  // and branches add the plans of their bodies in further lines.
  virtual std::string description() const { return {}; }
};

struct LinkContext {
  const void* params = nullptr;
  std::span<const TensorSpec> in, out;
  std::span<const Format> in_format, out_format;  // empty: all plain
  Device device;
  bool train = false;
  bool frozen_weights = false;  // inputs other than 0 rarely change: packing them pays
  bool may_round_more = false;  // a rewrite allows algorithms with larger rounding errors where they are faster
};

}  // namespace hybridnet
