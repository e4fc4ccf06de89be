#include "device/library_call.h"

#include <atomic>

namespace hybridnet::device {
namespace {

// A library computes what needs at least this many steps of our own kernel, one after the other. A step of a product is
// the work of a block on 16 of k: 256 multiplications and additions by each of 256 threads, two barriers and a read of
// memory, roughly 0.6 us by the clock rates and latencies of current GPUs (not measured). The library costs the host 5
// to 10 us more than a launch, and cuts a plan's graph in two, which is another launch. So it pays from about 20 us of
// our kernel: 32 steps. A step of a convolution also finds the places of its elements in the image, which about doubles
// its time, and its library costs the host about twice as much (a descriptor of the pointers for each call): the same
// number. Layers of small networks (sums below 512 terms, up to 128 tiles) stay with our kernels, and so their networks
// stay whole graphs.
constexpr int64_t kLeastLibrarySteps = 32;
std::atomic<int64_t> g_least_steps{kLeastLibrarySteps};
std::atomic<bool> g_reduced_float32{false};

}  // namespace

bool pays_for_library(int64_t own_steps) { return own_steps >= g_least_steps.load(std::memory_order_relaxed); }

int64_t set_least_library_steps(int64_t steps) { return g_least_steps.exchange(steps); }

bool allow_reduced_float32(bool allow) { return g_reduced_float32.exchange(allow); }

bool reduces(DType dtype) { return dtype == DType::kFloat32 && g_reduced_float32.load(std::memory_order_relaxed); }

}  // namespace hybridnet::device
