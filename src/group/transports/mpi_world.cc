#include "group/transports/mpi_world.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

namespace hybridnet::group::mpi {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr size_t kMessageBytes = size_t{1} << 30;       // MPI counts in int
constexpr int kFirstValueTag = 1, kValueTags = 30'000;  // every MPI has tags up to 32,767
constexpr auto kLookEvery = milliseconds(20);
constexpr auto kTimeToTakeBack = milliseconds(1000), kTimeToSend = milliseconds(100);

}  // namespace

// ---- notes

void World::listen(int peer) {
  Note& note = *peers_[static_cast<size_t>(peer)].note;
  require(MPI_Irecv(&note, sizeof(NoteHead) + kInlineBytes, MPI_BYTE, peer, kNoteTag, all_, &note.request),
          "MPI_Irecv");
}

// Lets MPI work, reads the notes that have arrived, and drops those that are sent.
void World::progress() {
  if (stopped_) return;
  if (Clock::now() - last_look_ >= kLookEvery) look_for_deaths();  // first: a process may say why it ends
  for (int peer = 0; peer < size_; ++peer) {
    Peer& known = peers_[static_cast<size_t>(peer)];
    while (known.note->request != MPI_REQUEST_NULL) {
      int arrived = 0, bytes = 0;
      MPI_Status status;
      if (MPI_Test(&known.note->request, &arrived, &status) != MPI_SUCCESS) known.dead = true;
      if (arrived == 0) break;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      std::unique_ptr<Note> note = std::exchange(known.note, std::make_unique_for_overwrite<Note>());
      listen(peer);
      last_event_ = Clock::now();
      if (static_cast<size_t>(bytes) < sizeof(NoteHead) || note->head.magic != NoteHead::kMagic) continue;
      note->text_bytes = static_cast<size_t>(bytes) - sizeof(NoteHead);
      read(peer, std::move(note));
    }
  }
  std::erase_if(sent_, [](const std::unique_ptr<Note>& note) {
    int sent = 0;
    return MPI_Test(&note->request, &sent, MPI_STATUS_IGNORE) != MPI_SUCCESS || sent != 0;
  });
}

void World::read(int peer, std::unique_ptr<Note> note) {
  const NoteHead& head = note->head;
  Peer& known = peers_[static_cast<size_t>(peer)];
  switch (head.kind) {
    case NoteHead::kValue:
    case NoteHead::kLargeValue: {
      const Key key{peer, head.group, head.tag};
      const auto found = waiting_.find(key);
      if (found == waiting_.end()) {
        arrived_[key].push_back(std::move(note));
        return;
      }
      Operation& operation = *found->second.front();
      found->second.pop_front();
      if (found->second.empty()) waiting_.erase(found);
      return deliver(operation, *note);
    }
    case NoteHead::kTable:
      if (head.tag <= note->text_bytes)
        table_.try_emplace(std::string(note->text, head.tag),
                           std::string(note->text + head.tag, note->text_bytes - head.tag));
      return;
    case NoteHead::kClosed:
      known.closed.try_emplace(head.group, head.unfinished != 0);
      return;
    case NoteHead::kEnd:
      known.ended = true;
      known.failed = head.unfinished != 0;
      return;
  }
}

void World::send_note(int peer, NoteHead head, std::string_view first, std::string_view second) {
  if (stopped_ || peers_[static_cast<size_t>(peer)].dead) return;
  auto note = std::make_unique_for_overwrite<Note>();
  note->head = head;
  note->text_bytes = first.size() + second.size();
  if (!first.empty()) std::memcpy(note->text, first.data(), first.size());
  if (!second.empty()) std::memcpy(note->text + first.size(), second.data(), second.size());
  if (MPI_Isend(note.get(), note->wire_bytes(), MPI_BYTE, peer, kNoteTag, all_, &note->request) != MPI_SUCCESS) return;
  sent_.push_back(std::move(note));
}

