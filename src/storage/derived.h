// Data derived from arrays and kept for later use: packed weights, folded parameters. The process holds one copy per
// array and recipe, shared by every kernel and plan that reads the array.
// Life:    a copy is dropped when one of its arrays is written or dies, when its last user and reader die, or when
//          copies in use need its memory (DerivedBudget); the next use makes it again.
// Threads: every member is safe from any thread. As for the data of an array, no use may overlap with a write: the
//          engine orders both.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/write_listener.h"
#include "storage/evictable_values.h"
#include "storage/recomputable.h"

namespace hybridnet {

class DerivedBudget;
class DerivedCopy;
class DerivedData;

// An array that a copy is made from. derived == nullptr: its writes are unknown, so no copy is kept.
struct DerivedSource {
  const void* data = nullptr;
  DerivedData* derived = nullptr;
  bool operator==(const DerivedSource&) const = default;
};

// The copy that one reader used last, so that its next use takes no lock and shares nothing with other readers. It
// serves one use at a time, on any thread; concurrent uses do without. It must die before the DerivedUsers that get it.
class ReaderCache {
 public:
  struct Held {
    const void* user = nullptr;
    std::vector<DerivedSource> sources;
    std::shared_ptr<DerivedCopy> copy;
    std::shared_ptr<const void> value;
    bool is_for(const void* reader, std::span<const DerivedSource> from) const {
      return user == reader && std::equal(from.begin(), from.end(), sources.begin(), sources.end());
    }
  };
  ReaderCache() = default;
  ~ReaderCache() { forget(take()); }
  ReaderCache(const ReaderCache&) = delete;

  // Takes the held copy for a use that ends with give() or forget(); null: no copy is held, or a use is under way.
  std::unique_ptr<Held> take() noexcept;
  void give(std::unique_ptr<Held> held) noexcept;
  void forget(std::unique_ptr<Held> held) noexcept;  // null: nothing to do

 private:
  friend class DerivedCopy;
  // The caller holds the lock of the copy that has, or had, this reader.
  bool begin_use() noexcept;              // false unless nothing is held
  std::unique_ptr<Held> drop() noexcept;  // null: it is in use, and give() will drop it

  static Held* in_use() { return reinterpret_cast<Held*>(&states_[0]); }
  static Held* in_use_and_dropped() { return reinterpret_cast<Held*>(&states_[1]); }
  static inline void* states_[2] = {};  // their addresses stand for states
  std::atomic<Held*> held_{nullptr};
};

// One copy. Its users own it; its arrays hold weak references to it.
class DerivedCopy {
 public:
  using Value = std::shared_ptr<const void>;
  explicit DerivedCopy(std::string key);
  ~DerivedCopy();
  DerivedCopy(const DerivedCopy&) = delete;

  // Returns the kept value, or make(), which takes `bytes` of memory. Other threads that call get() wait for it.
  Value get(int64_t bytes, const std::function<Value()>& make);
  void touch();   // the value was used
  void retire();  // an array was written or died: drops the value for good
  bool retired() const { return retired_.load(std::memory_order_acquire); }
  bool is_kept() const;  // true if a value is kept for later uses
  const std::string& key() const { return key_; }
  // Begins a use of `value` by a reader, which then holds it. False: the value is not kept, or the reader is in use.
  bool add_reader(ReaderCache& reader, const Value& value);
  void remove_reader(ReaderCache& reader) noexcept;

 private:
  friend class DerivedBudget;
  using Dropped = std::vector<std::shared_ptr<const void>>;  // to be freed after the locks are released
  void drop_value(Dropped& dropped);                         // under the lock
  const std::string key_;
  DerivedBudget& budget_;
  std::atomic<bool> retired_{false};
  std::atomic<uint64_t> last_used_{0};  // in ticks of the budget
  mutable std::mutex mutex_;
  Value value_;                        // not null: counted by the budget
  std::vector<ReaderCache*> readers_;  // the readers that hold the value
  int64_t bytes_ = 0;
  bool was_refused_ = false;
  uint64_t last_refused_ = 0;
};

// The copies of one array. Embedded in the owner of the array's memory.
class DerivedData final : public WriteListener {
 public:
  // `writes`: the pointer that the engine reads to notify a listener of writes; null if the array is never written.
  explicit DerivedData(std::atomic<WriteListener*>* writes = nullptr) : writes_(writes) {}
  ~DerivedData();
  DerivedData(const DerivedData&) = delete;
  void on_write() noexcept override { drop(); }
  void drop() noexcept;

