#include "kernels/control/device_steps.h"

#include <algorithm>
#include <string>

#include "kernels/device/program_table.h"

namespace hybridnet::kernels::on_device {
namespace {

uint64_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

struct Word {
  int64_t bytes;
  const char* name;
};
constexpr Word kWords[] = {{16, "hybridnet::device::Word16"}, {4, "uint32_t"}, {1, "uint8_t"}};

// The widest word of which all addresses and sizes, combined by "or", are multiples.
int choose_word(uint64_t all, int first) {
  while (all % static_cast<uint64_t>(kWords[first].bytes) != 0) ++first;
  return first;
}

std::string text_for(const std::string& entry, const std::string& arguments, const std::string& type) {
  return include_line("loops.cuh") + kernel_line(entry, arguments, entry + "<" + type + ">");
}

void launch_moves(const device::LoopControl* control, std::span<const RowMove> moves) {
  uint64_t all = 0;
  for (const RowMove& move : moves)
    all |= number(move.from) | number(move.to) | static_cast<uint64_t>(move.from_step | move.to_step | move.bytes);
  const int choice = choose_word(all, 0);
  const Word& word = kWords[choice];
  device::RowMoves arguments{};
  arguments.control = control;
  arguments.count = static_cast<int64_t>(moves.size());
  int64_t most = 1;
  for (size_t i = 0; i < moves.size(); ++i) {
    const RowMove& move = moves[i];
    arguments.moves[i] = {move.from, move.to, move.from_step, move.to_step, move.bytes / word.bytes};
    most = std::max(most, arguments.moves[i].words);
  }
  static ProgramTable<3> programs;
  programs.get(choice, [&] { return text_for("move_rows", "RowMoves", word.name); })
      .launch("move_rows", device::geometry_for(most), arguments);
}

void launch_clears(const device::LoopControl* control, std::span<const ClearedRows> clears) {
  uint64_t all = 0;
  for (const ClearedRows& clear : clears) all |= number(clear.out) | static_cast<uint64_t>(clear.row_bytes);
  const int choice = choose_word(all, 1);
  const Word& word = kWords[choice];
  device::RowClears arguments{};
  arguments.control = control;
  arguments.count = static_cast<int64_t>(clears.size());
  int64_t most = 1;
  for (size_t i = 0; i < clears.size(); ++i) {
    arguments.clears[i] = {clears[i].out, clears[i].row_bytes / word.bytes, clears[i].rows};
    most = std::max(most, clears[i].row_bytes / word.bytes * clears[i].rows);
  }
  static ProgramTable<3> programs;
  programs.get(choice, [&] { return text_for("clear_rows", "RowClears", word.name); })
      .launch("clear_rows", device::geometry_for(most), arguments);
}

}  // namespace

void launch_loop_decision(const device::LoopDecision& decision, DType dtype) {
  static ProgramTable<kDTypeCodes> programs;
  const auto text = [&] { return text_for("decide_loop", "LoopDecision", element_name(dtype)); };
  programs.get(static_cast<int>(dtype), text, device::ImageKind::kLinkedByDriver)
      .launch_setting("decide_loop", 1, decision);
}

void launch_branch_decision(const device::BranchDecision& decision, DType dtype) {
  static ProgramTable<kDTypeCodes> programs;
  const auto text = [&] { return text_for("decide_branch", "BranchDecision", element_name(dtype)); };
  programs.get(static_cast<int>(dtype), text, device::ImageKind::kLinkedByDriver)
      .launch_setting("decide_branch", 2, decision);
}

void launch_row_moves(const device::LoopControl* control, std::span<const RowMove> moves) {
  for (size_t done = 0; done < moves.size(); done += device::RowMoves::kMost)
    launch_moves(control, moves.subspan(done, std::min<size_t>(moves.size() - done, device::RowMoves::kMost)));
}

void launch_nothing() { launch_moves(nullptr, {}); }

void launch_row_clears(const device::LoopControl* control, std::span<const ClearedRows> clears) {
  for (size_t done = 0; done < clears.size(); done += device::RowClears::kMost)
    launch_clears(control, clears.subspan(done, std::min<size_t>(clears.size() - done, device::RowClears::kMost)));
}

}  // namespace hybridnet::kernels::on_device