void World::send_to_all(const NoteHead& head, std::string_view first, std::string_view second) {
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_) send_note(peer, head, first, second);
}

void World::look_for_deaths() {
  last_look_ = Clock::now();
  for (Peer& peer : peers_) {
    pollfd ended{peer.ended_descriptor, POLLIN, 0};
    if (peer.ended_descriptor >= 0 && !peer.dead && ::poll(&ended, 1, 0) > 0) peer.dead = true;
  }
}

// ---- values

void World::send(Operation& operation) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || !is_open(operation.group)) throw std::runtime_error("the group is closed");
  NoteHead head{.group = operation.group, .tag = operation.tag, .bytes = operation.bytes};
  last_event_ = Clock::now();
  if (operation.bytes <= kInlineBytes) {
    send_note(operation.peer, head, {operation.data, operation.bytes});
    operation.state = Operation::State::kDone;
    return;
  }
  head.kind = NoteHead::kLargeValue;
  head.sequence = ++peers_[static_cast<size_t>(operation.peer)].sent_sequence;
  send_note(operation.peer, head, {});
  move(operation, head.sequence);
}

void World::receive(Operation& operation) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || !is_open(operation.group)) throw std::runtime_error("the group is closed");
  last_event_ = Clock::now();
  const Key key{operation.peer, operation.group, operation.tag};
  const auto found = arrived_.find(key);
  if (found == arrived_.end()) {
    waiting_[key].push_back(&operation);
    return;
  }
  const std::unique_ptr<Note> note = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) arrived_.erase(found);
  deliver(operation, *note);
}

// A note has come for a receive.
void World::deliver(Operation& operation, const Note& note) {
  const bool in_note = note.head.kind == NoteHead::kValue;
  if (note.head.bytes != operation.bytes || (in_note && note.text_bytes != operation.bytes)) {
    operation.state = Operation::State::kFailed;
  } else if (in_note) {
    if (operation.bytes > 0) std::memcpy(operation.data, note.text, operation.bytes);
    operation.state = Operation::State::kDone;
  } else {
    move(operation, note.head.sequence);
  }
}

// Hands the memory of a large value to MPI.
void World::move(Operation& operation, uint64_t sequence) {
  operation.state = Operation::State::kMoving;
  moving_.push_back(&operation);
  const int tag = kFirstValueTag + static_cast<int>(sequence % kValueTags);
  for (size_t begin = 0; begin < operation.bytes; begin += kMessageBytes) {
    char* const data = operation.data + begin;
    const int bytes = static_cast<int>(std::min(kMessageBytes, operation.bytes - begin));
    MPI_Request& request = operation.requests.emplace_back(MPI_REQUEST_NULL);
    const int code = operation.sends ? MPI_Isend(data, bytes, MPI_BYTE, operation.peer, tag, all_, &request)
                                     : MPI_Irecv(data, bytes, MPI_BYTE, operation.peer, tag, all_, &request);
    if (code != MPI_SUCCESS) peers_[static_cast<size_t>(operation.peer)].dead = true;
  }
}

// True if MPI has finished with the memory of the operation. `right`: false if it failed.
bool World::are_over(Operation& operation, bool* right) {
  bool over = true;
  for (MPI_Request& request : operation.requests) {
    int done = 0;
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
      request = MPI_REQUEST_NULL;
      *right = false;
    } else if (done == 0) {
      over = false;
    }
  }
  return over;
}

