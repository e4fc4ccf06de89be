// Prints a plan as text: Plan::text().
#include <algorithm>
#include <cstdio>
#include <string>

#include "plan/control/control_kernel.h"
#include "plan/plan.h"

namespace hybridnet {
namespace {

constexpr size_t kShownOthers = 6;  // listed cells that share memory with one cell

std::string with_unit(double value, const char* const (&units)[4], double step) {
  size_t unit = 0;
  for (; unit < 3 && value >= step; ++unit) value /= step;
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 || value >= 100 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

std::string bytes_text(int64_t bytes) {
  return with_unit(static_cast<double>(bytes), {"bytes", "KiB", "MiB", "GiB"}, 1024);
}

std::string time_text(int64_t ns) { return with_unit(static_cast<double>(ns), {"ns", "us", "ms", "s"}, 1000); }

std::string counted(size_t number, const char* noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

}  // namespace

class PlanPrinter {
 public:
  explicit PlanPrinter(const Plan& plan) : plan_(plan) {
    int temporaries = 0;
    for (const Plan::Cell& cell : plan_.cells_)
      numbers_.push_back(cell.kind == PlanStorage::Kind::kTemporary ? temporaries++ : cell.index);
  }

  std::string run() {
    if (const Ref<Plan>& preparation = plan_.linked_->preparation) {
      line(0, "prepared once per set of parameters, and kept:");
      text_ += indented(preparation->text());
    }
    print_summary();
    print_inputs();
    for (size_t i = 0; i < plan_.instructions_.size(); ++i) print_instruction(i);
    print_outputs();
    print_arena();
    return std::move(text_);
  }

 private:
  void line(int indent, const std::string& content) {
    text_ += std::string(static_cast<size_t>(indent), ' ') + content + "\n";
  }

  static std::string indented(const std::string& text) {
    std::string result;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin) + 1;
      result += "    " + text.substr(begin, end - begin);
      begin = end;
    }
    return result;
  }

  void print_summary() {
    std::string text = counted(plan_.instructions_.size(), "instruction") + ", arena " +
                       bytes_text(plan_.arena_bytes_) + " for " + counted(plan_.num_temporaries_, "value");
    if (plan_.residual_bytes_ > 0) text += ", kept for backward " + bytes_text(plan_.residual_bytes_);
    text += ", about " + time_text(plan_.cost_ns_) + " of work";
    line(0, text + (plan_.train_ ? ", training" : ""));
  }

  // i3: input; c0: constant; o1: fresh array of the call; r5: kept for backward; t2: temporary in the arena.
  std::string name_of(int arg) const {
    const int cell = plan_.cell_of_arg_[static_cast<size_t>(arg)];
    if (cell < 0) return "-";
    const Plan::Cell& c = plan_.cells_[static_cast<size_t>(cell)];
    switch (c.kind) {
      case PlanStorage::Kind::kTemporary:
        return "t" + std::to_string(numbers_[static_cast<size_t>(cell)]);
      case PlanStorage::Kind::kInput:
        return "i" + std::to_string(c.index);
      case PlanStorage::Kind::kOutput:
        return "o" + std::to_string(c.index);
      case PlanStorage::Kind::kResidual:
        return "r" + std::to_string(c.offset);
      case PlanStorage::Kind::kConstant:
        return "c" + std::to_string(c.index);
    }
    return "?";
  }

  std::string spec_of(int arg) const {
    const TensorRef& ref = plan_.args_[static_cast<size_t>(arg)];
    const std::string spec = TensorSpec{*ref.shape, ref.dtype}.str();
    return ref.format == Format::kChannelsLast ? spec + " channels-last" : spec;
  }

  void print_inputs() {
    std::vector<int> first_arg(plan_.linked_->input_names.size(), -1);
    for (size_t arg = plan_.args_.size(); arg-- > 0;) {
      const int cell = plan_.cell_of_arg_[arg];
      if (cell < 0 || plan_.cells_[static_cast<size_t>(cell)].kind != PlanStorage::Kind::kInput) continue;
      const auto index = static_cast<size_t>(plan_.cells_[static_cast<size_t>(cell)].index);
      if (index < first_arg.size()) first_arg[index] = static_cast<int>(arg);
    }
    for (size_t i = 0; i < first_arg.size(); ++i)
      line(2, "i" + std::to_string(i) + " = " + plan_.linked_->input_names[i] +
                  (first_arg[i] < 0 ? ", not read" : "  " + spec_of(first_arg[i])));
  }

