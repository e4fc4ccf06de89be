// Data derived from arrays and kept for later use: packed weights, folded parameters. The process holds one copy per
// array and recipe, shared by every kernel and plan that reads the array.
// Life:    a copy is dropped when one of its arrays is written or dies, when its last user and reader die, or when the
//          limit of DerivedBudget needs its memory for copies in use; the next use makes it again.
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

#include "hybridnet/droppable.h"
#include "hybridnet/stand_in.h"
#include "hybridnet/write_listener.h"

namespace hybridnet {

class DerivedBudget;
class DerivedCopy;
class DerivedData;

// An array that a copy is made from. derived == nullptr: its writes are unknown, so nothing is kept of it.
struct DerivedSource {
  const void* data = nullptr;
  DerivedData* derived = nullptr;
  bool operator==(const DerivedSource&) const = default;
};

// The copy that one reader used last, so that its next use takes no lock and shares nothing with other readers. For one
// use at a time, on any thread: others meanwhile do without. It dies before the users that it is given to.
class LastCopy {
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
  LastCopy() = default;
  ~LastCopy() { forget(take()); }
  LastCopy(const LastCopy&) = delete;

  // What is held, for a use that ends with give() or forget(); null: nothing is, or a use is under way.
  std::unique_ptr<Held> take() noexcept;
  void give(std::unique_ptr<Held> held) noexcept;
  void forget(std::unique_ptr<Held> held) noexcept;  // null: nothing to do

 private:
  friend class DerivedCopy;
  // Under the lock of the copy that holds or held it.
  bool begin_use() noexcept;              // where nothing is held
  std::unique_ptr<Held> drop() noexcept;  // null: it is in use, and give() will drop it

  static Held* in_use() { return reinterpret_cast<Held*>(&states_[0]); }
  static Held* in_use_and_dropped() { return reinterpret_cast<Held*>(&states_[1]); }
  static inline void* states_[2] = {};  // whose addresses stand for states
  std::atomic<Held*> held_{nullptr};
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
  bool is_kept() const;  // is there a value, for later uses, too?
  const std::string& key() const { return key_; }
  // A use of `value` by a reader, which holds it from then on. False: the value is not kept, or the reader is in use.
  bool add_reader(LastCopy& reader, const Value& value);
  void remove_reader(LastCopy& reader) noexcept;

 private:
  friend class DerivedBudget;
  using Dropped = std::vector<std::shared_ptr<const void>>;  // to be freed after the locks
  void drop_value(Dropped& dropped);                         // under the lock
  const std::string key_;
  DerivedBudget& budget_;
  std::atomic<bool> retired_{false};
  std::atomic<uint64_t> last_used_{0};  // in ticks of the budget
  mutable std::mutex mutex_;
  Value value_;                     // not null: counted by the budget
  std::vector<LastCopy*> readers_;  // that hold it
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

  // The array's memory is part of a private mapping of a file, and nobody has written it so far.
  void set_pages(void* data, int64_t bytes);
  // The array can be computed again. Before others see it; who reads it makes a SourceReading, or calls keep_pages()
  // once.
  void set_droppable(DroppableArrays& arrays, size_t place);
  // Takes such memory out of the resident set. The system reads it from the file again when it is used. To be called
  // when a copy is kept, while the array is read: its readers will mostly use the copy. Does nothing once the array was
  // written: the file does not have these values.
  void drop_pages() noexcept;
  // The memory stays from now on: before code outside the engine may write the array.
  void keep_pages();

  // A copy that is being made of the array, or of a part of it, can give the values back. Once it is kept, they may be
  // released (StandIn); not those of arrays whose pages come from a file. Of an array that can be computed again:
  // DroppableArrays::offer.
  void offer(StandIn::Values values);
  StandIn* stand_in();  // null: nothing was derived from the array
  // Code outside of tasks uses the array's memory: it stays until unpin(), or from now on.
  void pin() { pins_.fetch_add(1); }
  void unpin() { pins_.fetch_sub(1); }
  void pin_for_good() {
    if (pins_.load() < kPinnedForGood) pins_.fetch_or(kPinnedForGood);
  }
  const std::atomic<int32_t>& pins() const { return pins_; }

  // The copy that `recipe` makes of these arrays, all with known writes.
  static std::shared_ptr<DerivedCopy> find_or_add(std::span<const DerivedSource> sources, const std::string& recipe);

