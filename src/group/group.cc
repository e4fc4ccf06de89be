#include "group/group.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/sha256.h"
#include "group/exchange.h"
#include "group/finding.h"
#include "group/meeting.h"
#include "group/transport_library.h"
#include "hybridnet/env.h"

namespace hybridnet::group {
namespace {

// Arrays up to this size are sent whole to every process: one exchange instead of two.
constexpr int64_t kSmallBytes = 16 << 10;
constexpr int64_t kPartAlignment = 16;  // elements

Settings checked(Settings settings) {
  if (settings.size < 1 || settings.rank < 0 || settings.rank >= settings.size)
    throw ValueError({.expected = "a rank from 0 to size - 1",
                      .given = "rank " + std::to_string(settings.rank) + ", size " + std::to_string(settings.size),
                      .message = "group"});
  if (settings.shards != 0 && settings.shards < settings.size)
    throw ValueError(
        {.expected = "at least one shard for each process",
         .given = std::to_string(settings.shards) + " shards for " + std::to_string(settings.size) + " processes",
         .message = "group: virtual_shards"});
  return settings;
}

TransportRequest request_of(const Settings& settings) {
  return {.rank = settings.rank,
          .size = settings.size,
          .address = settings.address.c_str(),
          .timeout_ms = settings.timeout_ms,
          .abort_descriptor = environment().mpi_abort_descriptor,
          .communicator = settings.communicator};
}

std::unique_ptr<Meeting> open_own_meeting(OpenMeetingFunction open, const Settings& settings) {
  char reason[512] = {};
  const TransportRequest request = request_of(settings);
  std::unique_ptr<Meeting> meeting(open(&request, reason, sizeof reason));
  if (!meeting)
    throw GroupError({.message = "rank " + std::to_string(settings.rank) + " of " + std::to_string(settings.size) +
                                 " could not meet the others by the engine '" + settings.engine + "'",
                      .because = reason,
                      .fix = "see whether the other processes ended, and that mpirun belongs to this MPI"});
  return meeting;
}

}  // namespace

std::shared_ptr<Group> Group::join(const Settings& settings) {
  if (settings.size <= 1) return std::make_shared<Group>(settings, nullptr);
  const TransportLibrary library = load_transport(settings.engine);
  const bool meets_there = settings.meeting.empty() && library.open_meeting != nullptr;
  auto group = std::make_shared<Group>(
      settings, meets_there ? open_own_meeting(library.open_meeting, checked(settings))
                            : open_meeting(settings.meeting, settings.token, settings.timeout_ms));
  group->connect(library.make);
  return group;
}

Group::Group(Settings settings, std::unique_ptr<Meeting> meeting)
    : settings_(checked(std::move(settings))),
      meeting_(std::move(meeting)),
      by_process_(settings_.size, settings_.size),
      by_shard_(settings_.size, shards()),
      process_(::getpid()) {}

Group::Layout::Layout(int processes, int shards) {
  for (int rank = 0; rank < processes; ++rank) {
    first.push_back(static_cast<int>(nodes.size()));
    for (const Shards& node : covering_nodes(shards_of(rank, processes, shards), shards)) nodes.push_back(node);
  }
  first.push_back(static_cast<int>(nodes.size()));
}

Group::~Group() {
  leave("it left the group");
  // The threads of the transport do not exist in a forked child, and its connections belong to the parent.
  if (::getpid() != process_) static_cast<void>(transport_.release());
}

int64_t Group::part_begin(int64_t count, int part, int parts) {
  if (part == parts) return count;
  // Without overflow for every count.
  const int64_t begin = count / parts * part + count % parts * part / parts;
  return std::min(count, (begin + kPartAlignment - 1) / kPartAlignment * kPartAlignment);
}

std::string Group::key(const char* label, int rank) const {
  return settings_.name + "." + label + "." + std::to_string(rank);
}

std::string Group::name_of(int rank) const {
  std::string text = "rank " + std::to_string(rank) + " of " + std::to_string(size());
  if (static_cast<size_t>(rank) < peers_.size()) text += " (" + peers_[static_cast<size_t>(rank)].card.str() + ")";
  return text;
}

// ---- meeting

void Group::connect(MakeTransportFunction make) {
  meet();
  char reason[512] = {};
  const std::string prefix = settings_.name + ".mesh.";
  TransportRequest request = request_of(settings_);
  request.prefix = prefix.c_str();
  request.meeting = meeting_.get();
  transport_.reset(make(&request, reason, sizeof reason));
  if (!transport_)
    throw GroupError({.message = "rank " + std::to_string(rank()) + " of " + std::to_string(size()) +
                                 " could not be connected with the others",
                      .because = reason,
                      .fix =
                          "see whether the other processes ended; HYBRIDNET_GROUP_ADDRESS must be an address of this "
                          "machine that they can reach"});
  prove_token();
}

// All processes tell who they are. Differences are errors before any connection is made.
void Group::meet() {
  const ProcessCard own = ProcessCard::of_this_process(rank(), size(), settings_.shards, settings_.engine);
  if (!meeting_->put(key("card", rank()).c_str(), &own, sizeof own))
    throw GroupError(
        {.message = "rank " + std::to_string(rank()) + " of " + std::to_string(size()) +
                    " could not enter the meeting " + settings_.meeting,
         .because = "the meeting does not exist, this process has another token, or another process has this rank",
         .fix = "start each rank once, with a new meeting for each job"});
  const auto end = Clock::now() + std::chrono::milliseconds(settings_.timeout_ms);
  std::vector<Peer> peers(static_cast<size_t>(size()));
  std::string missing;
  for (int peer = 0; peer < size(); ++peer) {
    ProcessCard& card = peers[static_cast<size_t>(peer)].card;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    const int64_t bytes = meeting_->get(key("card", peer).c_str(), &card, sizeof card, std::max<int64_t>(left, 1));
    if (bytes < 0) {
      missing += (missing.empty() ? "rank " : ", ") + std::to_string(peer);
    } else if (const std::string difference = bytes == sizeof card ? own.difference(card) : "formats of cards differ";
               !difference.empty()) {
      throw GroupError({.message = "rank " + std::to_string(rank()) + " and rank " + std::to_string(peer) +
                                   " of the group do not fit",
                        .because = difference,
                        .fix = "start all processes with the same installation and the same settings"});
    }
  }
  if (!missing.empty())
    throw GroupError(
        {.message = missing + " of " + std::to_string(size()) + " did not come to the meeting " + settings_.meeting +
                    " within " + seconds_text(std::chrono::milliseconds(settings_.timeout_ms)),
         .fix = "see the logs of these processes; if starting takes longer, raise HYBRIDNET_GROUP_TIMEOUT"});
  peers_ = std::move(peers);
}

// Each process proves to each other one that it knows the token: it answers the other's random number.
void Group::prove_token() {
  const auto n = static_cast<size_t>(size());
  std::vector<Digest> sent(n), asked(n), answers(n), got(n);
  const auto answer = [this](int from, int to, const Digest& number) {
    std::string text = settings_.name + "/" + std::to_string(from) + "/" + std::to_string(to) + "/";
    text.append(reinterpret_cast<const char*>(number.data()), number.size());
    return hmac_sha256(settings_.token, text);
  };
  for (Digest& number : sent) {
    if (::getrandom(number.data(), number.size(), 0) != static_cast<ssize_t>(number.size()))
      throw GroupError({.message = "group: the system gives no random numbers"});
  }
  const Call call{.label = "all processes"};
  Exchange exchange(*this, call, next_number());
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    exchange.receive(peer, 1, asked[static_cast<size_t>(peer)].data(), sizeof(Digest));
    exchange.send(peer, 1, sent[static_cast<size_t>(peer)].data(), sizeof(Digest));
  }
  exchange.finish();
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    const auto p = static_cast<size_t>(peer);
    answers[p] = answer(rank(), peer, asked[p]);
    exchange.receive(peer, 2, got[p].data(), sizeof(Digest));
    exchange.send(peer, 2, answers[p].data(), sizeof(Digest));
  }
  exchange.finish();
  for (int peer = 0; peer < size(); ++peer) {
    const auto p = static_cast<size_t>(peer);
    if (peer == rank() || equal(got[p], answer(peer, rank(), sent[p]))) continue;
    transport_->close();
    throw GroupError({.message = name_of(peer) + " does not know the token of this job",
                      .fix = "give all processes the same HYBRIDNET_GROUP_TOKEN_FILE"});
  }
}

