#include "storage/derived.h"

#include <algorithm>
#include <array>
#include <utility>

#include "hybridnet/storage.h"
#include "storage/system_memory.h"

namespace hybridnet {

// ---- readers

// Only the reader itself stores a copy here, so the exchange takes the same copy that was loaded.
std::unique_ptr<ReaderCache::Held> ReaderCache::take() noexcept {
  Held* held = held_.load(std::memory_order_acquire);
  if (held == nullptr || held == in_use() || held == in_use_and_dropped()) return nullptr;
  return std::unique_ptr<Held>(held_.compare_exchange_strong(held, in_use(), std::memory_order_acq_rel) ? held
                                                                                                        : nullptr);
}

void ReaderCache::give(std::unique_ptr<Held> held) noexcept {
  Held* expected = in_use();
  if (held_.compare_exchange_strong(expected, held.get(), std::memory_order_acq_rel)) {
    held.release();
    return;
  }
  held_.store(nullptr, std::memory_order_release);  // dropped meanwhile: the copy has forgotten this reader
}

void ReaderCache::forget(std::unique_ptr<Held> held) noexcept {
  if (held) held->copy->remove_reader(*this);
}

bool ReaderCache::begin_use() noexcept {
  Held* expected = nullptr;
  return held_.compare_exchange_strong(expected, in_use(), std::memory_order_acq_rel);
}

std::unique_ptr<ReaderCache::Held> ReaderCache::drop() noexcept {
  Held* held = held_.load(std::memory_order_acquire);
  while (true) {
    Held* const then = held == in_use() ? in_use_and_dropped() : nullptr;
    if (held_.compare_exchange_weak(held, then, std::memory_order_acq_rel))
      return std::unique_ptr<Held>(then ? nullptr : held);
  }
}

// ---- copies

DerivedCopy::DerivedCopy(std::string key) : key_(std::move(key)), budget_(storage(Device{}).derived_budget()) {}

DerivedCopy::~DerivedCopy() { retire(); }

DerivedCopy::Value DerivedCopy::get(int64_t bytes, const std::function<Value()>& make) {
  Dropped dropped;
  const std::lock_guard lock(mutex_);
  touch();
  if (value_) return value_;
  if (retired() || !budget_.admit(*this, bytes, dropped)) return make();
  dropped.clear();  // its memory may serve the new value
  try {
    value_ = make();
  } catch (...) {
    budget_.remove(*this, bytes);
    throw;
  }
  bytes_ = bytes;
  return value_;
}

// Mostly only reads, so that the cores of many readers can share the cache line.
void DerivedCopy::touch() {
  const uint64_t now = budget_.tick();
  if (last_used_.load(std::memory_order_relaxed) != now) last_used_.store(now, std::memory_order_relaxed);
}

void DerivedCopy::retire() {
  Dropped dropped;
  const std::lock_guard lock(mutex_);
  retired_.store(true, std::memory_order_release);
  if (!value_) return;
  budget_.remove(*this, bytes_);
  drop_value(dropped);
}

void DerivedCopy::drop_value(Dropped& dropped) {
  dropped.push_back(std::move(value_));
  for (ReaderCache* reader : readers_) dropped.emplace_back(reader->drop());
  readers_.clear();
}

bool DerivedCopy::add_reader(ReaderCache& reader, const Value& value) {
  const std::lock_guard lock(mutex_);
  if (value_ != value) return false;
  readers_.push_back(&reader);
  if (reader.begin_use()) return true;
  readers_.pop_back();
  return false;
}

void DerivedCopy::remove_reader(ReaderCache& reader) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(readers_, &reader);
  reader.held_.store(nullptr, std::memory_order_release);
}

bool DerivedCopy::is_kept() const {
  const std::lock_guard lock(mutex_);
  return value_ != nullptr;
}

// ---- the limit

void DerivedBudget::set_limit(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
}

int64_t DerivedBudget::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

