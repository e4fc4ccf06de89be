#include "optimizer/update.h"

#include <algorithm>

#include "hybridnet/imperative.h"
#include "hybridnet/sparse.h"

namespace hybridnet::optimizer {
namespace {

using Attributes = std::vector<std::pair<std::string, AttrValue>>;

const OpRef kZerosLike{"zeros_like"}, kZeros{"_zeros"}, kCopy{"_copy"};

// A program over the arrays of one weight.
class Run {
 public:
  explicit Run(UpdateItem& item) : item_(item) {}

  void call(const LinkedCall& call, std::span<const double> row) {
    std::vector<NDArray> inputs;
    inputs.reserve(call.inputs.size());
    for (const Operand& operand : call.inputs) inputs.push_back(array(operand));
    if (call.target.kind == Operand::Kind::kResult) {
      results_.push_back(invoke(*call.op, call.params(row), inputs)[0]);
    } else {
      const NDArray target = array(call.target);
      invoke(*call.op, call.params(row), inputs, {&target, 1});
      results_.push_back(target);
    }
  }
  const NDArray& array(const Operand& operand) const {
    switch (operand.kind) {
      case Operand::Kind::kWeight:
        return item_.weight;
      case Operand::Kind::kGrad:
        return item_.grad;
      case Operand::Kind::kMaster:
        return item_.master;
      case Operand::Kind::kState:
        return item_.states[operand.index];
      default:
        return results_[operand.index];
    }
  }

 private:
  UpdateItem& item_;
  std::vector<NDArray> results_;
};

UpdateSubject subject_of(const UpdateItem& item) {
  UpdateSubject subject{item.weight.dtype(), static_cast<bool>(item.master), {}, item.t};
  for (const NDArray& state : item.states) subject.has_state.push_back(static_cast<bool>(state));
  return subject;
}

void update_alone(const Rule& rule, Settings& settings, UpdateItem& item, const LinkedProgram& program) {
  const std::vector<double> row = rule.rates_of(settings, item);
  Run run(item);
  for (const LinkedCall& call : program.calls()) run.call(call, row);
}

void update_together(const Rule& rule, Settings& settings, std::span<UpdateItem* const> items, LinkedProgram& program) {
  std::vector<std::vector<double>> rows;
  for (UpdateItem* item : items) rows.push_back(rule.rates_of(settings, *item));
  Run first(*items[0]);
  const LinkedCall& last = program.calls().back();
  for (const LinkedCall& call : program.calls())
    if (&call != &last) first.call(call, rows[0]);
  std::vector<NDArray> inputs, targets;
  for (UpdateItem* item : items) {
    const Run run(*item);
    for (const Operand& operand : last.inputs)
      if (operand.kind != Operand::Kind::kResult) inputs.push_back(run.array(operand));
    targets.push_back(run.array(last.target));
  }
  for (const Operand& operand : last.inputs)
    if (operand.kind == Operand::Kind::kResult) inputs.push_back(first.array(operand));
  const LinkedGroupCall& call = program.for_many(items.size());
  invoke(*call.op, call.params(rows), inputs, targets);
}

}  // namespace

bool needs_master(const Settings& settings, const NDArray& weight) {
  return settings.multi_precision && (weight.dtype() == DType::kFloat16 || weight.dtype() == DType::kBFloat16);
}

std::vector<NDArray> make_states(const Rule& rule, const Settings& settings, const NDArray& weight) {
  std::vector<NDArray> made;
  for (const std::optional<StateSpec>& spec : rule.states(settings).items) {
    if (!spec) {
      made.emplace_back();
    } else if (spec->one_per_row) {
      if (weight.ndim() != 2)
        throw ParamError({.op = rule.name,
                          .given = "a weight of shape " + weight.shape().str(),
                          .message = rule.name + " needs a matrix"});
      const Attributes attributes = {{"shape", AttrValue(Shape({weight.shape()[0], 1}))},
                                     {"dtype", dtype_name(weight.dtype())}};
      made.push_back(invoke(kZeros.op(), kZeros.op().schema->parse(attributes, kZeros.name()), {})[0]);
    } else {
      const OpRef& op = spec->copy_of_weight ? kCopy : kZerosLike;
      const NDArray like = to_dense(weight).detached();
      made.push_back(invoke_one(op.op(), op.op().default_params, {&like, 1}));
    }
  }
  return made;
}

void update(const Rule& rule, Settings& settings, std::span<UpdateItem> items, double base_lr, const Rule::Wait& wait,
            LinkedPrograms& programs) {
  Settings now = settings;
  if (rule.adjust) rule.adjust(now, items, base_lr, wait);
  std::vector<UpdateItem*> together;
  std::shared_ptr<LinkedProgram> shared;
  for (UpdateItem& item : items) {
    const bool is_lazy = rule.lazy && item.grad.storage_type() == StorageType::kRowSparse;
    if (is_lazy && now.lazy_update) {
      update_alone(rule, now, item, *programs.find(rule, now, subject_of(item), false));
      continue;
    }
    // Operators for single weights would update rows alone.
    if ((rule.lazy || rule.adjust) && item.grad.is_sparse()) item.grad = to_dense(item.grad);
    const std::shared_ptr<LinkedProgram> program = programs.find(rule, now, subject_of(item));
    if (!rule.aggregates || !program->runs_together()) {
      update_alone(rule, now, item, *program);
      continue;
    }
    if (shared && shared != program)
      throw ParamError({.op = rule.name, .message = "some weights have states that others of their dtype lack"});
    shared = program;
    together.push_back(&item);
  }
  if (shared) update_together(rule, now, together, *shared);
  for (const std::string& name : rule.variables) {
    const int field = rule.schema.find(name);
    rule.schema.set(&settings, field, rule.schema.get(&now, field), rule.name);
  }
}

bool can_be_compiled(const Rule& rule) {
  if (rule.adjust) return false;
  Ref<Params> params = rule.schema.create();
  const auto& settings = params->as<Settings>();
  UpdateSubject subject;
  for (const auto& item : rule.states(settings).items) subject.has_state.push_back(item.has_value());
  const UpdateProgram program = rule.program(settings, subject);
  return std::all_of(program.calls.begin(), program.calls.end(), [](const UpdateCall& call) {
    const bool is_update = call.op.find("_update") != std::string::npos;
    const bool changes = call.target.kind != Operand::Kind::kResult;
    return is_update || call.op == "_full" || (call.rates.empty() && !changes);
  });
}

}  // namespace hybridnet::optimizer
