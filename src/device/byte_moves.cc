#include "device/byte_moves.h"

#include "device/program_table.h"

namespace hybridnet::device {
namespace {

struct CopyArguments {  // these are the same in kernels/device/moves_arguments.h
  const void* src;
  void* dst;
  int64_t n;
};
struct FillArguments {
  void* out;
  int64_t n;
  uint64_t bits;
};

// True if all of these addresses and sizes, combined by "or", are multiples of a word of 1, 2, 4, ... bytes.
bool fits(uint64_t addresses_and_bytes, uint64_t word) { return addresses_and_bytes % word == 0; }
uint64_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

}  // namespace

void launch_copy(void* to, const void* from, int64_t bytes) {
  struct Word {
    int bytes;
    const char* name;
  };
  constexpr Word kWords[] = {{16, "hybridnet::device::Word16"}, {4, "uint32_t"}, {1, "uint8_t"}};
  const uint64_t all = number(to) | number(from) | static_cast<uint64_t>(bytes);
  int choice = 0;  // the widest word
  while (!fits(all, static_cast<uint64_t>(kWords[choice].bytes))) ++choice;
  const Word& word = kWords[choice];
  static ProgramTable<3> programs;
  programs
      .get(choice,
           [&] {
             return include_line("moves.cuh") +
                    kernel_line("copy", "CopyArguments", std::string("copy<") + word.name + ">");
           })
      .launch("copy", geometry_for(bytes / word.bytes), CopyArguments{from, to, bytes / word.bytes});
}

void launch_fill(void* to, uint8_t value, int64_t bytes) {
  constexpr uint64_t kEachByte = 0x0101010101010101u;
  const bool by_words = fits(number(to) | static_cast<uint64_t>(bytes), 8);
  const int64_t n = by_words ? bytes / 8 : bytes;
  static ProgramTable<2> programs;
  programs
      .get(by_words ? 1 : 0,
           [&] {
             return include_line("moves.cuh") +
                    kernel_line("fill", "FillArguments", by_words ? "fill<uint64_t>" : "fill<uint8_t>");
           })
      .launch("fill", geometry_for(n), FillArguments{to, n, value * kEachByte});
}

}  // namespace hybridnet::device
