// A block whose threads cooperate. Each runs until it stops; the block then lets those go on that have met.
#pragma once

#include <algorithm>

#include "ptx_threads.h"

namespace ptx {

// The lane whose value a shuffle takes, and whether it is in range: "shfl.sync" of the ISA.
struct Source {
  uint32_t lane;
  bool in_range;
};
inline Source shuffle_source(const Thread& t) {
  const uint32_t clamp = t.c & 31, segment = t.c >> 8 & 31;
  const uint32_t least = t.lane & segment, most = least | (clamp & ~segment), amount = t.b & 31;
  int source = 0;
  bool in_range = true;
  switch (t.meeting) {
    case Meeting::kShuffleUp:
      source = int(t.lane) - int(amount), in_range = source >= int(most);
      break;
    case Meeting::kShuffleDown:
      source = int(t.lane + amount), in_range = source <= int(most);
      break;
    case Meeting::kShuffleXor:
      source = int(t.lane ^ amount), in_range = source <= int(most);
      break;
    default:
      source = int(least | (amount & ~segment)), in_range = source <= int(most);
      break;
  }
  return {in_range ? uint32_t(source) : t.lane, in_range};
}

// An operation for which the lanes of a mask have met. `lanes` has 32 entries; those outside of the mask are not read.
class WarpMeeting {
 public:
  WarpMeeting(Thread* const* lanes, uint32_t mask) : lanes_(lanes), mask_(mask) {}

  void finish() {
    const Meeting meeting = first().meeting;
    if (meeting <= Meeting::kShuffleIndex) {
      for_each([this](Thread& t) { shuffle(t); });
    } else if (meeting <= Meeting::kBallot) {
      vote(meeting);
    } else if (meeting != Meeting::kSync) {
      const uint32_t total = reduce(meeting);
      for_each([total](Thread& t) { t.result = total; });
    }
    for_each([](Thread& t) { t.stop = Stop::kNone; });
  }

 private:
  template <class Function>
  void for_each(Function function) const {
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if (mask_ >> lane & 1) function(*lanes_[lane]);
    }
  }
  Thread& first() const { return *lanes_[__builtin_ctz(mask_)]; }
  void shuffle(Thread& t) const {
    const Source source = shuffle_source(t);
    if (!(mask_ >> source.lane & 1)) fail("a shuffle reads from a lane that does not take part", t, t.line);
    t.result = lanes_[source.lane]->a;
    t.holds = source.in_range;
  }
  void vote(Meeting meeting) const {
    uint32_t ballot = 0;
    for_each([&ballot](Thread& t) { ballot |= (t.a != 0 ? 1u : 0u) << t.lane; });
    const bool all = ballot == mask_, any = ballot != 0;
    const bool holds = meeting == Meeting::kVoteAll ? all : meeting == Meeting::kVoteAny ? any : all || !any;
    for_each([=](Thread& t) { t.result = ballot, t.holds = holds; });
  }
  uint32_t reduce(Meeting meeting) const {
    uint32_t total = first().a;
    for_each([&, this](Thread& t) {
      if (&t == &first()) return;
      switch (meeting) {
        case Meeting::kSum:
          total += t.a;
          break;
        case Meeting::kLeast:
          total = std::min(total, t.a);
          break;
        case Meeting::kMost:
          total = std::max(total, t.a);
          break;
        case Meeting::kLeastSigned:
          total = uint32_t(std::min(int32_t(total), int32_t(t.a)));
          break;
        case Meeting::kMostSigned:
          total = uint32_t(std::max(int32_t(total), int32_t(t.a)));
          break;
        case Meeting::kAnd:
          total &= t.a;
          break;
        case Meeting::kOr:
          total |= t.a;
          break;
        default:
          total ^= t.a;
          break;
      }
    });
    return total;
  }

  Thread* const* lanes_;
  uint32_t mask_;
};

// Body: registers of a thread, with run(Thread&), which returns at a stop and goes on after it at the next call.
template <class Body>
class Block {
 public:
  explicit Block(std::vector<Thread> threads) : threads_(std::move(threads)), bodies_(threads_.size()) {}

  void run() {
    while (true) {
      bool all_done = true;
      for (size_t i = 0; i < threads_.size(); ++i) {
        if (threads_[i].stop == Stop::kNone) bodies_[i].run(threads_[i]);
        all_done = all_done && threads_[i].stop == Stop::kDone;
      }
      if (all_done) return;
      bool goes_on = false;
      for (size_t first = 0; first < threads_.size(); first += 32) goes_on = meet_in_warp(first) || goes_on;
      if (!goes_on) meet_at_barrier();
    }
  }

 private:
  // Lets the lanes go on whose mask is complete: exited lanes do not count.
  bool meet_in_warp(size_t first) {
    Thread* lanes[32] = {};
    uint32_t alive = 0;
    for (size_t i = first; i < std::min(first + 32, threads_.size()); ++i) {
      lanes[i - first] = &threads_[i];
      if (threads_[i].stop != Stop::kDone) alive |= 1u << (i - first);
    }
    bool met = false;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if (!(alive >> lane & 1) || lanes[lane]->stop != Stop::kWarp) continue;
      const Thread& leader = *lanes[lane];
      if (!(leader.mask >> lane & 1)) fail("a thread is not in the mask of its own instruction", leader, leader.line);
      uint32_t present = 0;
      for (uint32_t other = 0; other < 32; ++other) {
        if ((alive & leader.mask) >> other & 1 && waits_with(leader, *lanes[other])) present |= 1u << other;
      }
      if (present != (alive & leader.mask)) continue;
      WarpMeeting(lanes, present).finish();
      met = true;
    }
    return met;
  }
  static bool waits_with(const Thread& a, const Thread& b) {
    return b.stop == Stop::kWarp && b.meeting == a.meeting && b.mask == a.mask;
  }

  void meet_at_barrier() {
    const Thread* first = nullptr;
    uint32_t count = 0;
    bool all = true;
    for (const Thread& t : threads_) {
      if (t.stop == Stop::kDone) continue;
      if (first == nullptr) first = &t;
      if (t.stop != Stop::kBarrier || t.barrier != first->barrier || t.reduction != first->reduction) {
        fail("threads wait for each other forever: this one and that of line " + std::to_string(first->line), t,
             t.line);
      }
      count += t.a != 0;
      all = all && t.a != 0;
    }
    for (Thread& t : threads_) {
      if (t.stop == Stop::kDone) continue;
      t.holds = t.reduction == Reduction::kAll ? all : count != 0;
      t.result = count;
      t.stop = Stop::kNone;
    }
  }

  std::vector<Thread> threads_;
  std::vector<Body> bodies_;
};

template <class Body>
void run_blocks(const uint32_t* geometry, uint32_t shared_bytes, const unsigned char* param) {
  const uint32_t blocks = geometry[0] * geometry[1] * geometry[2], threads = geometry[3] * geometry[4] * geometry[5];
  for (uint32_t block = 0; block < blocks; ++block) {
    // Not zeros: a GPU does not clear it either. 0xff is NaN in float32 and float64.
    std::vector<uint64_t> shared(shared_bytes / 8 + 2, ~uint64_t(0));
    unsigned char* aligned =
        reinterpret_cast<unsigned char*>((reinterpret_cast<uint64_t>(shared.data()) + 15) / 16 * 16);
    std::vector<Thread> team;
    for (uint32_t index = 0; index < threads; ++index) {
      team.push_back(make_thread(param, geometry, block, index));
      team.back().shared = aligned;
      team.back().shared_bytes = shared_bytes;
    }
    Block<Body>(std::move(team)).run();
  }
}

}  // namespace ptx
