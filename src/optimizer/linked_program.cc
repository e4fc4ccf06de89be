#include "optimizer/linked_program.h"

#include <algorithm>

namespace hybridnet::optimizer {
namespace {

using Attributes = std::vector<std::pair<std::string, AttrValue>>;

constexpr size_t kMaxPrograms = 16;

size_t column_of(const Rule& rule, const std::string& name) {
  return static_cast<size_t>(std::find(rule.columns.begin(), rule.columns.end(), name) - rule.columns.begin());
}

void set_numbers(const Op& op, void* params, const std::vector<LinkedCall::Number>& numbers,
                 std::span<const double> row) {
  for (const auto& [field, column] : numbers) op.schema->set(params, field, AttrValue(row[column]), op.name);
}

bool is_listed(const std::string& name) { return name == "lr" || name == "wd" || name == "eta"; }

}  // namespace

ParamsPtr LinkedCall::params(std::span<const double> row) const {
  if (numbers.empty()) return fixed;
  Ref<Params> made = op->schema->copy(*fixed);
  set_numbers(*op, made->data(), numbers, row);
  return ParamsPtr(made.get());
}

ParamsPtr LinkedGroupCall::params(std::span<const std::vector<double>> rows) const {
  Ref<Params> made = op->schema->copy(*fixed);
  set_numbers(*op, made->data(), numbers, rows[0]);
  for (const auto& [offset, column] : lists) {
    auto& list = *reinterpret_cast<std::vector<double>*>(static_cast<char*>(made->data()) + offset);
    for (size_t i = 0; i < rows.size(); ++i) list[i] = rows[i][column];
  }
  return ParamsPtr(made.get());
}

LinkedProgram::LinkedProgram(const Rule& rule, UpdateProgram program) : rule_(rule), program_(std::move(program)) {
  for (const UpdateCall& call : program_.calls) {
    LinkedCall& linked = calls_.emplace_back();
    linked.op = &op_registry().at(call.op);
    linked.inputs = call.inputs;
    linked.target = call.target;
    linked.row = call.row;
    Attributes attributes = call.attributes;
    for (const auto& [name, rate] : call.rates) {
      attributes.emplace_back(name, 1);
      linked.numbers.push_back({linked.op->schema->find(name), column_of(rule_, rate)});
    }
    linked.fixed = linked.op->schema->parse(attributes, call.op);
  }
  const UpdateCall& last = program_.calls.back();
  runs_together_ = !last.many.empty();
  for (size_t i = 0; i + 1 < program_.calls.size(); ++i)
    runs_together_ =
        runs_together_ && (program_.calls[i].inputs.empty() || last.row == Operand{Operand::Kind::kResult, i});
}

const LinkedGroupCall& LinkedProgram::for_many(size_t count) {
  if (group_size_ == count) return group_;
  const UpdateCall& call = program_.calls.back();
  group_ = {};
  group_.op = &op_registry().at(call.many);
  const SchemaBase& schema = *group_.op->schema;
  Attributes attributes = {{"num_weights", static_cast<int64_t>(count)}};
  for (const auto& [name, value] : call.attributes)
    if (is_listed(name))
      attributes.emplace_back(name + "s", AttrValue::List(count, value));
    else
      attributes.emplace_back(name, value);
  for (const auto& [name, rate] : call.rates) {
    const bool listed = is_listed(name);
    const int field = schema.find(listed ? name + "s" : name);
    if (listed)
      group_.lists.push_back({schema.fields()[static_cast<size_t>(field)].offset, column_of(rule_, rate)});
    else
      group_.numbers.push_back({field, column_of(rule_, rate)});
    attributes.emplace_back(listed ? name + "s" : name, listed ? AttrValue(AttrValue::List(count, 1.0)) : AttrValue(1));
  }
  group_.fixed = schema.parse(attributes, call.many);
  group_size_ = count;
  return group_;
}

std::shared_ptr<LinkedProgram> LinkedPrograms::find(const Rule& rule, const Settings& settings, UpdateSubject subject,
                                                    bool allows_native) {
  Settings key = settings;  // without the settings that programs read from columns
  key.rescale_grad = key.m_schedule = 1;
  key.learning_rate = key.wd = 0;
  key.last_lr = key.cur_lr = std::nullopt;
  for (const Entry& entry : entries_)
    if (entry.allows_native == allows_native && entry.subject == subject && entry.settings == key) return entry.program;
  auto made = std::make_shared<LinkedProgram>(rule, rule.program(settings, subject, allows_native));
  Entry entry{std::move(key), std::move(subject), allows_native, made};
  if (entries_.size() < kMaxPrograms)
    entries_.push_back(std::move(entry));
  else
    entries_[next_++ % kMaxPrograms] = std::move(entry);
  return made;
}

}  // namespace hybridnet::optimizer
