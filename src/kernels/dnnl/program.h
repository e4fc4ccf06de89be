// A small interface to oneDNN: a Program is a short list of primitives that run one after the other on tensors of the
// caller and on parts of one workspace. Implementations, layouts and offsets are chosen when it is built. A run
// allocates nothing and takes no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_slots.h"
#include "hybridnet/base.h"
#include "hybridnet/storage.h"
#include "hybridnet/threads.h"
#include "kernels/product/packed.h"

namespace hybridnet::onednn {

using Desc = dnnl::memory::desc;

const dnnl::engine& cpu_engine();
dnnl_stream_t thread_stream();  // the calling thread's; lives as long as it

// float32 and bfloat16 only; the dtype must be one of them.
dnnl::memory::data_type data_type(DType dtype);
// True if oneDNN can multiply bfloat16 on this machine: AVX-512 at least.
bool has_bfloat16();

// The location of a primitive's argument: tensor `external` of run(), or `offset` bytes into the workspace.
struct Place {
  int external = -1;
  int64_t offset = -1;
  static Place tensor(int slot) { return {slot, -1}; }
};

class Program {
 public:
  Program() = default;
  Program(Program&&) = default;
  Program& operator=(Program&&) = default;
  ~Program();

  // Reserves room in the workspace for a tensor of this layout.
  Place reserve(const Desc& desc) { return reserve_bytes(static_cast<int64_t>(desc.get_size())); }
  Place reserve_bytes(int64_t bytes);
  // Appends a primitive. Its scratchpad (if any) is reserved here; `pd` must have been created with user_scratchpad().
  struct Argument {
    int id;  // DNNL_ARG_*
    Desc desc;
    Place place;
  };
  void add(const dnnl::primitive_desc_base& pd, std::vector<Argument> arguments);
  // Appends a copy between layouts if they differ. Returns the place of the result: `place` if they are equal.
  Place reorder(const Desc& from, Place place, const Desc& to);
  void reorder_into(const Desc& from, Place place, const Desc& to, Place target);

  int64_t workspace_bytes() const { return bytes_; }
  bool empty() const { return steps_.empty(); }
  // `externals`: one pointer per slot that the places name. Safe from several threads at once.
  void run(std::span<void* const> externals, void* workspace) const;

 private:
  struct Step {
    dnnl::primitive primitive;
    std::vector<Argument> arguments;
  };
  struct Bound;  // memory objects for one run at a time
  std::unique_ptr<Bound> bind() const;
  std::vector<Step> steps_;
  int64_t bytes_ = 0;
  struct Idle {  // kept for concurrent runs; more than these are created and deleted by their run
    Idle();
    ~Idle();
    ThreadSlots<std::unique_ptr<Bound>> spares;
  };
  std::unique_ptr<Idle> idle_ = std::make_unique<Idle>();
};

// Names the copy of a tensor from one layout to another; equal names mean equal bytes.
std::string reorder_name(const Desc& from, const Desc& to);

// The steps that restore the input of a reorder from `plain` to `packed`, with the same bits: values are copied
// unchanged.
std::vector<kernels::Unpacking> unpack_of(const Desc& plain, const Desc& packed);

// Attributes whose scratchpad the caller provides.
dnnl::primitive_attr user_scratchpad();

// oneDNN fixes the number of threads when a primitive is created, so a kernel keeps one variant per number of cores
// that it ran with. Rounds down to a few numbers, so that a large machine does not collect dozens of variants.
int rounded_cores(int cores);
// The number of cores above which waking more costs more than it saves.
int64_t worthwhile_cores(double flops);
// The number of cores for a primitive with this many operations on this thread: worthwhile, granted and rounded.
int cores_for(double flops);

// Leases the cores while a primitive runs.
class PrimitiveCores {
 public:
  explicit PrimitiveCores(double flops);
  int count() const { return count_; }

 private:
  const CoreLease lease_;
  const int count_;
  const CoreScope scope_;
};

template <typename Variant>
class PerCores {
 public:
  // make(): builds the variant for the cores of the calling thread's scope.
  template <typename Make>
  const Variant& get(int cores, Make&& make) const {
    if (const Entry* known = find(cores)) return known->variant;
    const std::lock_guard lock(mutex_);
    if (const Entry* known = find(cores)) return known->variant;
    const CoreScope scope(cores);
    entries_.push_back(std::make_unique<const Entry>(Entry{cores, make(), newest_.load(std::memory_order_relaxed)}));
    newest_.store(entries_.back().get(), std::memory_order_release);
    return entries_.back()->variant;
  }

 private:
  struct Entry {
    int cores;
    Variant variant;
    const Entry* older;
  };
  const Entry* find(int cores) const {  // lock-free
    const Entry* entry = newest_.load(std::memory_order_acquire);
    while (entry && entry->cores != cores) entry = entry->older;
    return entry;
  }
  mutable std::atomic<const Entry*> newest_{nullptr};
  mutable std::mutex mutex_;  // guards additions
  mutable std::vector<std::unique_ptr<const Entry>> entries_;
};

}  // namespace hybridnet::onednn
