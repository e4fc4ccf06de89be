#include "ops/fused/native_chain.h"

#include <algorithm>
#include <optional>

#include "kernels/isa.h"

namespace hybridnet::ops {
namespace {

constexpr int64_t kWorthCode = int64_t{1} << 29;  // elements times steps, whose time is about that of a compilation
constexpr char kEntry[] = "hn_chain";
using ChainFunction = void (*)(const void* const*, void* const*, void*, int64_t, int64_t, const c_forms::Call*);

// The flags for vectors of the kernels' width.
std::string vector_flags() {
#if defined(__x86_64__)
  switch (kernels::isa_in_force().level) {
    case kernels::Isa::kSse4:
      return "-O3 -msse4.1";
    case kernels::Isa::kAvx2:
      return "-O3 -mavx2";
    default:
      return "-O3 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512";
  }
#else
  return "-O3";
#endif
}

}  // namespace

// Orders steps into rounds and writes them. A round is a loop over the steps with a form in C, followed by the calls of
// the other steps. A step is placed in the first round in which its operands are available.
class NativeChainWriter {
 public:
  NativeChainWriter(const PointwiseProgram& program, DType dtype, const std::vector<bool>& single)
      : program_(program), dtype_(dtype), single_(single), type_(c_forms::type_of(dtype)) {}

  std::unique_ptr<NativeChain> write() {
    place_steps();
    if (!saves_a_pass() || !may_write_in_place()) return nullptr;
    place_values();
    write_head();
    for (int round = 0; round < rounds_; ++round) {
      write_loop(round);
      write_calls(round);
    }
    text_ += "}\n";
    made_->function_ = std::make_shared<NativeFunction>(c_forms::kTypes + text_, kEntry, vector_flags());
    made_->buffers_ = static_cast<int>(busy_until_.size());
    made_->steps_ = static_cast<int64_t>(program_.steps.size());
    return std::move(made_);
  }

 private:
  struct Step {
    std::optional<std::string> form;
    int round = 0;
    // Loops and calls alternate.
    int phase() const { return 2 * round + (form ? 0 : 1); }
    int next_round() const { return form ? round : round + 1; }
  };

  bool is_input(int slot) const { return slot < program_.num_inputs; }
  const Step& maker(int slot) const { return steps_[static_cast<size_t>(slot - program_.num_inputs)]; }
  int slot_of(size_t step) const { return program_.num_inputs + static_cast<int>(step); }

  void place_steps() {
    for (const PointwiseProgram::Step& step : program_.steps) {
      Step placed{c_forms::expression(*step.op, step.params, dtype_)};
      for (const int slot : step.in)
        if (!is_input(slot)) placed.round = std::max(placed.round, maker(slot).next_round());
      rounds_ = std::max(rounds_, placed.round + 1);
      steps_.push_back(std::move(placed));
    }
  }

  bool saves_a_pass() const {
    for (int round = 0; round < rounds_; ++round)
      if (std::count_if(steps_.begin(), steps_.end(), [&](const Step& s) { return s.form && s.round == round; }) > 1)
        return true;
    return false;
  }

  // True if no step reads an input after an output has overwritten it. The interpreter's order guarantees that; rounds
  // change the order.
  bool may_write_in_place() const {
    for (size_t o = 0; o < program_.outputs.size(); ++o) {
      const int written = maker(program_.outputs[o]).phase();
      for (size_t s = 0; s < steps_.size(); ++s) {
        const std::vector<int>& in = program_.steps[s].in;
        if (std::find(in.begin(), in.end(), program_.memory_of[o]) != in.end() && steps_[s].phase() > written)
          return false;
      }
    }
    return true;
  }

  int output_of(int slot) const {
    const auto found = std::find(program_.outputs.begin(), program_.outputs.end(), slot);
    return found == program_.outputs.end() ? -1 : static_cast<int>(found - program_.outputs.begin());
  }