  void print_instruction(size_t number) {
    const Plan::Instruction& instruction = plan_.instructions_[number];
    const Plan::Linked::Step& origin = plan_.linked_->steps[number];
    std::string text = "[" + std::to_string(number) + "] " + plan_.op_name(number);
    if (instruction.kernel)
      if (const std::string how = instruction.kernel->description(); !how.empty()) text += " <" + how + ">";
    text += " (";
    for (int i = 0; i < instruction.num_in; ++i) text += (i > 0 ? ", " : "") + name_of(instruction.first_arg + i);
    text += ") ->";
    for (int i = 0; i < instruction.num_out; ++i) {
      const int arg = instruction.first_arg + instruction.num_in + i;
      text += (i > 0 ? ", " : " ") + name_of(arg) + place_of(arg, instruction) + " " + spec_of(arg);
    }
    if (instruction.workspace >= 0)
      text += "; workspace of " + bytes_text(instruction.kernel->workspace_bytes()) + " at " +
              std::to_string(instruction.workspace);
    text += "  '" + origin.node + "'";
    if (!origin.block.empty()) text += " of '" + origin.block + "'";
    if (origin.where.known()) text += " " + origin.where.str();
    line(2, text);
    if (const auto* control = dynamic_cast<const ControlKernel*>(instruction.kernel)) {
      for (const ControlKernel::Body& body : control->bodies()) {
        line(4, body.name + ":");
        text_ += indented(indented(body.plan->text()));
      }
    }
  }

  // Returns the place of an output in the arena, or whether it takes over the memory of an input.
  std::string place_of(int arg, const Plan::Instruction& instruction) const {
    const int cell = plan_.cell_of_arg_[static_cast<size_t>(arg)];
    if (cell < 0) return "";
    for (int i = 0; i < instruction.num_in; ++i)
      if (plan_.cell_of_arg_[static_cast<size_t>(instruction.first_arg + i)] == cell) return " (in place)";
    const Plan::Cell& c = plan_.cells_[static_cast<size_t>(cell)];
    return c.kind == PlanStorage::Kind::kTemporary && c.offset >= 0 ? "@" + std::to_string(c.offset) : "";
  }

  void print_outputs() {
    for (size_t i = 0; i < plan_.outputs_.size(); ++i) {
      const Plan::OutputInfo& output = plan_.outputs_[i];
      const std::string array =
          output.fresh < 0 ? "i" + std::to_string(output.input) : "o" + std::to_string(output.fresh);
      line(2, "output " + std::to_string(i) + " = " + array + "  " + output.spec.str());
    }
  }

  // Prints cells by offset; overlapping cells live at different times, or on two sides of a branch.
  void print_arena() {
    std::vector<size_t> cells;
    for (size_t i = 0; i < plan_.cells_.size(); ++i)
      if (plan_.cells_[i].kind == PlanStorage::Kind::kTemporary && plan_.cells_[i].bytes > 0) cells.push_back(i);
    if (cells.empty()) return;
    std::stable_sort(cells.begin(), cells.end(),
                     [&](size_t a, size_t b) { return plan_.cells_[a].offset < plan_.cells_[b].offset; });
    line(2, "arena:");
    for (const size_t i : cells) {
      const Plan::Cell& cell = plan_.cells_[i];
      std::string text = "t" + std::to_string(numbers_[i]) + "  " + std::to_string(cell.offset) + " to " +
                         std::to_string(cell.offset + cell.bytes) + "  instructions " + std::to_string(cell.first) +
                         " to " + std::to_string(cell.last);
      std::string others;
      size_t num_others = 0;
      for (const size_t j : cells) {
        const Plan::Cell& other = plan_.cells_[j];
        const bool overlap = other.offset < cell.offset + cell.bytes && cell.offset < other.offset + other.bytes;
        if (j == i || !overlap) continue;
        if (++num_others <= kShownOthers) others += " t" + std::to_string(numbers_[j]);
      }
      if (num_others > kShownOthers) others += " and " + std::to_string(num_others - kShownOthers) + " more";
      line(4, others.empty() ? text : text + "  shares memory with" + others);
    }
  }

  const Plan& plan_;
  std::vector<int> numbers_;  // per cell, the number in its name
  std::string text_;
};

std::string Plan::text() const { return PlanPrinter(*this).run(); }

}  // namespace hybridnet
