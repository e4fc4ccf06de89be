#include "op/pointwise_program.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "op/attr_text.h"

namespace hybridnet {
namespace {

[[noreturn]] void reject(std::string expected, std::string_view given) {
  throw ParamError({.input = "program", .expected = std::move(expected), .given = std::string(given.substr(0, 200))});
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The parts between separators, ignoring separators inside brackets.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : separator;
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (c != separator || (i < text.size() && depth != 0)) continue;
    parts.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

int parse_slot(std::string_view text, int end) {
  int64_t slot = -1;
  if (!parse_int(text, &slot) || slot < 0 || slot >= end) reject("a slot in [0, " + std::to_string(end) + ")", text);
  return static_cast<int>(slot);
}

// Parses a step such as "_plus_scalar(3, scalar=1.0)", which may read the slots before `end`.
PointwiseProgram::Step parse_step(std::string_view text, int end) {
  const size_t open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')')
    reject("steps of the form operator(slot, name=value)", text);
  PointwiseProgram::Step step;
  step.op = op_registry().find(trimmed(text.substr(0, open)));
  if (!step.op || !step.op->pointwise || step.op->random || step.op->opaque)
    reject("an elementwise operator", text.substr(0, open));
  std::vector<std::pair<std::string, std::string>> attrs;
  for (const std::string_view item : split(text.substr(open + 1, text.size() - open - 2), ',')) {
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      step.in.push_back(parse_slot(item, end));
    else
      attrs.emplace_back(trimmed(item.substr(0, equals)), trimmed(item.substr(equals + 1)));
  }
  step.params = step.op->schema->parse(attrs, step.op->name, false);
  const int count = step.op->num_inputs(step.params->data());
  if (step.in.empty() || static_cast<int>(step.in.size()) != count || step.in.size() > PointwiseProgram::kMaxOperands ||
      step.op->num_outputs(step.params->data()) != 1)
    reject(std::to_string(count) + " operands of " + step.op->name, text);
  return step;
}

}  // namespace

void PointwiseProgram::describe(ParamSchema<PointwiseProgram>& schema) {
  schema.field("num_args", &PointwiseProgram::num_inputs)
      .range(1, static_cast<double>(kMaxInputs))
      .doc("Number of inputs.");
  schema.field("program", &PointwiseProgram::text)
      .doc(
          "Steps, and the slots that are outputs: 'tanh(0); broadcast_mul(2, 1) -> 3@0, 2'. The inputs are slots 0, 1, "
          "..., every step makes the next one; '@0': in the memory of input 0.");
  schema.field("native", &PointwiseProgram::native)
      .default_value(false)
      .doc("May become machine code where there is a C compiler.");
}

void PointwiseProgram::complete() {
  if (text.empty()) {
    if (steps.empty()) reject("at least one step", "''");
    return;
  }
  const size_t arrow = text.rfind("->");
  if (arrow == std::string::npos) reject("steps -> outputs", text);
  steps.clear();
  for (const std::string_view step : split(std::string_view(text).substr(0, arrow), ';')) {
    if (steps.size() == kMaxSteps) reject("at most " + std::to_string(kMaxSteps) + " steps", text);
    steps.push_back(parse_step(step, num_inputs + static_cast<int>(steps.size())));
  }
  outputs.clear();
  memory_of.clear();
  const int end = num_inputs + static_cast<int>(steps.size());
  for (const std::string_view output : split(std::string_view(text).substr(arrow + 2), ',')) {
    const size_t at = output.find('@');
    outputs.push_back(parse_slot(output.substr(0, at), end));
    memory_of.push_back(at == std::string_view::npos ? -1 : parse_slot(output.substr(at + 1), num_inputs));
    const int step = outputs.back() - num_inputs;
    if (step < 0) reject("slots of steps as outputs", output);
    if (memory_of.back() >= 0 && last_reader(memory_of.back()) > step)
      reject("memory of an input that no later step reads", output);
  }
  const auto distinct = [](std::vector<int> numbers) {
    std::erase(numbers, -1);
    return std::set<int>(numbers.begin(), numbers.end()).size() == numbers.size();
  };
  if (outputs.size() > kMaxOutputs || !distinct(outputs) || !distinct(memory_of))
    reject("at most " + std::to_string(kMaxOutputs) + " different outputs, in different memory", text);
  text.clear();
  is_read = true;
}

std::optional<AttrValue> PointwiseProgram::written(const std::string& field) const {
  if (field != "program") return std::nullopt;
  std::string result;
  for (const Step& step : steps) {
    std::string operands;
    for (const int slot : step.in) operands += (operands.empty() ? "" : ", ") + std::to_string(slot);
    for (const auto& [name, value] : step.op->schema->print(step.params->data())) operands += ", " + name + "=" + value;
    result += (result.empty() ? "" : "; ") + step.op->name + "(" + operands + ")";
  }
  result += " -> ";
  for (size_t i = 0; i < outputs.size(); ++i) {
    result += (i == 0 ? "" : ", ") + std::to_string(outputs[i]);
    if (memory_of[i] >= 0) result += "@" + std::to_string(memory_of[i]);
  }
  return AttrValue(std::move(result));
}

bool PointwiseProgram::operator==(const PointwiseProgram& other) const {
  const auto same_step = [](const Step& s, const Step& t) {
    return s.op == t.op && s.in == t.in && s.op->schema->equal(s.params->data(), t.params->data());
  };
  return num_inputs == other.num_inputs && native == other.native && outputs == other.outputs &&
         memory_of == other.memory_of &&
         std::equal(steps.begin(), steps.end(), other.steps.begin(), other.steps.end(), same_step);
}

uint64_t PointwiseProgram::hash() const {
  uint64_t hash = static_cast<uint64_t>(num_inputs) * 2 + (native ? 1 : 0);
  const auto add = [&](uint64_t value) { hash = mix_hash(hash, value); };
  for (const Step& step : steps) {
    add(static_cast<uint64_t>(step.op->id));
    add(step.op->schema->hash(step.params->data()));
    for (const int slot : step.in) add(static_cast<uint64_t>(slot));
  }
  for (const int slot : outputs) add(static_cast<uint64_t>(slot));
  return hash;
}

int PointwiseProgram::last_reader(int slot) const {
  int last = -1;
  for (size_t s = 0; s < steps.size(); ++s)
    if (std::find(steps[s].in.begin(), steps[s].in.end(), slot) != steps[s].in.end()) last = static_cast<int>(s);
  return last;
}

}  // namespace hybridnet