  // Declares that the array's memory is part of a private mapping of a file and was not written so far.
  void set_pages(void* data, int64_t bytes);
  // Declares that the array can be computed again. To be called before the array is shared. Each reader must then make
  // a ReadLease, or call keep_pages() once.
  void set_recomputable(RecomputableArrays& arrays, size_t place);
  // Drops this memory (set_pages, set_recomputable) from the resident set; it is read from the file, or computed, when
  // it is used again. To be called when a copy is kept, while the array is read: its readers will mostly use the copy.
  // Does nothing once the array was written: the file does not have these values.
  void drop_pages() noexcept;
  // Keeps the memory from now on: to be called before code outside the engine may write the array.
  void keep_pages();

  // Announces that a copy that is being made of the array, or of a part of it, can restore the values. Once the copy is
  // kept, the values may be released (EvictableValues), except those whose pages come from a file. For an array that
  // can be computed again: calls RecomputableArrays::offer.
  void offer(EvictableValues::Values values);
  EvictableValues* evictable_values();  // null: nothing was derived from the array
  // Called before code outside of tasks uses the array's memory: it stays until unpin(), or for good.
  void pin() { pins_.fetch_add(1); }
  void unpin() { pins_.fetch_sub(1); }
  void pin_for_good() {
    if (pins_.load() < kPinnedForGood) pins_.fetch_or(kPinnedForGood);
  }
  const std::atomic<int32_t>& pins() const { return pins_; }

  // The copy that `recipe` makes of these arrays. The writes of all of them must be known.
  static std::shared_ptr<DerivedCopy> find_or_add(std::span<const DerivedSource> sources, const std::string& recipe);

 private:
  friend class ReadLease;
  struct Copies {
    std::mutex mutex;
    RecomputableArrays* arrays = nullptr;  // arguments of set_recomputable()
    size_t place = 0;
    EvictableValues evictable_values;
    std::vector<std::weak_ptr<DerivedCopy>> list;
    void* pages = nullptr;  // whole pages of a file, not written so far
    int64_t page_bytes = 0;
  };
  Copies& copies();
  static constexpr int32_t kPinnedForGood = 1 << 30;
  std::atomic<Copies*> copies_{nullptr};  // made by the first use
  std::atomic<int32_t> pins_{0};
  std::atomic<WriteListener*>* const writes_;
};

// While it lives, the source can be read even if it may be dropped (DerivedData::set_recomputable) or its values may be
// released (DerivedData::offer; then only in a task that reads the array). null and other arrays can always be read.
class ReadLease {
 public:
  explicit ReadLease(DerivedData* source);
  ~ReadLease();
  ReadLease(const ReadLease&) = delete;

 private:
  RecomputableArrays* arrays_ = nullptr;
  size_t place_ = 0;
};

// A user of one recipe, with the copies that it used: a kernel that several layers share has one copy per layer. All
// users of a recipe must have the same T.
template <typename T>
class DerivedUser {
 public:
  // `recipe` must name everything that a value depends on besides the arrays.
  explicit DerivedUser(std::string recipe) : recipe_(std::move(recipe)) {}

  // Keeps a value alive during one use.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept
        : value_(std::exchange(other.value_, nullptr)),
          own_(std::move(other.own_)),
          reader_(other.reader_),
          held_(std::move(other.held_)) {}
    Use& operator=(Use&& other) noexcept {
      end();
      value_ = std::exchange(other.value_, nullptr);
      own_ = std::move(other.own_);
      reader_ = other.reader_;
      held_ = std::move(other.held_);
      return *this;
    }
    ~Use() { end(); }
    explicit operator bool() const { return value_ != nullptr; }
    const T* get() const { return value_; }
    const T& operator*() const { return *value_; }
    const T* operator->() const { return value_; }

   private:
    friend class DerivedUser;
    explicit Use(std::shared_ptr<const T> value) : value_(value.get()), own_(std::move(value)) {}
    Use(ReaderCache& reader, std::unique_ptr<ReaderCache::Held> held)
        : value_(static_cast<const T*>(held->value.get())), reader_(&reader), held_(std::move(held)) {}
    void end() noexcept {
      if (held_) reader_->give(std::move(held_));
    }

    const T* value_ = nullptr;
    std::shared_ptr<const T> own_;  // the owner if no reader holds the value
    ReaderCache* reader_ = nullptr;
    std::unique_ptr<ReaderCache::Held> held_;
  };