 private:
  friend class SourceReading;
  struct Copies {
    std::mutex mutex;
    DroppableArrays* arrays = nullptr;  // where set_droppable() put it
    size_t place = 0;
    StandIn stand_in;
    std::vector<std::weak_ptr<DerivedCopy>> list;
    void* pages = nullptr;  // whole pages of a file that nobody has written
    int64_t page_bytes = 0;
  };
  Copies& copies();
  static constexpr int32_t kPinnedForGood = 1 << 30;
  std::atomic<Copies*> copies_{nullptr};  // made by the first use
  std::atomic<int32_t> pins_{0};
  std::atomic<WriteListener*>* const writes_;
};

// While it lives, an array can be read that may be dropped (DerivedData::set_droppable), or whose values may be
// released (DerivedData::offer): the latter in a task that reads the array. null and other arrays: always.
class SourceReading {
 public:
  explicit SourceReading(DerivedData* source);
  ~SourceReading();
  SourceReading(const SourceReading&) = delete;

 private:
  DroppableArrays* arrays_ = nullptr;
  size_t place_ = 0;
};

// A user of one recipe, with the copies that it used: a kernel that several layers share has one for each of them. All
// users of a recipe have the same T.
template <typename T>
class DerivedUser {
 public:
  // `recipe` must name all that a value depends on besides the arrays.
  explicit DerivedUser(std::string recipe) : recipe_(std::move(recipe)) {}

  // A value, for as long as this lives.
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
    Use(LastCopy& reader, std::unique_ptr<LastCopy::Held> held)
        : value_(static_cast<const T*>(held->value.get())), reader_(&reader), held_(std::move(held)) {}
    void end() noexcept {
      if (held_) reader_->give(std::move(held_));
    }

    const T* value_ = nullptr;
    std::shared_ptr<const T> own_;  // where no reader holds it
    LastCopy* reader_ = nullptr;
    std::unique_ptr<LastCopy::Held> held_;
  };

  // make(): std::shared_ptr<const T> of `bytes` bytes. reader: remembers the copy for its next use; may be null.
  template <typename Make>
  Use get(LastCopy* reader, std::span<const DerivedSource> sources, int64_t bytes, const Make& make) {
    if (!reader) return Use(get(sources, bytes, make));
    std::unique_ptr<LastCopy::Held> held = reader->take();
    if (held && held->is_for(this, sources)) {
      held->copy->touch();
      return Use(*reader, std::move(held));
    }
    reader->forget(std::move(held));
    std::shared_ptr<DerivedCopy> copy;
    std::shared_ptr<const T> value = get(sources, bytes, make, &copy);
    if (!copy) return Use(std::move(value));
    held = std::make_unique<LastCopy::Held>(
        LastCopy::Held{this, {sources.begin(), sources.end()}, copy, DerivedCopy::Value(value)});
    return copy->add_reader(*reader, held->value) ? Use(*reader, std::move(held)) : Use(std::move(value));
  }

  // used_copy: receives the copy that the value is of, if there is one; may be null.
  template <typename Make>
  std::shared_ptr<const T> get(std::span<const DerivedSource> sources, int64_t bytes, const Make& make,
                               std::shared_ptr<DerivedCopy>* used_copy = nullptr) {
    const auto read_and_make = [&] {
      std::deque<SourceReading> readings;
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
    // Without the lock: threads that want the copies of other arrays need not wait for this one.
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
    std::weak_ptr<const T> latest;  // kept by copy and by those that use it now
  };

  // Under the lock.
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

  // Arrays that died leave an empty copy behind; where memory ran out there is none.
  void drop_retired() {
    std::erase_if(used_, [](const auto& entry) { return !entry.second.copy || entry.second.copy->retired(); });
    used_limit_ = std::max<size_t>(2 * used_.size(), kFirstLimit);
  }

  static constexpr size_t kFirstLimit = 16;
  const std::string recipe_;
  std::mutex mutex_;
  std::unordered_map<const void*, Used> used_;  // by the first array
  size_t used_limit_ = kFirstLimit;
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
  bool admit(DerivedCopy& newcomer, int64_t bytes, DerivedCopy::Dropped& dropped);
  void remove(DerivedCopy& copy, int64_t bytes);
  uint64_t tick() const { return tick_.load(std::memory_order_relaxed); }

  mutable std::mutex mutex_;  // taken while that of a copy is held; the other way round with try_lock only
  int64_t limit_;
  std::atomic<int64_t> bytes_{0};
  std::atomic<uint64_t> tick_{1};  // moves on with each refusal
  std::vector<DerivedCopy*> kept_;
};

}  // namespace hybridnet