bool DerivedBudget::admit(DerivedCopy& newcomer, int64_t bytes, DerivedCopy::Dropped& dropped) {
  const std::lock_guard lock(mutex_);
  const auto fits = [&] { return limit_ < 0 || this->bytes() + bytes <= limit_; };
  // Makes room by dropping copies that were not used since the newcomer was refused last, the oldest first.
  while (!fits() && newcomer.was_refused_ && bytes <= limit_) {
    DerivedCopy* oldest = nullptr;
    for (DerivedCopy* copy : kept_) {
      const uint64_t used = copy->last_used_.load(std::memory_order_relaxed);
      if (used <= newcomer.last_refused_ && (!oldest || used < oldest->last_used_.load(std::memory_order_relaxed)))
        oldest = copy;
    }
    if (!oldest) break;
    const std::unique_lock lock_oldest(oldest->mutex_, std::try_to_lock);
    if (!lock_oldest || !oldest->value_) break;  // in use after all, or being made
    oldest->drop_value(dropped);
    bytes_.fetch_sub(oldest->bytes_, std::memory_order_relaxed);
    std::erase(kept_, oldest);
  }
  if (fits()) {
    kept_.push_back(&newcomer);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    newcomer.was_refused_ = false;
    return true;
  }
  newcomer.was_refused_ = true;
  newcomer.last_refused_ = tick_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void DerivedBudget::remove(DerivedCopy& copy, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  std::erase(kept_, &copy);
}

// ---- arrays

DerivedData::~DerivedData() {
  drop();
  delete copies_.load(std::memory_order_acquire);
}

void DerivedData::drop() noexcept {
  Copies* const c = copies_.load(std::memory_order_acquire);
  if (!c) return;
  std::vector<std::weak_ptr<DerivedCopy>> dropped;
  {
    const std::lock_guard lock(c->mutex);
    dropped.swap(c->list);
    c->pages = nullptr;
    c->evictable_values.withdraw();
    if (writes_) writes_->store(nullptr, std::memory_order_release);
  }
  for (const std::weak_ptr<DerivedCopy>& copy : dropped) {
    if (const std::shared_ptr<DerivedCopy> alive = copy.lock()) alive->retire();
  }
}

void DerivedData::set_pages(void* data, int64_t bytes) {
  const Pages whole = whole_pages(data, bytes);
  if (whole.bytes == 0) return;
  Copies& c = copies();
  const std::lock_guard lock(c.mutex);
  c.pages = whole.data;
  c.page_bytes = whole.bytes;
  if (writes_) writes_->store(this, std::memory_order_release);
}

void DerivedData::drop_pages() noexcept {
  Copies* const c = copies_.load(std::memory_order_acquire);
  if (!c) return;
  if (c->arrays) {
    c->arrays->drop(c->place);
    return c->arrays->end_offers(c->place, true);
  }
  c->evictable_values.accept();
  const std::lock_guard lock(c->mutex);
  if (c->pages) hybridnet::drop_pages(c->pages, c->page_bytes);
}

void DerivedData::keep_pages() {
  Copies* const c = copies_.load(std::memory_order_acquire);
  if (!c) return;
  if (c->arrays) {
    c->arrays->keep(c->place);
    return c->arrays->end_offers(c->place, false);
  }
  c->evictable_values.restore(/*stays=*/true);
  const std::lock_guard lock(c->mutex);
  c->pages = nullptr;
}

void DerivedData::offer(EvictableValues::Values values) {
  Copies& c = copies();
  if (c.arrays) return c.arrays->offer(c.place, values);
  if (!writes_ || pins_.load(std::memory_order_relaxed) != 0) return;
  {
    const std::lock_guard lock(c.mutex);
    if (c.pages) return;
  }
  c.evictable_values.offer(std::move(values));
}

EvictableValues* DerivedData::evictable_values() {
  Copies* const c = copies_.load(std::memory_order_acquire);
  return c ? &c->evictable_values : nullptr;
}

void DerivedData::set_recomputable(RecomputableArrays& arrays, size_t place) {
  Copies& c = copies();
  c.arrays = &arrays;
  c.place = place;
}

ReadLease::ReadLease(DerivedData* source) {
  DerivedData::Copies* const c = source ? source->copies_.load(std::memory_order_acquire) : nullptr;
  if (!c) return;
  if (c->evictable_values.is_released()) c->evictable_values.restore(/*stays=*/false);
  if (!c->arrays) return;
  c->arrays->begin_reading(c->place);
  arrays_ = c->arrays;
  place_ = c->place;
}

ReadLease::~ReadLease() {
  if (arrays_) arrays_->end_reading(place_);
}

DerivedData::Copies& DerivedData::copies() {
  Copies* known = copies_.load(std::memory_order_acquire);
  if (known) return *known;
  auto fresh = std::make_unique<Copies>();
  if (copies_.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) known = fresh.release();
  return *known;
}

std::shared_ptr<DerivedCopy> DerivedData::find_or_add(std::span<const DerivedSource> sources,
                                                      const std::string& recipe) {
  std::string key = recipe;
  for (const DerivedSource& source : sources) {
    const std::array<const void*, 2> identity{source.data, source.derived};
    key.append(reinterpret_cast<const char*>(identity.data()), sizeof(identity));
  }
  const auto remember = [](DerivedData& array, const std::shared_ptr<DerivedCopy>& copy) {
    array.copies().list.emplace_back(copy);
    if (array.writes_) array.writes_->store(&array, std::memory_order_release);
  };
  const auto purge = [](Copies& copies) {
    std::erase_if(copies.list, [](const std::weak_ptr<DerivedCopy>& copy) {
      const std::shared_ptr<DerivedCopy> alive = copy.lock();
      return !alive || alive->retired();
    });
  };
  std::shared_ptr<DerivedCopy> copy;
  {
    Copies& first = sources[0].derived->copies();
    const std::lock_guard lock(first.mutex);
    purge(first);
    for (const std::weak_ptr<DerivedCopy>& known : first.list) {
      const std::shared_ptr<DerivedCopy> alive = known.lock();
      if (alive && alive->key() == key) return alive;
    }
    copy = std::make_shared<DerivedCopy>(std::move(key));
    remember(*sources[0].derived, copy);
  }
  for (const DerivedSource& source : sources.subspan(1)) {
    Copies& further = source.derived->copies();
    const std::lock_guard lock(further.mutex);
    purge(further);
    remember(*source.derived, copy);
  }
  return copy;
}

}  // namespace hybridnet
