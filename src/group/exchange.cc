#include "group/exchange.h"

#include <algorithm>

#include "base/hash.h"
#include "group/finding.h"

namespace hybridnet::group {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kSlowestBytesPerMs = 1000;  // received values may take this long, in addition to the timeout

std::string text_of(const Call& call, uint64_t number) { return call.str() + " (call " + std::to_string(number) + ")"; }

}  // namespace

Group::Exchange::Exchange(Group& group, const Call& call, uint64_t number)
    : group_(group),
      call_(call),
      number_(number),
      frame_(Frame::of(call, number, group.rank())),
      frames_(static_cast<size_t>(group.size())) {
  group.check_open();
  for (int peer = 0; peer < group.size(); ++peer) {
    if (peer == group.rank()) continue;
    Frame& frame = frames_[static_cast<size_t>(peer)];
    add(peer, 0, false, group.transport_->start_receive(peer, splitmix64(number_), &frame, sizeof frame));
  }
  for (int peer = 0; peer < group.size(); ++peer) {
    if (peer == group.rank()) continue;
    add(peer, 0, true, group.transport_->start_send(peer, splitmix64(number_), &frame_, sizeof frame_));
  }
}

Group::Exchange::~Exchange() {
  if (!pending_.empty()) group_.transport_->close();  // before the memory of the transfers is gone
}

uint64_t Group::Exchange::tag(int phase) const {
  uint64_t hash = mix_hash(number_, static_cast<uint64_t>(phase));
  for (const uint64_t part : {static_cast<uint64_t>(frame_.count), frame_.shapes, static_cast<uint64_t>(frame_.kind),
                              static_cast<uint64_t>(frame_.dtype), static_cast<uint64_t>(frame_.root),
                              static_cast<uint64_t>(frame_.shards), hash_text(frame_.label)})
    hash = mix_hash(hash, part);
  return avalanche(hash);
}

void Group::Exchange::add(int peer, int phase, bool sends, Transfer* transfer) {
  if (transfer == nullptr) fail_closed(peer);
  pending_.push_back({peer, phase, sends, std::unique_ptr<Transfer>(transfer)});
}

void Group::Exchange::send(int peer, int phase, const void* data, int64_t bytes) {
  if (bytes == 0) return;
  add(peer, phase, true, group_.transport_->start_send(peer, tag(phase), data, static_cast<size_t>(bytes)));
  group_.bytes_sent_.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
}

void Group::Exchange::receive(int peer, int phase, void* data, int64_t bytes) {
  if (bytes == 0) return;
  add(peer, phase, false, group_.transport_->start_receive(peer, tag(phase), data, static_cast<size_t>(bytes)));
  bytes_ += bytes;
}

// Waits for one transfer for a moment; drops it if it is finished.
bool Group::Exchange::finish_one(size_t i) {
  Pending& pending = pending_[i];
  const int peer = pending.peer;
  switch (pending.transfer->wait()) {
    case Progress::kPending:
      return false;
    case Progress::kClosed:
      greet_all();  // a process that disagrees closes, too
      fail_closed(peer);
    case Progress::kDone:
      break;
  }
  const bool is_greeting = pending.phase == 0 && !pending.sends;
  if (&pending != &pending_.back()) std::swap(pending, pending_.back());
  pending_.pop_back();
  if (is_greeting) greet(peer);
  return true;
}

// Reads the frames that have come.
void Group::Exchange::greet_all() {
  for (Pending& pending : pending_) {
    if (pending.phase == 0 && !pending.sends && pending.transfer->wait() == Progress::kDone) greet(pending.peer);
  }
}

// Waits for the wanted transfers, from the first one. While it does not finish, the others are looked at now and then:
// one of them may have failed.
void Group::Exchange::wait(const Wanted& wanted) {
  const auto end = begin_ + milliseconds(group_.settings_.timeout_ms + bytes_ / kSlowestBytesPerMs);
  size_t looked_at = 0;
  for (;;) {
    const auto place = std::find_if(pending_.begin(), pending_.end(), wanted);
    if (place == pending_.end()) return;
    if (finish_one(static_cast<size_t>(place - pending_.begin()))) continue;
    if (Clock::now() >= end) fail_late();
    if (pending_.size() > 1) finish_one(++looked_at % pending_.size());
  }
}

