#include "plan/control/state_memory.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "graph/control/control_flow.h"
#include "hybridnet/storage.h"
#include "plan/plain_copy.h"

namespace hybridnet {
namespace {

constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

StateMemory::StateMemory(const Plan& body, const LoopSpec& loop, std::span<const LentMemory> lent,
                         std::span<const Rows> rows)
    : first_carry_(loop.seqs()), num_outs_(loop.outs()) {
  find_sources(body, loop);
  find_lifetimes();
  place_replaced(lent);
  std::vector<int64_t> lifetime_of_fresh(rows.size());
  for (const int state : made_) {
    int64_t& longest = lifetime_of_fresh[static_cast<size_t>(fresh_of_state_[static_cast<size_t>(state)])];
    longest = std::max(longest, lifetime_[static_cast<size_t>(state)]);
  }
  rings_.resize(rows.size());
  std::vector<std::vector<Loan>> loans_of_fresh = loans(lent, rows.size());
  for (size_t f = 0; f < rows.size(); ++f) {
    if (rows[f] == Rows::kAll) continue;
    const int64_t size = rows[f] == Rows::kAllButLast ? 1 : lifetime_of_fresh[f] + 1;
    make_ring(f, size, body.fresh_outputs()[f].bytes(), loans_of_fresh[f]);
  }
}

void StateMemory::find_sources(const Plan& body, const LoopSpec& loop) {
  for (size_t s = 0; s < loop.carries(); ++s) {
    const Plan::OutputInfo& next = body.outputs()[loop.final_carry(s)];
    state_bytes_.push_back(next.spec.bytes());
    fresh_of_state_.push_back(next.fresh);
    passed_input_.push_back(next.fresh < 0 ? next.input : -1);
    (next.replaces_input ? replaced_ : next.fresh < 0 ? passed_ : made_).push_back(static_cast<int>(s));
  }
}

void StateMemory::place_replaced(std::span<const LentMemory> lent) {
  for (const int state : replaced_) {
    const auto s = static_cast<size_t>(state);
    if (s < lent.size() && lent[s] != LentMemory::kNone) {
      places_.push_back({state, 0});
      is_lent_ = true;
      continue;
    }
    places_.push_back({-1, workspace_bytes_});
    workspace_bytes_ += aligned(state_bytes_[s]);
  }
}

// Returns the state whose value a state takes over; -1: none.
int StateMemory::source_of(size_t state) const {
  const int source = passed_input_[state] - static_cast<int>(first_carry_);
  return source < static_cast<int>(state_bytes_.size()) ? std::max(source, -1) : -1;
}

// Walks from the states that pass to no other state to the states that they get their values from. States that pass
// around a circle are never reached: their first values stay.
void StateMemory::find_lifetimes() {
  const size_t count = state_bytes_.size();
  std::vector<int> readers(count);
  for (size_t s = 0; s < count; ++s)
    if (const int source = source_of(s); source >= 0) ++readers[static_cast<size_t>(source)];
  std::vector<size_t> known;
  for (size_t s = 0; s < count; ++s)
    if (readers[s] == 0) known.push_back(s);
  std::vector<int64_t> longest(count, 1);
  lifetime_.assign(count, kForever);
  while (!known.empty()) {
    const size_t s = known.back();
    known.pop_back();
    lifetime_[s] = longest[s];
    const int at = source_of(s);
    if (at < 0) continue;
    const auto source = static_cast<size_t>(at);
    longest[source] = std::max(longest[source], lifetime_[s] + 1);
    if (--readers[source] == 0) known.push_back(source);
  }
}

// Per array of the body: memory of the states that its values pass through, sorted by the iteration in which it is
// ready.
std::vector<std::vector<StateMemory::Loan>> StateMemory::loans(std::span<const LentMemory> lent,
                                                               size_t num_fresh) const {
  std::vector<std::vector<Loan>> result(num_fresh);
  for (size_t s = 0; s < lent.size(); ++s) {
    if (lent[s] == LentMemory::kNone || lifetime_[s] == kForever) continue;
    size_t root = s;  // the state in which its values begin
    while (source_of(root) >= 0 && lifetime_[root] != kForever) root = static_cast<size_t>(source_of(root));
    if (fresh_of_state_[root] < 0 || state_bytes_[root] != state_bytes_[s]) continue;
    result[static_cast<size_t>(fresh_of_state_[root])].push_back(
        {lent[s] == LentMemory::kFree ? 0 : lifetime_[s], static_cast<int>(s)});
  }
  for (std::vector<Loan>& of_fresh : result)
    std::stable_sort(of_fresh.begin(), of_fresh.end(), [](const Loan& a, const Loan& b) { return a.ready < b.ready; });
  return result;
}

// Iteration number k is the first one that writes to buffer number k.
void StateMemory::make_ring(size_t fresh, int64_t size, int64_t bytes, std::span<const Loan> loans) {
  rings_[fresh] = {static_cast<int>(buffers_.size()), static_cast<int>(size)};
  size_t next = 0;
  for (int64_t k = 0; k < size; ++k) {
    if (next < loans.size() && loans[next].ready <= k &&
        state_bytes_[static_cast<size_t>(loans[next].state)] == bytes) {
      buffers_.push_back({loans[next++].state, 0});
      is_lent_ = true;
      continue;
    }
    buffers_.push_back({-1, workspace_bytes_});
    workspace_bytes_ += aligned(bytes);
  }
}

void StateMemory::begin(const KernelArgs& args, Run& run, std::span<Plan::InputBinding> inputs,
                        std::string_view loop) const {
  const auto memory = [&](const Buffer& buffer) {
    return buffer.state < 0 ? static_cast<char*>(args.workspace) + buffer.offset
                            : static_cast<char*>(args.out[num_outs_ + static_cast<size_t>(buffer.state)].data);
  };
  run.buffers.clear();
  for (const Buffer& buffer : buffers_) run.buffers.push_back(memory(buffer));
  for (size_t i = 0; i < replaced_.size(); ++i) {
    const auto s = static_cast<size_t>(replaced_[i]);
    char* const place = memory(places_[i]);
    void*& state = inputs[first_carry_ + s].data;
    if (state != place) copy_plainly(place, static_cast<char*>(state), state_bytes_[s], loop);
    state = place;
  }
  run.passing.resize(passed_.size());
  run.shares_finals = is_lent_;
  for (size_t s = 0; s < state_bytes_.size(); ++s)
    run.shares_finals = run.shares_finals || args.in[first_carry_ + s].data == args.out[num_outs_ + s].data;
}

void StateMemory::pass_on(Run& run, std::span<void* const> fresh, std::span<Plan::InputBinding> inputs) const {
  for (size_t i = 0; i < passed_.size(); ++i)
    run.passing[i] = inputs[static_cast<size_t>(passed_input_[static_cast<size_t>(passed_[i])])].data;
  for (const int s : made_) {
    const auto state = static_cast<size_t>(s);
    inputs[first_carry_ + state].data = fresh[static_cast<size_t>(fresh_of_state_[state])];
  }
  for (size_t i = 0; i < passed_.size(); ++i)
    inputs[first_carry_ + static_cast<size_t>(passed_[i])].data = run.passing[i];
}

namespace {

using Copy = StateMemory::Copy;

void make(Copy& copy, std::string_view loop) {
  copy_plainly(copy.to, copy.from, copy.bytes, loop);
  copy.bytes = 0;
}

// Returns the copy, among copies sorted by target, that writes to this memory; -1: none.
int copy_to(std::span<const Copy> copies, const char* memory) {
  const auto found = std::lower_bound(copies.begin(), copies.end(), memory,
                                      [](const Copy& copy, const char* at) { return std::less<>()(copy.to, at); });
  return found != copies.end() && found->to == memory ? static_cast<int>(found - copies.begin()) : -1;
}

// Makes the copies of a circle, which contains copy `at`: each of them writes where exactly one other reads.
void turn_circle(std::span<Copy> copies, size_t at) {
  while (true) {
    Copy& copy = copies[at];
    const int64_t bytes = std::exchange(copy.bytes, 0);
    at = static_cast<size_t>(copy_to(copies, copy.from));
    if (copies[at].bytes == 0) return;  // the earlier swaps have moved its value there
    std::swap_ranges(copy.to, copy.to + bytes, copy.from);
  }
}

// The same for memory of a device, which the host cannot swap: the value that the first copy destroys is put aside.
void turn_circle_on(Device device, std::span<Copy> copies, size_t first, std::string_view loop) {
  const int64_t bytes = copies[first].bytes;
  const OwnedBlock aside(bytes, device);
  copy_plainly(aside.data(), copies[first].to, bytes, loop);
  for (size_t at = first;;) {
    Copy& copy = copies[at];
    const auto next = static_cast<size_t>(copy_to(copies, copy.from));
    if (next == first) copy.from = static_cast<char*>(aside.data());
    make(copy, loop);
    if (next == first) return;
    at = next;
  }
}

}  // namespace

// A copy that would destroy a value that others read is made after them.
void StateMemory::finish(Run& run, std::span<const Plan::InputBinding> inputs, std::span<const TensorRef> finals,
                         std::string_view loop) const {
  std::vector<Copy>& copies = run.copies;
  copies.clear();
  for (size_t s = 0; s < state_bytes_.size(); ++s) {
    auto* const last = static_cast<char*>(inputs[first_carry_ + s].data);
    if (state_bytes_[s] > 0 && finals[s].data && finals[s].data != last)
      copies.push_back({static_cast<char*>(finals[s].data), last, state_bytes_[s]});
  }
  if (!run.shares_finals) {
    for (Copy& copy : copies) make(copy, loop);
    return;
  }
  std::sort(copies.begin(), copies.end(), [](const Copy& a, const Copy& b) { return std::less<>()(a.to, b.to); });
  run.readers.assign(copies.size(), 0);
  for (const Copy& copy : copies)
    if (const int other = copy_to(copies, copy.from); other >= 0) ++run.readers[static_cast<size_t>(other)];
  run.waiting.clear();
  for (size_t i = 0; i < copies.size(); ++i)
    if (run.readers[i] == 0) run.waiting.push_back(i);
  while (!run.waiting.empty()) {
    Copy& copy = copies[run.waiting.back()];
    run.waiting.pop_back();
    make(copy, loop);
    const int other = copy_to(copies, copy.from);
    if (other >= 0 && --run.readers[static_cast<size_t>(other)] == 0) run.waiting.push_back(static_cast<size_t>(other));
  }
  for (size_t i = 0; i < copies.size(); ++i)
    if (copies[i].bytes > 0) {
      if (const device::Stream* const stream = device::current())
        turn_circle_on(stream->device(), copies, i, loop);
      else
        turn_circle(copies, i);
    }
}

}  // namespace hybridnet
