#include "imperative/write_history.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "imperative/view_function.h"

namespace hybridnet {
namespace {

// The bytes of a range that are not claimed yet.
class Unclaimed {
 public:
  Unclaimed(int64_t begin, int64_t end) {
    if (begin < end) ranges_.emplace(begin, end);
  }
  bool empty() const { return ranges_.empty(); }

  // Claims [begin, end) and calls f(begin, end) for each part of it that was unclaimed.
  template <typename F>
  void claim(int64_t begin, int64_t end, F&& f) {
    auto it = ranges_.lower_bound(begin);
    if (it != ranges_.begin() && std::prev(it)->second > begin) --it;
    while (it != ranges_.end() && it->first < end) {
      const auto [from, to] = *it;
      it = ranges_.erase(it);
      f(std::max(from, begin), std::min(to, end));
      if (from < begin) ranges_.emplace(from, begin);
      if (to > end) ranges_.emplace(end, to);
    }
  }
  template <typename F>
  void claim_rest(F&& f) {
    for (const auto& [begin, end] : ranges_) f(begin, end);
    ranges_.clear();
  }

 private:
  std::map<int64_t, int64_t> ranges_;
};

int64_t begin_of(const NDArray& a) { return a.impl()->offset; }
// Sparse arrays are written as a whole.
int64_t end_of(const NDArray& a) { return a.impl()->offset + (a.is_sparse() ? 1 : a.bytes()); }

[[noreturn]] void throw_other_dtype(const TensorSpec& view, const TensorSpec& source) {
  throw GradientError({.message = "the array shows memory that was written while recording as another dtype",
                       .because = "it has " + view.str() + ", the written values have " + source.str(),
                       .fix = "convert by astype(), which copies"});
}

// Removes the writes that newer ones cover, and returns the number of the others. gone: receives the removed writes.
template <typename Write>
size_t forget_covered(std::vector<Write>* writes, std::type_identity_t<std::vector<Write>*> gone) {
  std::vector<Write> kept;
  Unclaimed rest(0, INT64_MAX);
  for (size_t i = writes->size(); i-- > 0;) {
    Write& write = (*writes)[i];
    bool shows = false;
    rest.claim(write.begin, write.end, [&](int64_t, int64_t) { shows = true; });
    if (shows)
      kept.push_back(std::move(write));
    else if (gone != nullptr)
      gone->push_back(std::move(write));
  }
  writes->assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  return writes->size();
}

// The ranges of a view and the marks of their values.
class Composition {
 public:
  Composition(int64_t begin, const TensorSpec& view)
      : begin_(begin), view_(view), width_(static_cast<int64_t>(dtype_size(view.dtype))) {}

  void add(int64_t begin, int64_t end, const Ref<TapeMark>& mark, const TensorSpec& spec, int64_t spec_begin) {
    if (spec.dtype != view_.dtype) throw_other_dtype(view_, spec);
    const auto known = std::find(marks_.begin(), marks_.end(), mark);
    const auto source = static_cast<size_t>(known - marks_.begin());
    if (known == marks_.end()) {
      marks_.push_back(mark);
      specs_.push_back(spec);
    }
    pieces_.push_back({(begin - begin_) / width_, (end - begin) / width_, source, (begin - spec_begin) / width_});
  }

  Ref<TapeMark> mark() && {
    if (pieces_.empty()) return {};
    const ViewPiece& first = pieces_[0];
    if (pieces_.size() == 1 && marks_[0]->node && specs_[0] == view_ && first.size == view_.shape.size())
      return make_mark(marks_[0]->node, marks_[0]->index);
    Ref<TapeNode> node = make_ref<TapeNode>();
    node->sequence = next_tape_time();
    node->train = autograd_state().training;
    node->where = current_location();
    for (size_t i = 0; i < marks_.size(); ++i) node->inputs.push_back({marks_[i], specs_[i], {}});
    node->outputs.push_back({view_, {}});
    node->function = Ref<RecordedFunction>(new ViewFunction(view_, std::move(specs_), std::move(pieces_)));
    return make_mark(node, 0);
  }