Progress World::check(Operation& operation) {
  const std::lock_guard lock(mutex_);
  progress();
  const Peer& peer = peers_[static_cast<size_t>(operation.peer)];
  if (operation.state == Operation::State::kMoving && !stopped_) {
    bool right = true;
    if (are_over(operation, &right)) {
      operation.state = right ? Operation::State::kDone : Operation::State::kFailed;
      last_event_ = Clock::now();
      std::erase(moving_, &operation);
      // A process that closes a group takes back its memory, from which MPI may have read after that.
      progress();
      if (!operation.sends && peer.left_unfinished(operation.group)) operation.state = Operation::State::kFailed;
    }
  }
  if (operation.state == Operation::State::kDone) return Progress::kDone;
  if (operation.state == Operation::State::kFailed || stopped_ || !is_open(operation.group)) return Progress::kClosed;
  const bool may_still_come =
      operation.state == Operation::State::kMoving && !operation.sends && !peer.left_unfinished(operation.group);
  return peer.left(operation.group) && !may_still_come ? Progress::kClosed : Progress::kPending;
}

void World::give_back(Operation& operation) noexcept {
  const std::lock_guard lock(mutex_);
  if (operation.state == Operation::State::kDone) return;
  failed_ = true;
  if (operation.state == Operation::State::kUnmatched) {
    const auto found = waiting_.find({operation.peer, operation.group, operation.tag});
    if (found == waiting_.end()) return;
    std::erase(found->second, &operation);
    if (found->second.empty()) waiting_.erase(found);
    return;
  }
  const auto place = std::find(moving_.begin(), moving_.end(), &operation);
  if (place == moving_.end()) return;
  moving_.erase(place);
  if (stopped_) return;
  const auto end = Clock::now() + (operation.sends ? kTimeToSend : kTimeToTakeBack);
  if (!operation.sends)
    for (MPI_Request& request : operation.requests)
      if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
  for (bool unused = true;;) {
    if (are_over(operation, &unused)) return;
    if (peers_[static_cast<size_t>(operation.peer)].dead || Clock::now() >= end) break;
    std::this_thread::sleep_for(milliseconds(1));
    look_for_deaths();
  }
  // Without calls of MPI in this process, MPI neither reads nor writes the memory on this side.
  stopped_ = true;
  if (operation.sends || peers_[static_cast<size_t>(operation.peer)].dead) return;
  std::fprintf(stderr,
               "hybridnet: rank %d stopped while it sent values to rank %d, and MPI cannot take back the memory for "
               "them: the job ends\n",
               operation.peer, rank_);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// ---- groups and the meeting

bool World::is_open(uint64_t group) const {
  const auto found = open_.find(group);
  return found != open_.end() && found->second;
}

void World::open(uint64_t group) {
  const std::lock_guard lock(mutex_);
  if (!open_.try_emplace(group, true).second)
    throw std::runtime_error("this process was in a group of the same name already");
}

bool World::has_unfinished_send(uint64_t group) const {
  return std::any_of(moving_.begin(), moving_.end(),
                     [group](const Operation* operation) { return operation->sends && operation->group == group; });
}

void World::close(uint64_t group) noexcept {
  const std::lock_guard lock(mutex_);
  if (!is_open(group)) return;
  open_[group] = false;
  send_to_all({.kind = NoteHead::kClosed, .unfinished = has_unfinished_send(group), .group = group});
}

bool World::put(std::string_view key, std::string_view value) {
  if (key.size() + value.size() > kInlineBytes) return false;
  const std::lock_guard lock(mutex_);
  const auto [place, added] = table_.try_emplace(std::string(key), value);
  if (added) send_to_all({.kind = NoteHead::kTable, .tag = key.size(), .bytes = value.size()}, key, value);
  return place->second == value;
}

bool World::find(const std::string& key, std::string* value) {
  const std::lock_guard lock(mutex_);
  progress();
  const auto found = table_.find(key);
  if (found != table_.end()) *value = found->second;
  return found != table_.end();
}

microseconds World::pause() {
  constexpr microseconds kSpin{50}, kShortest{20}, kLongest{1000};
  const std::lock_guard lock(mutex_);
  const auto idle = std::chrono::duration_cast<microseconds>(Clock::now() - last_event_);
  return idle < kSpin ? microseconds(0) : std::clamp(idle / 4, kShortest, kLongest);
}

}  // namespace hybridnet::group::mpi
