// The messages between two processes (mpi_world.h), and what a process knows of another one.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace hybridnet::group::mpi {

inline constexpr size_t kInlineBytes = 16 << 10;  // values up to this size travel in their note
inline constexpr int kNoteTag = 0;                // of MPI; those of large values follow

struct NoteHead {
  static constexpr uint64_t kMagic = 0x3149'504d'4e48;
  enum Kind : uint32_t { kValue, kLargeValue, kTable, kClosed, kEnd };
  uint64_t magic = kMagic;
  uint32_t kind = kValue;
  uint32_t unfinished = 0;  // kClosed: values of this group were not sent. kEnd: the process failed
  uint64_t group = 0;
  uint64_t tag = 0;       // kTable: the size of the key, which the value follows
  uint64_t bytes = 0;     // of the value
  uint64_t sequence = 0;  // of large values between two processes
};

struct Note {
  NoteHead head;
  char text[kInlineBytes];
  size_t text_bytes = 0;  // here only
  MPI_Request request = MPI_REQUEST_NULL;

  // A message consists of `head` and the text behind it.
  int wire_bytes() const { return static_cast<int>(sizeof(NoteHead) + text_bytes); }
};

struct Peer {
  std::unique_ptr<Note> note = std::make_unique_for_overwrite<Note>();  // the next one that arrives
  uint64_t sent_sequence = 0;
  int ended_descriptor = -1;  // readable when the process has ended; -1: it is on another machine
  bool dead = false;
  bool ended = false, failed = false;  // it sent kEnd
  std::map<uint64_t, bool> closed;     // groups that it closed; true: with values that it has not sent
  bool left(uint64_t group) const { return dead || ended || closed.contains(group); }
  bool left_unfinished(uint64_t group) const {
    const auto found = closed.find(group);
    return dead || failed || (found != closed.end() && found->second);
  }
};

}  // namespace hybridnet::group::mpi