 private:
  const int64_t begin_;
  const TensorSpec view_;
  const int64_t width_;
  std::vector<Ref<TapeMark>> marks_;
  std::vector<TensorSpec> specs_;
  std::vector<ViewPiece> pieces_;
};

// Finds the steps behind marks that hold a chunk, and gives them handles of their own, so that the program's handles
// die when the program releases them.
class HoldersOf {
 public:
  explicit HoldersOf(const Chunk& chunk) : chunk_(chunk) {}

  void follow(const TapeMark* mark) {
    if (mark != nullptr && seen_.insert(mark).second) marks_.push_back(mark);
  }
  // Returns the number of handles by which the steps hold the chunk. replaced: receives the handles that were replaced.
  int64_t count(std::vector<NDArray>* replaced) {
    replaced_ = replaced;
    while (!marks_.empty()) {
      const TapeMark* mark = marks_.back();
      marks_.pop_back();
      if (mark->node && !mark->node->released && seen_.insert(mark->node.get()).second) enter(*mark->node);
    }
    return count_;
  }
  size_t num_seen() const { return seen_.size(); }

 private:
  void enter(TapeNode& node) {
    const auto visit = [&](NDArray& saved) {
      if (!saved) return;
      if (saved.impl()->chunk.get() != &chunk_) return follow(own_mark_of(saved));
      ++count_;
      if (saved.impl()->ref_count() > 1) replaced_->push_back(std::exchange(saved, another_handle(saved)));
    };
    for (TapeNode::Input& input : node.inputs) {
      follow(input.mark.get());
      visit(input.saved.array);
    }
    for (TapeNode::Output& output : node.outputs) visit(output.saved.array);
    if (node.function) node.function->visit_saved(visit);
  }

  const Chunk& chunk_;
  std::vector<NDArray>* replaced_ = nullptr;
  int64_t count_ = 0;
  std::vector<const TapeMark*> marks_;
  std::unordered_set<const void*> seen_;
};

// The histories whose writes have gradients, each with the thread that wrote last. Only that thread walks the steps of
// the writes, because it may be changing them.
class OpenHistories {
 public:
  static OpenHistories& instance() {
    static auto& open = *new OpenHistories;
    return open;
  }
  void add(WriteHistory* history) {
    const std::lock_guard lock(mutex_);
    histories_[history] = std::this_thread::get_id();
    count_.store(histories_.size(), std::memory_order_relaxed);
  }
  void remove(WriteHistory* history) {
    const std::lock_guard lock(mutex_);
    histories_.erase(history);
    count_.store(histories_.size(), std::memory_order_relaxed);
  }
  template <typename F>
  void for_this_thread(F&& f) {
    if (count_.load(std::memory_order_relaxed) == 0) return;
    const std::lock_guard lock(mutex_);
    for (const auto& [history, thread] : histories_)
      if (thread == std::this_thread::get_id()) f(*history);
  }

