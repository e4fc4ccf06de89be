// Data derived from arrays and kept for later use: packed weights, folded parameters. The process holds one copy per
// array and recipe, shared by every kernel and plan that reads the array.
// Life:    a copy is dropped when one of its arrays is written or dies, when its last user dies, or when the limit of
//          DerivedBudget needs its memory for copies in use; the next use makes it again.
// Threads: every member is safe from any thread. As for the data of an array, no use may overlap with a write: the
//          engine orders both.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hybridnet/write_listener.h"

namespace hybridnet {

class DerivedBudget;
class DerivedData;

// An array that a copy is made from. derived == nullptr: its writes are unknown, so nothing is kept of it.
struct DerivedSource {
  const void* data = nullptr;
  DerivedData* derived = nullptr;
  bool operator==(const DerivedSource&) const = default;
};

// One copy. Its users own it; its arrays know it.
class DerivedCopy {
 public:
  using Value = std::shared_ptr<const void>;
  explicit DerivedCopy(std::string key);
  ~DerivedCopy();
  DerivedCopy(const DerivedCopy&) = delete;

  // The value that is kept, or make(), which takes `bytes` of memory. Threads that ask meanwhile wait for it.
  Value get(int64_t bytes, const std::function<Value()>& make);
  void touch();   // the value was used
  void retire();  // an array was written or died: drops the value for good
  bool retired() const { return retired_.load(std::memory_order_acquire); }
  const std::string& key() const { return key_; }

 private:
  friend class DerivedBudget;
  const std::string key_;
  DerivedBudget& budget_;
  std::atomic<bool> retired_{false};
  std::atomic<uint64_t> last_used_{0};  // in ticks of the budget
  std::mutex mutex_;
  Value value_;  // not null: counted by the budget
  int64_t bytes_ = 0;
  bool was_refused_ = false;
  uint64_t last_refused_ = 0;
};

// The copies of one array. Embedded in the owner of the array's memory.
class DerivedData final : public WriteListener {
 public:
  // `writes`: where the engine looks for a listener to the array's writes; null if the array is never written.
  explicit DerivedData(std::atomic<WriteListener*>* writes = nullptr) : writes_(writes) {}
  ~DerivedData();
  DerivedData(const DerivedData&) = delete;
  void on_write() noexcept override { drop(); }
  void drop() noexcept;

  // The copy that `recipe` makes of these arrays, all with known writes.
  static std::shared_ptr<DerivedCopy> find_or_add(std::span<const DerivedSource> sources, const std::string& recipe);

 private:
  struct Copies {
    std::mutex mutex;
    std::vector<std::weak_ptr<DerivedCopy>> list;
  };
  Copies& copies();
  std::atomic<Copies*> copies_{nullptr};  // made by the first use
  std::atomic<WriteListener*>* const writes_;
};

// A user of one recipe, with the copy that it used last. All users of a recipe have the same T.
template <typename T>
class DerivedUser {
 public:
  // `recipe` must name all that a value depends on besides the arrays.
  explicit DerivedUser(std::string recipe) : recipe_(std::move(recipe)) {}

  // make(): std::shared_ptr<const T> of `bytes` bytes.
  template <typename Make>
  std::shared_ptr<const T> get(std::span<const DerivedSource> sources, int64_t bytes, const Make& make) {
    for (const DerivedSource& source : sources) {
      if (!source.derived) return make();
    }
    const std::lock_guard lock(mutex_);
    if (copy_ && std::equal(sources.begin(), sources.end(), sources_.begin(), sources_.end())) {
      if (std::shared_ptr<const T> value = latest_.lock()) {
        copy_->touch();
        return value;
      }
    }
    copy_ = DerivedData::find_or_add(sources, recipe_);
    sources_.assign(sources.begin(), sources.end());
    auto value = std::static_pointer_cast<const T>(copy_->get(bytes, [&] { return DerivedCopy::Value(make()); }));
    latest_ = value;
    return value;
  }

 private:
  const std::string recipe_;
  std::mutex mutex_;
  std::vector<DerivedSource> sources_;
  std::shared_ptr<DerivedCopy> copy_;
  std::weak_ptr<const T> latest_;  // kept by copy_ and by those that use it now
};

// How much memory copies may keep. A copy that does not fit is made for each use, until the copies in its way are
// no longer used: so a set of copies that is too large for the limit does not make each other's room in turn.
// Owner: Storage.
class DerivedBudget {
 public:
  explicit DerivedBudget(int64_t limit_bytes) : limit_(limit_bytes) {}  // below 0: no limit
  void set_limit(int64_t bytes);                                        // for copies made from now on
  int64_t limit() const;
  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }  // that copies keep

  // Around a fork, as in Storage.
  void before_fork() { mutex_.lock(); }
  void after_fork() { mutex_.unlock(); }

 private:
  friend class DerivedCopy;
  bool admit(DerivedCopy& newcomer, int64_t bytes, std::vector<DerivedCopy::Value>& dropped);
  void remove(DerivedCopy& copy, int64_t bytes);
  uint64_t tick() const { return tick_.load(std::memory_order_relaxed); }

  mutable std::mutex mutex_;  // taken while that of a copy is held; the other way round with try_lock only
  int64_t limit_;
  std::atomic<int64_t> bytes_{0};
  std::atomic<uint64_t> tick_{1};  // moves on with each refusal
  std::vector<DerivedCopy*> kept_;
};

}  // namespace hybridnet