// ---- calls on memory

Group::Part Group::part_of(const Call& call, int rank) const {
  return {part_begin(call.count, rank, size()), part_begin(call.count, rank + 1, size())};
}

// Starts to receive this part of the nodes of all others. Returns the rows to be added, own nodes included.
std::vector<Row> Group::receive_nodes(Exchange& exchange, const Call& call, std::span<const void* const> nodes,
                                      Part part) {
  const int64_t item = dtype_size(call.dtype), bytes = part.size() * item;
  const Layout& layout = call.shards == 0 ? by_process_ : by_shard_;
  std::vector<Row> rows(layout.nodes.size());
  char* memory = scratch_.at_least(bytes * static_cast<int64_t>(rows.size() - nodes.size()));
  for (int peer = 0; peer < size(); ++peer) {
    const int first = layout.first[static_cast<size_t>(peer)], last = layout.first[static_cast<size_t>(peer) + 1];
    for (int node = first; node < last; ++node) {
      Row& row = rows[static_cast<size_t>(node)];
      row.shards = layout.nodes[static_cast<size_t>(node)];
      if (peer == rank()) {
        row.values = static_cast<const char*>(nodes[static_cast<size_t>(node - first)]) + part.begin * item;
      } else {
        exchange.receive(peer, 1 + node - first, memory, bytes);
        row.values = memory;
        memory += bytes;
      }
    }
  }
  return rows;
}

