// Plans of a library, and its handle for each device: Products and Convolutions keep theirs in the same way.
// Threads: any.
// Throws:  what the callers' functions throw.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "device/library_call.h"

namespace hybridnet::cuda {

// Alignments are told apart up to this one, the widest access of a thread, and what bulk copies of tiles need: an array
// has the same plan, and so the same bits, wherever the pool or a plan's arena has placed it.
inline constexpr int64_t kWidestAccess = 16;

inline int64_t alignment_of(const void* operand) {
  const auto address = reinterpret_cast<uintptr_t>(operand);
  int64_t alignment = kWidestAccess;
  while (address % static_cast<uintptr_t>(alignment) != 0) alignment /= 2;
  return alignment;
}

// The plans of a library that are kept, of all devices together: more than the layouts of a large network.
inline constexpr size_t kMostLibraryPlans = 1024;

// A handle of a device, which one thread at a time uses: pushing work takes microseconds.
template <class Handle>
struct DeviceHandle {
  Handle handle = nullptr;  // null: the library does not know the device
  std::mutex mutex;
};

// kNumbers: the properties on which a plan depends, a number each; the first is the device.
template <class Handle, size_t kNumbers>
class PlanCache {
 public:
  using Key = std::array<int64_t, kNumbers>;
  using Plan = std::shared_ptr<const device::LibraryPlan>;
  using OfDevice = DeviceHandle<Handle>;

  // The plan of this key. make(OfDevice&) prepares it if it is not known; a null plan is kept, too. create() makes the
  // handle of a device at its first use.
  template <class Create, class Make>
  Plan get(const Key& key, const Create& create, const Make& make) {
    const std::lock_guard lock(mutex_);
    if (const auto known = places_.find(key); known != places_.end()) {
      plans_.splice(plans_.begin(), plans_, known->second);
      return plans_.front().second;
    }
    Plan made = make(of_device(static_cast<int>(key[0]), create));
    plans_.emplace_front(key, made);
    places_.emplace(key, plans_.begin());
    if (plans_.size() > kMostLibraryPlans) {
      places_.erase(plans_.back().first);
      plans_.pop_back();  // a thread that runs the plan keeps it until it is done
    }
    return made;
  }

  // Drops the plans of a device, then calls destroy(handle); neither is used afterwards.
  template <class Destroy>
  void release(int device, const Destroy& destroy) {
    const std::lock_guard lock(mutex_);
    for (auto plan = plans_.begin(); plan != plans_.end();) {
      const auto next = std::next(plan);
      if (plan->first[0] == device) {
        places_.erase(plan->first);
        plans_.erase(plan);
      }
      plan = next;
    }
    const auto known = devices_.find(device);
    if (known == devices_.end()) return;
    if (known->second.handle) static_cast<void>(destroy(known->second.handle));
    devices_.erase(known);
  }

 private:
  struct HashOfKey {
    size_t operator()(const Key& key) const {
      size_t hash = 0;
      for (const int64_t value : key) hash = (hash ^ static_cast<size_t>(value)) * 0x9e3779b97f4a7c15u;
      return hash ^ (hash >> 32);
    }
  };
  using Known = std::list<std::pair<Key, Plan>>;

  template <class Create>
  OfDevice& of_device(int device, const Create& create) {
    if (const auto known = devices_.find(device); known != devices_.end()) return known->second;
    const Handle handle = create();
    OfDevice& made = devices_[device];
    made.handle = handle;
    return made;
  }

  std::mutex mutex_;  // guards the members below
  std::map<int, OfDevice> devices_;
  Known plans_;  // the last used first
  std::unordered_map<Key, typename Known::iterator, HashOfKey> places_;
};

}  // namespace hybridnet::cuda