  // make() returns a std::shared_ptr<const T> of `bytes` bytes. reader: remembers the copy for its next use; may be
  // null.
  template <typename Make>
  Use get(ReaderCache* reader, std::span<const DerivedSource> sources, int64_t bytes, const Make& make) {
    if (!reader) return Use(get(sources, bytes, make));
    std::unique_ptr<ReaderCache::Held> held = reader->take();
    if (held && held->is_for(this, sources)) {
      held->copy->touch();
      return Use(*reader, std::move(held));
    }
    reader->forget(std::move(held));
    std::shared_ptr<DerivedCopy> copy;
    std::shared_ptr<const T> value = get(sources, bytes, make, &copy);
    if (!copy) return Use(std::move(value));
    held = std::make_unique<ReaderCache::Held>(
        ReaderCache::Held{this, {sources.begin(), sources.end()}, copy, DerivedCopy::Value(value)});
    return copy->add_reader(*reader, held->value) ? Use(*reader, std::move(held)) : Use(std::move(value));
  }

  // used_copy: receives the copy that the value belongs to, if there is one; may be null.
  template <typename Make>
  std::shared_ptr<const T> get(std::span<const DerivedSource> sources, int64_t bytes, const Make& make,
                               std::shared_ptr<DerivedCopy>* used_copy = nullptr) {
    const auto read_and_make = [&] {
      std::deque<ReadLease> readings;
      for (const DerivedSource& source : sources) readings.emplace_back(source.derived);
      return make();
    };
    for (const DerivedSource& source : sources) {
      if (!source.derived) return read_and_make();
    }
    std::shared_ptr<DerivedCopy> copy;
    {
      const std::lock_guard lock(mutex_);
      Used& used = used_for(sources);
      copy = used.copy;
      if (used_copy) *used_copy = copy;
      if (std::shared_ptr<const T> value = used.latest.lock()) {
        copy->touch();
        return value;
      }
    }
    // Without the lock: threads that need the copies of other arrays do not wait for this one.
    auto value =
        std::static_pointer_cast<const T>(copy->get(bytes, [&] { return DerivedCopy::Value(read_and_make()); }));
    const bool kept = copy->is_kept();
    for (const DerivedSource& source : sources) kept ? source.derived->drop_pages() : source.derived->keep_pages();
    const std::lock_guard lock(mutex_);
    if (Used& used = used_for(sources); used.copy == copy) used.latest = value;
    return value;
  }

 private:
  struct Used {
    std::vector<DerivedSource> sources;
    std::shared_ptr<DerivedCopy> copy;
    std::weak_ptr<const T> latest;  // kept alive by the copy and by present uses
  };

  // The caller holds the lock.
  Used& used_for(std::span<const DerivedSource> sources) {
    const void* first = sources.empty() ? nullptr : sources[0].data;
    if (used_.size() == used_limit_ && !used_.contains(first)) drop_retired();
    Used& used = used_[first];
    const bool same = std::equal(sources.begin(), sources.end(), used.sources.begin(), used.sources.end());
    if (used.copy && same && !used.copy->retired()) return used;
    used.sources.assign(sources.begin(), sources.end());
    used.copy = DerivedData::find_or_add(sources, recipe_);
    used.latest.reset();
    return used;
  }

  // Arrays that died leave an empty copy behind. An entry has no copy if memory ran out.
  void drop_retired() {
    std::erase_if(used_, [](const auto& entry) { return !entry.second.copy || entry.second.copy->retired(); });
    used_limit_ = std::max<size_t>(2 * used_.size(), kFirstLimit);
  }

  static constexpr size_t kFirstLimit = 16;
  const std::string recipe_;
  std::mutex mutex_;
  std::unordered_map<const void*, Used> used_;  // by the data of the first array
  size_t used_limit_ = kFirstLimit;
};

// Limits the memory of kept copies. A copy that does not fit is made for each use, until the copies in its way are no
// longer used: so the copies of a set that is too large for the limit do not evict each other in turn.
// Owner: Storage.
class DerivedBudget {
 public:
  explicit DerivedBudget(int64_t limit_bytes) : limit_(limit_bytes) {}  // below 0: no limit
  void set_limit(int64_t bytes);                                        // for copies made from now on
  int64_t limit() const;
  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }  // bytes of kept copies

  // Called around a fork, like those of Storage.
  void before_fork() { mutex_.lock(); }
  void after_fork() { mutex_.unlock(); }

 private:
  friend class DerivedCopy;
  bool admit(DerivedCopy& newcomer, int64_t bytes, DerivedCopy::Dropped& dropped);
  void remove(DerivedCopy& copy, int64_t bytes);
  uint64_t tick() const { return tick_.load(std::memory_order_relaxed); }

  mutable std::mutex mutex_;  // may be locked while a copy's mutex is held; in the other order with try_lock only
  int64_t limit_;
  std::atomic<int64_t> bytes_{0};
  std::atomic<uint64_t> tick_{1};  // incremented by each refusal
  std::vector<DerivedCopy*> kept_;
};

}  // namespace hybridnet