void Group::send_nodes(Exchange& exchange, const Call& call, std::span<const void* const> nodes, int peer, Part part) {
  const int64_t item = dtype_size(call.dtype);
  int phase = 0;
  for (const void* node : nodes)
    exchange.send(peer, ++phase, static_cast<const char*>(node) + part.begin * item, part.size() * item);
}

void Group::sum(const Call& call, uint64_t number, std::span<const void* const> nodes, void* out) {
  const int64_t item = dtype_size(call.dtype), bytes = call.count * item;
  const Part whole{0, call.count};
  Exchange exchange(*this, call, number);
  // Two processes send the same number of bytes both ways.
  if (size() <= 2 || bytes <= kSmallBytes) {
    const std::vector<Row> rows = receive_nodes(exchange, call, nodes, whole);
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank()) send_nodes(exchange, call, nodes, peer, whole);
    exchange.finish();
    return add_tree(call.dtype, rows, call.count, out);
  }
  const Part own = part_of(call, rank());
  const std::vector<Row> rows = receive_nodes(exchange, call, nodes, own);
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank()) send_nodes(exchange, call, nodes, peer, part_of(call, peer));
  exchange.finish();
  char* const target = static_cast<char*>(out);
  const int phase = 1 + static_cast<int>(rows.size());
  for (int peer = 0; peer < size(); ++peer) {
    const Part part = part_of(call, peer);
    if (peer != rank()) exchange.receive(peer, phase, target + part.begin * item, part.size() * item);
  }
  add_tree(call.dtype, rows, own.size(), target + own.begin * item);
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank()) exchange.send(peer, phase, target + own.begin * item, own.size() * item);
  exchange.finish();
}

void Group::gather(const Call& call, uint64_t number, const void* own, void* out) {
  const int64_t bytes = call.count * dtype_size(call.dtype);
  Exchange exchange(*this, call, number);
  for (int peer = 0; peer < size(); ++peer) {
    char* const place = static_cast<char*>(out) + peer * bytes;
    if (peer != rank()) {
      exchange.receive(peer, 1, place, bytes);
    } else if (place != own) {
      std::memcpy(place, own, static_cast<size_t>(bytes));
    }
  }
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank()) exchange.send(peer, 1, own, bytes);
  exchange.finish();
}

// Large values go in parts to all others, which pass them on: the root sends them once, not to each.
void Group::broadcast(const Call& call, uint64_t number, void* data) {
  const int64_t item = dtype_size(call.dtype), bytes = call.count * item;
  const bool whole = size() <= 2 || bytes <= kSmallBytes;
  char* const memory = static_cast<char*>(data);
  Exchange exchange(*this, call, number);
  const auto part_bytes = [&](int peer) {
    const Part part = whole ? Part{0, call.count} : part_of(call, peer);
    return std::pair(memory + part.begin * item, part.size() * item);
  };
  if (rank() == call.root) {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      const auto [from, count] = part_bytes(peer);
      exchange.send(peer, 1, from, count);
      if (whole) continue;
      const auto [own, own_count] = part_bytes(rank());  // no other process has it
      exchange.send(peer, 2, own, own_count);
    }
    return exchange.finish();
  }
  const auto [own, own_count] = part_bytes(rank());
  exchange.receive(call.root, 1, own, own_count);
  if (!whole) {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      const auto [place, count] = part_bytes(peer);
      exchange.receive(peer, 2, place, count);
    }
    exchange.finish_receive(call.root, 1);
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank() && peer != call.root) exchange.send(peer, 2, own, own_count);
  }
  exchange.finish();
}

void Group::sum_scatter(const Call& call, uint64_t number, std::span<const void* const> nodes,
                        std::span<const int64_t> bounds, void* out) {
  const Part own = part_of(bounds, rank());
  Exchange exchange(*this, call, number);
  const std::vector<Row> rows = receive_nodes(exchange, call, nodes, own);
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank()) send_nodes(exchange, call, nodes, peer, part_of(bounds, peer));
  exchange.finish();
  add_tree(call.dtype, rows, own.size(), out);
}