 private:
  std::mutex mutex_;
  std::atomic<size_t> count_{0};
  std::unordered_map<WriteHistory*, std::thread::id> histories_;
};

}  // namespace

WriteHistory::WriteHistory(const Chunk& chunk)
    : chunk_(chunk), first_overwrites_(chunk.overwrites.load(std::memory_order_relaxed)) {}

WriteHistory::~WriteHistory() {
  if (is_open_) OpenHistories::instance().remove(this);
}

WriteHistory& WriteHistory::of(Chunk& chunk) {
  if (WriteHistory* known = find(chunk)) return *known;
  auto made = std::make_unique<WriteHistory>(chunk);
  MemoryHistory* expected = nullptr;
  if (chunk.history.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) return *made.release();
  return static_cast<WriteHistory&>(*expected);
}

void WriteHistory::note(const NDArray& target, const Ref<TapeMark>& mark) {
  const int64_t begin = begin_of(target), end = end_of(target);
  if (begin == end) return;
  std::vector<Write> gone;  // destroyed after the lock is released
  if (mark && (!is_open_ || owner_ != std::this_thread::get_id())) {
    OpenHistories::instance().add(this);
    owner_ = std::this_thread::get_id();
    is_open_ = true;
  }
  const std::lock_guard lock(mutex_);
  while (!writes_.empty() && begin <= writes_.back().begin && writes_.back().end <= end) {
    gone.push_back(std::move(writes_.back()));
    writes_.pop_back();
  }
  const uint64_t time = next_tape_time();
  if (mark) mark->time.store(time, std::memory_order_relaxed);
  writes_.push_back(
      {begin, end, time, chunk_.overwrites.load(std::memory_order_relaxed), mark, target.spec(), current_location()});
  last_time_.store(time, std::memory_order_release);
  if (writes_.size() >= compact_at_) compact_at_ = 2 * forget_covered(&writes_, &gone) + 64;
}

// Returns the newest write into a part of the array after `since`; recorded: only writes with a gradient.
const WriteHistory::Write* WriteHistory::last_overlap(const NDArray& array, uint64_t since, bool recorded) const {
  const int64_t begin = begin_of(array), end = end_of(array);
  for (size_t i = writes_.size(); i-- > 0 && writes_[i].time > since;) {
    const Write& write = writes_[i];
    if (write.begin < end && begin < write.end && (!recorded || has_gradient(write.mark.get()))) return &write;
  }
  return nullptr;
}

void WriteHistory::refuse_overwritten_leaf(const NDArray& array, const TapeMark& own) const {
  const Write* write = last_overlap(array, own.time.load(std::memory_order_relaxed), true);
  if (write != nullptr) throw_written_leaf("", *own.leaf_shown(), write->where);
}

WriteHistory::Base WriteHistory::base_of(const NDArray& array) {
  TapeMark* own = own_mark_of(array);
  Base base{.mark = {}, .time = 0, .begin = begin_of(array), .spec = array.spec()};
  if (own == nullptr) return base;
  // A leaf stays a leaf after writes: writes with a gradient were refused, and constants become its values.
  base.time = own->leaf_shown() ? UINT64_MAX : own->time.load(std::memory_order_relaxed);
  if (has_gradient(own)) base.mark = Ref<TapeMark>(own);
  return base;
}

Ref<TapeMark> WriteHistory::compose(const Base& base, const NDArray& view) const {
  Composition made(begin_of(view), view.spec());
  Unclaimed rest(begin_of(view), end_of(view));
  for (size_t i = writes_.size(); i-- > 0 && writes_[i].time > base.time && !rest.empty();) {
    const Write& write = writes_[i];
    const bool constant = !has_gradient(write.mark.get());
    rest.claim(write.begin, write.end, [&](int64_t begin, int64_t end) {
      if (!constant) made.add(begin, end, write.mark, write.spec, write.begin);
    });
  }
  if (base.mark)
    rest.claim_rest([&](int64_t begin, int64_t end) { made.add(begin, end, base.mark, base.spec, base.begin); });
  return std::move(made).mark();
}

TapeMark* WriteHistory::current(const NDArray& array) {
  const auto knows_all = [this](const TapeMark* own) {
    return own != nullptr &&
           (own->detached || own->time.load(std::memory_order_relaxed) >= last_time_.load(std::memory_order_acquire));
  };
  if (TapeMark* own = own_mark_of(array); knows_all(own)) return own;
  Ref<TapeMark> before;  // destroyed after the lock is released
  {
    const std::lock_guard lock(mutex_);
    TapeMark* own = own_mark_of(array);
    if (knows_all(own)) return own;
    before = Ref<TapeMark>(own);
    const Ref<TapeMark> mark = mark_now(array, own);
    mark->time.store(last_time_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    if (mark.get() == own) return own;
    if (before) mark->is_buffer = before->is_buffer;
    array.impl()->tape = Ref<TapeInfo>(mark.get());
  }
  break_cycles({&array, 1});
  return own_mark_of(array);
}

Ref<TapeMark> WriteHistory::mark_now(const NDArray& array, TapeMark* own) const {
  const bool shows_leaf = own && own->leaf_shown() != nullptr;
  if (shows_leaf) refuse_overwritten_leaf(array, *own);
  const uint64_t since = own ? own->time.load(std::memory_order_relaxed) : 0;
  Ref<TapeMark> mark =
      shows_leaf || last_overlap(array, since, false) == nullptr ? Ref<TapeMark>(own) : compose(base_of(array), array);
  return mark ? mark : make_ref<TapeMark>();
}

Ref<TapeMark> WriteHistory::mark_of_view(const NDArray& array, const NDArray& view) {
  const std::lock_guard lock(mutex_);
  if (const TapeMark* own = own_mark_of(array); own && own->leaf_shown() != nullptr)
    refuse_overwritten_leaf(array, *own);
  return compose(base_of(array), view);
}

std::optional<SourceLocation> WriteHistory::overwritten_at(const SavedArray& saved) const {
  const int64_t begin = begin_of(saved.array), end = end_of(saved.array);
  const std::lock_guard lock(mutex_);
  const auto hits = [&](const auto& write) {
    return write.overwrites > saved.overwrites && write.begin < end && begin < write.end;
  };
  if (const auto found = std::find_if(writes_.rbegin(), writes_.rend(), hits); found != writes_.rend())
    return found->where;
  if (const auto found = std::find_if(overwritten_.rbegin(), overwritten_.rend(), hits); found != overwritten_.rend())
    return found->where;
  return {};
}

Ref<TapeInfo> WriteHistory::constant() const {
  const Ref<TapeMark> mark = make_mark({}, 0);
  mark->detached = true;
  return Ref<TapeInfo>(mark.get());
}

void WriteHistory::array_dies(const Chunk&) noexcept {
  if (owner_ != std::this_thread::get_id() || --deaths_to_wait_for_ > 0) return;
  Dropped dropped;
  drop_if_unseen(1, &dropped);
}

// dying: the number of handles that are about to die.
void WriteHistory::drop_if_unseen(int64_t dying, Dropped* dropped) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || writes_.empty()) return;
  HoldersOf holders(chunk_);
  for (const Write& write : writes_) holders.follow(write.mark.get());
  const int64_t held = holders.count(&dropped->handles);
  // Adds handles that several steps shared and that nothing else held.
  dying += std::count_if(dropped->handles.begin(), dropped->handles.end(), [&](const NDArray& handle) {
    return handle.impl()->chunk.get() == &chunk_ && handle.impl()->ref_count() == 1;
  });
  if (held == chunk_.ref_count() - dying) {
    for (const Write& write : writes_) add_overwritten({write.begin, write.end, write.overwrites, write.where});
    dropped->writes.push_back(std::exchange(writes_, {}));
  }
  deaths_to_wait_for_ = static_cast<int64_t>(holders.num_seen() / 16);
}

void WriteHistory::note_given_out(const NDArray& target) {
  const std::lock_guard lock(mutex_);
  add_overwritten(
      {begin_of(target), end_of(target), chunk_.overwrites.load(std::memory_order_relaxed), current_location()});
}

// Keeps the last write of each byte. Ranges arrive in any order, because those of writes_ are added late.
void WriteHistory::add_overwritten(Overwritten range) {
  overwritten_.push_back(range);
  if (overwritten_.size() < forget_at_) return;
  std::sort(overwritten_.begin(), overwritten_.end(),
            [](const Overwritten& a, const Overwritten& b) { return a.overwrites < b.overwrites; });
  forget_at_ = 2 * forget_covered(&overwritten_, nullptr) + 64;
}

void WriteHistory::drop_unseen() {
  Dropped dropped;  // destroyed when no lock is held
  OpenHistories::instance().for_this_thread([&](WriteHistory& history) { history.drop_if_unseen(0, &dropped); });
}

bool SavedArray::is_range_overwritten() const {
  const Chunk& chunk = *array.impl()->chunk;
  const WriteHistory* history = WriteHistory::find(chunk);
  return chunk.original || !history->knows_since(*this) || history->overwritten_at(*this).has_value();
}

}  // namespace hybridnet