void Group::Exchange::finish() {
  wait([](const Pending&) { return true; });
  group_.finished_.store(number_ + 1, std::memory_order_relaxed);
}

// Compares the call of another process with that of this one.
void Group::Exchange::greet(int peer) {
  const Frame& frame = frames_[static_cast<size_t>(peer)];
  if (!frame.valid(number_, peer)) fail_disagreement(peer);
  if (!frame.same_call(frame_)) fail_disagreement(peer);
  Peer& known = group_.peers_[static_cast<size_t>(peer)];
  known.last_call = call_;
  known.last_number = number_;
  known.last_time = Clock::now();
}

std::string Group::Exchange::call_text() const { return text_of(call_, number_); }

void Group::Exchange::fail_closed(int peer) { group_.fail(group_.finding_of_closed(peer, call_text())); }

void Group::Exchange::fail_late() {
  // The first process that has not begun the call; else the first one whose values are missing.
  const auto rank_of = [this](bool frames) {
    int found = -1;
    for (const Pending& pending : pending_) {
      if ((pending.phase == 0) == frames && !pending.sends && (found < 0 || pending.peer < found)) found = pending.peer;
    }
    return found;
  };
  int peer = rank_of(true);
  const bool absent = peer >= 0;
  if (!absent) peer = rank_of(false);
  if (peer < 0) peer = pending_.front().peer;
  const Peer& known = group_.peers_[static_cast<size_t>(peer)];
  const std::string rank = "rank " + std::to_string(peer);
  std::string because;
  if (!absent) {
    because = rank + " began this call, but its values did not come";
  } else if (!known.last_call) {
    because = rank + " has not taken part in any call";
  } else {
    because = rank + " last took part in the " + text_of(*known.last_call, known.last_number) + ", " +
              seconds_text(Clock::now() - known.last_time) + " ago";
  }
  if (const std::string condition = known.card.condition(); !condition.empty()) because += "; " + condition;
  group_.fail(Finding(absent ? Finding::kAbsent : Finding::kLate, peer,
                      group_.name_of(peer) + " stopped answering; the " + call_text() + " waited " +
                          seconds_text(Clock::now() - begin_),
                      because,
                      "see the log of rank " + std::to_string(peer) +
                          "; restart with --max-restarts, or raise HYBRIDNET_GROUP_TIMEOUT if a step may take longer"));
}

void Group::Exchange::fail_disagreement(int peer) {
  const Frame& theirs = frames_[static_cast<size_t>(peer)];
  const std::string fix =
      "make the same calls with the same shapes and dtypes in the same order on every rank; conditions that depend on "
      "the rank or on its data must not skip a call; calls at two lines that belong together need the same name=";
  if (!theirs.valid(number_, peer))
    group_.fail(Finding(Finding::kDisagreement, peer, group_.name_of(peer) + " sent a message that is no call",
                        "the message does not have the format of this version", "start all processes anew"));
  const auto described = [](const Frame& frame) {
    std::string text = "the " + frame.call().str();
    if (frame.count > 0)
      text += " (" + std::to_string(frame.count) + " elements, " +
              (dtype_valid_code(frame.dtype) ? dtype_name(static_cast<DType>(frame.dtype)) : "an unknown dtype") + ")";
    return text;
  };
  // The same text on every rank: the lower rank first.
  const bool mine_first = group_.rank() < peer;
  const Frame &first = mine_first ? frame_ : theirs, &second = mine_first ? theirs : frame_;
  group_.fail(Finding(Finding::kDisagreement, std::max(group_.rank(), peer),
                      group_.name_of(std::min(group_.rank(), peer)) + " and " +
                          group_.name_of(std::max(group_.rank(), peer)) + " disagree in call " +
                          std::to_string(number_),
                      "rank " + std::to_string(first.rank) + " calls " + described(first) + ", rank " +
                          std::to_string(second.rank) + " calls " + described(second),
                      fix));
}

}  // namespace hybridnet::group