void Group::gather_parts(const Call& call, uint64_t number, std::span<const int64_t> bounds, void* data) {
  const int64_t item = dtype_size(call.dtype);
  char* const memory = static_cast<char*>(data);
  const Part own = part_of(bounds, rank());
  Exchange exchange(*this, call, number);
  for (int peer = 0; peer < size(); ++peer) {
    const Part part = part_of(bounds, peer);
    if (peer != rank()) exchange.receive(peer, 1, memory + part.begin * item, part.size() * item);
  }
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank()) exchange.send(peer, 1, memory + own.begin * item, own.size() * item);
  exchange.finish();
}

void Group::barrier(uint64_t number) {
  const Call call;
  Exchange(*this, call, number).finish();
}

// ---- failures

void Group::check_open() const {
  if (::getpid() != process_)
    throw GroupError({.message = "this process was forked from a member of the group and is none itself",
                      .fix = "start processes by 'spawn'; workers of a DataLoader must not call the group"});
  const std::lock_guard lock(mutex_);
  if (broken_) throw GroupError(*broken_);
  if (left_) throw GroupError({.message = "this process has left the group", .fix = "join a group again"});
}

std::optional<Finding> Group::finding_by(int peer) const {
  Finding found;
  const bool has_one = meeting_->get(key("finding", peer).c_str(), &found, sizeof found, 1) == sizeof found;
  return has_one && found.valid(size()) ? std::optional(found) : std::nullopt;
}

Finding Group::finding_of_closed(int peer, const std::string& call) const {
  if (const std::optional<Finding> theirs = finding_by(peer)) return *theirs;  // it gave up because of a third process
  const std::string rank = "rank " + std::to_string(peer);
  const std::string fix = "see the log of " + rank + "; restart with --max-restarts";
  char reason[400] = {};
  if (meeting_->get(key("end", peer).c_str(), reason, sizeof reason - 1, 1) >= 0)
    return {Finding::kLeft, peer, name_of(peer) + " takes part no longer; the " + call + " needs it",
            rank + " said: " + reason, fix};
  const ProcessCard& card = peers_[static_cast<size_t>(peer)].card;
  // The connections of a process close a moment before the process has ended.
  std::string condition;
  for (int tries = 0; tries < 20; ++tries) {
    condition = card.condition();
    if (condition.empty() || condition.find("has ended") != condition.npos)
      return {Finding::kEnded, peer, name_of(peer) + " has ended; the " + call + " needs it",
              condition.empty() ? "its connection is closed" : condition, fix};
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return {Finding::kClosed, peer, name_of(peer) + " closed its connection; the " + call + " needs it", condition, fix};
}

// Waits a moment for the findings of the others: a process that waited for a waiting process knows less than that one.
Finding Group::most_certain(Finding finding) {
  constexpr auto kGrace = std::chrono::milliseconds(400);
  const auto end = Clock::now() + kGrace;
  std::vector<uint8_t> known(static_cast<size_t>(size()));
  known[static_cast<size_t>(rank())] = 1;
  // A process that has ended or does not answer writes none.
  const auto may_write = [&](int peer) {
    return peer != finding.rank || finding.certainty <= Finding::kLate || finding.certainty == Finding::kDisagreement;
  };
  for (bool complete = false; !complete && Clock::now() < end;) {
    complete = true;
    for (int peer = 0; peer < size(); ++peer) {
      uint8_t& is_known = known[static_cast<size_t>(peer)];
      if (is_known != 0) continue;
      if (const std::optional<Finding> other = finding_by(peer)) {
        is_known = 1;
        if (other->more_certain_than(finding)) finding = *other;
      } else if (may_write(peer)) {
        complete = false;
      }
    }
    if (!complete) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return finding;
}

void Group::fail(const Finding& own) {
  {
    const std::lock_guard lock(mutex_);
    if (left_) throw GroupError({.message = "this process left the group during a call"});
  }
  meeting_->put(key("finding", rank()).c_str(), &own, sizeof own);
  transport_->close();  // so that the others notice
  ErrorFields fields = most_certain(own).fields();
  {
    const std::lock_guard lock(mutex_);
    if (!broken_) broken_ = fields;
  }
  throw GroupError(std::move(fields));
}

void Group::leave(const std::string& reason) noexcept {
  try {
    {
      const std::lock_guard lock(mutex_);
      if (left_ || !transport_ || ::getpid() != process_) return;
      left_ = true;
      if (!broken_) meeting_->put(key("end", rank()).c_str(), reason.data(), std::min<size_t>(reason.size(), 399));
    }
    transport_->close();
  } catch (const std::exception&) {  // the process is ending
  }
}

}  // namespace hybridnet::group