  // Assigns memory, an output or a buffer, to values that other loops or calls use.
  void place_values() {
    stored_.assign(static_cast<size_t>(program_.num_inputs) + steps_.size(), false);
    std::vector<int> last(stored_.size(), -1);
    for (size_t s = 0; s < steps_.size(); ++s) {
      for (const int slot : program_.steps[s].in) {
        last[static_cast<size_t>(slot)] = std::max(last[static_cast<size_t>(slot)], steps_[s].phase());
        if (!is_input(slot) && (maker(slot).phase() != steps_[s].phase() || !steps_[s].form))
          stored_[static_cast<size_t>(slot)] = true;
      }
    }
    buffer_of_.assign(stored_.size(), -1);
    std::vector<size_t> order(steps_.size());
    for (size_t s = 0; s < order.size(); ++s) order[s] = s;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return steps_[a].phase() < steps_[b].phase(); });
    for (const size_t s : order) {
      const auto slot = static_cast<size_t>(slot_of(s));
      if (output_of(static_cast<int>(slot)) >= 0) stored_[slot] = true;
      if (!steps_[s].form) stored_[slot] = true;  // even if unread: the function has to write its result
      if (!stored_[slot] || output_of(static_cast<int>(slot)) >= 0) continue;
      const int phase = steps_[s].phase();
      auto free = std::find_if(busy_until_.begin(), busy_until_.end(), [&](int until) { return until < phase; });
      if (free == busy_until_.end()) free = busy_until_.insert(free, 0);
      *free = std::max(phase, last[slot]);
      buffer_of_[slot] = static_cast<int>(free - busy_until_.begin());
    }
  }

  std::string pointer(int slot) const { return "p" + std::to_string(slot); }
  std::string value(int slot) const { return "v" + std::to_string(slot); }

  void write_head() {
    text_ = "void " + std::string(kEntry) +
            "(const void* const* in, void* const* out, void* buffers, i64 tile, i64 n, const Step* steps) {\n";
    for (int slot = 0; slot < program_.num_inputs; ++slot) {
      const std::string from = "(const " + type_ + "*)in[" + std::to_string(slot) + "]";
      text_ += "  const " + type_ + "* const " + pointer(slot) + " = " + from + ";\n";
      if (single_[static_cast<size_t>(slot)])
        text_ += "  const " + type_ + " " + value(slot) + " = " + pointer(slot) + "[0];\n";
    }
    for (size_t s = 0; s < steps_.size(); ++s) {
      const int slot = slot_of(s), output = output_of(slot);
      if (!stored_[static_cast<size_t>(slot)]) continue;
      const std::string place =
          output >= 0 ? "(" + type_ + "*)out[" + std::to_string(output) + "]"
                      : "(" + type_ + "*)buffers + tile * " + std::to_string(buffer_of_[static_cast<size_t>(slot)]);
      text_ += "  " + type_ + "* const " + pointer(slot) + " = " + place + ";\n";
    }
  }

  // Elements are independent, even if an output has the memory of an input.
  void write_loop(int round) {
    std::string reads, makes, stores;
    std::vector<bool> read(stored_.size());
    for (size_t s = 0; s < steps_.size(); ++s) {
      if (!steps_[s].form || steps_[s].round != round) continue;
      std::string made = *steps_[s].form;
      const std::vector<int>& in = program_.steps[s].in;
      for (size_t i = 0; i < in.size(); ++i) {
        made = c_forms::replaced(made, i == 0 ? "$a" : "$b", value(in[i]));
        const bool from_memory =
            is_input(in[i]) ? !single_[static_cast<size_t>(in[i])] : maker(in[i]).phase() != steps_[s].phase();
        if (!from_memory || read[static_cast<size_t>(in[i])]) continue;
        read[static_cast<size_t>(in[i])] = true;
        reads += "    const " + type_ + " " + value(in[i]) + " = " + pointer(in[i]) + "[e];\n";
      }
      const int slot = slot_of(s);
      makes += "    const " + type_ + " " + value(slot) + " = " + made + ";\n";
      if (stored_[static_cast<size_t>(slot)]) stores += "    " + pointer(slot) + "[e] = " + value(slot) + ";\n";
    }
    if (makes.empty()) return;
    text_ += "#pragma GCC ivdep\n#pragma clang loop vectorize(assume_safety)\n  for (i64 e = 0; e < n; ++e) {\n";
    text_ += reads + makes + stores + "  }\n";
  }

  void write_calls(int round) {
    for (size_t s = 0; s < steps_.size(); ++s) {
      if (steps_[s].form || steps_[s].round != round) continue;
      const PointwiseProgram::Step& step = program_.steps[s];
      std::string operands;
      for (const int slot : step.in) operands += (operands.empty() ? "" : ", ") + pointer(slot);
      const std::string function = "steps[" + std::to_string(made_->calls_.size()) + "]";
      text_ += "  " + c_forms::call(function, dtype_, operands, pointer(slot_of(s)), "n") + "\n";
      made_->calls_.push_back({step.op->pointwise, step.params->data()});
      made_->params_.push_back(step.params);
    }
  }

  const PointwiseProgram& program_;
  const DType dtype_;
  const std::vector<bool>& single_;
  const std::string type_;
  std::unique_ptr<NativeChain> made_ = std::make_unique<NativeChain>();
  std::string text_;
  std::vector<Step> steps_;
  int rounds_ = 0;
  std::vector<bool> stored_;     // per slot
  std::vector<int> buffer_of_;   // per slot
  std::vector<int> busy_until_;  // per buffer: the last phase that reads it
};

std::unique_ptr<NativeChain> NativeChain::make(const PointwiseProgram& program, DType dtype,
                                               const std::vector<bool>& single) {
  if (!native_code_available() || c_forms::type_of(dtype) == nullptr) return nullptr;
  std::unique_ptr<NativeChain> made = NativeChainWriter(program, dtype, single).write();
  if (made && native_code_is_awaited()) make_native(made->function_);
  return made;
}

void NativeChain::run(const void* const* in, void* const* out, void* buffers, int64_t tile, int64_t n) const {
  reinterpret_cast<ChainFunction>(function_->get())(in, out, buffers, tile, n, calls_.data());
}

void NativeChain::note_elements(int64_t count) {
  const int64_t before = interpreted_.fetch_add(count * steps_, std::memory_order_relaxed);
  if (before < kWorthCode && before + count * steps_ >= kWorthCode && !native_code_is_awaited()) make_native(function_);
}

}  // namespace hybridnet::ops
