#include "optimizer/update.h"

#include <algorithm>

#include "hybridnet/imperative.h"
#include "hybridnet/sparse.h"
#include "imperative/invoke.h"

namespace hybridnet::optimizer {
namespace {

using Attributes = std::vector<std::pair<std::string, AttrValue>>;

const OpRef kZerosLike{"zeros_like"}, kZeros{"_zeros"}, kCopy{"_copy"};

// Runs a program over the arrays of one weight.
class Run {
 public:
  Run(const Rule& rule, Settings& settings, UpdateItem& item, const Wait& wait)
      : item_(item), wait_(wait), row_(rule.rates_of(settings, item)) {}

  void call(const LinkedCall& call) {
    const DefaultDevice of_constants(device());
    std::vector<NDArray> inputs;
    inputs.reserve(call.inputs.size());
    for (const Operand& operand : call.inputs) inputs.push_back(array(operand));
    const ParamsPtr params = call.numbers.empty() ? call.fixed : call.params(row(call));
    if (call.target.kind == Operand::Kind::kResult) {
      results_.push_back(invoke(*call.op, params, inputs)[0]);
    } else {
      const NDArray target = array(call.target);
      invoke(*call.op, params, inputs, {&target, 1});
      results_.push_back(target);
    }
  }
  Device device() const { return item_.weight.device(); }
  // Adds the result of a call that was computed for another weight.
  void share(const NDArray& result) { results_.push_back(result); }

  // The numbers of a call; waits if operators compute them.
  std::vector<double> row(const LinkedCall& call) {
    if (!call.row) return row_;
    const NDArray& computed = array(*call.row);
    wait_(computed);
    std::vector<double> values(static_cast<size_t>(computed.size()));
    computed.copy_to(values.data());
    return values;
  }
  const NDArray& array(const Operand& operand) {
    switch (operand.kind) {
      case Operand::Kind::kWeight:
        return item_.weight;
      case Operand::Kind::kGrad:
        return item_.grad;
      case Operand::Kind::kMaster:
        return item_.master;
      case Operand::Kind::kState:
        return item_.states[operand.index];
      case Operand::Kind::kRates:
        if (!rates_) {
          rates_ =
              NDArray::empty(Shape({1, static_cast<int64_t>(row_.size())}), DType::kFloat64, item_.weight.device());
          rates_.copy_from(row_.data());
        }
        return rates_;
      default:
        return results_[operand.index];
    }
  }

 private:
  UpdateItem& item_;
  const Wait& wait_;
  const std::vector<double> row_;
  NDArray rates_;
  std::vector<NDArray> results_;
};

UpdateSubject subject_of(const Rule& rule, const Settings& settings, const UpdateItem& item) {
  UpdateSubject subject{
      item.weight.dtype(), static_cast<bool>(item.master), {}, rule.variant_of(settings, item.name, item.t)};
  for (const NDArray& state : item.states) subject.has_state.push_back(static_cast<bool>(state));
  return subject;
}

void update_together(std::vector<Run>& runs, LinkedProgram& program) {
  const LinkedCall& last = program.calls().back();
  for (const LinkedCall& call : program.calls()) {
    if (&call == &last) break;
    for (Run& run : runs) {
      if (&run == &runs[0] || !call.inputs.empty())
        run.call(call);
      else
        run.share(runs[0].array({Operand::Kind::kResult, static_cast<size_t>(&call - program.calls().data())}));
    }
  }
  std::vector<NDArray> inputs, targets;
  std::vector<std::vector<double>> rows;
  for (Run& run : runs) {
    for (const Operand& operand : last.inputs)
      if (operand.kind != Operand::Kind::kResult) inputs.push_back(run.array(operand));
    targets.push_back(run.array(last.target));
    rows.push_back(run.row(last));
  }
  for (const Operand& operand : last.inputs)
    if (operand.kind == Operand::Kind::kResult) inputs.push_back(runs[0].array(operand));
  const LinkedGroupCall& call = program.for_many(runs.size());
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
                                     {"dtype", dtype_name(weight.dtype())},
                                     {"ctx", weight.device().str()}};
      made.push_back(invoke(kZeros.op(), kZeros.op().schema->parse(attributes, kZeros.name()), {})[0]);
    } else {
      const OpRef& op = spec->copy_of_weight ? kCopy : kZerosLike;
      const NDArray like = to_dense(weight).detached();
      made.push_back(invoke_one(op.op(), op.op().default_params, {&like, 1}));
    }
  }
  return made;
}

void update(const Rule& rule, Settings& settings, std::span<UpdateItem> items, double base_lr, const Wait& wait,
            LinkedPrograms& programs) {
  Settings now = settings;
  if (rule.begin) rule.begin(now, base_lr);
  std::vector<std::pair<std::shared_ptr<LinkedProgram>, std::vector<Run>>> groups;
  for (UpdateItem& item : items) {
    const bool is_lazy = rule.lazy && item.grad.storage_type() == StorageType::kRowSparse;
    const bool goes_alone = is_lazy && now.lazy_update;
    // The operators for single weights would update only the rows of a sparse gradient, so it is made dense.
    if (!goes_alone && (rule.lazy || rule.variant) && item.grad.is_sparse()) item.grad = to_dense(item.grad);
    const std::shared_ptr<LinkedProgram> program = programs.find(rule, now, subject_of(rule, now, item), !goes_alone);
    Run run(rule, now, item, wait);
    if (goes_alone || !rule.aggregates || !program->runs_together()) {
      for (const LinkedCall& call : program->calls()) run.call(call);
      continue;
    }
    const auto is_same = [&](const auto& group) {
      return group.first == program && group.second[0].device() == run.device();
    };
    auto group = std::find_if(groups.begin(), groups.end(), is_same);
    if (group == groups.end()) group = groups.insert(groups.end(), {program, {}});
    group->second.push_back(std::move(run));
  }
  for (auto& [program, runs] : groups) update_together(runs, *program);
  for (const std::string& name : rule.variables) {
    const int field = rule.schema.find(name);
    rule.schema.set(&settings, field, rule.schema.get(&now, field), rule.name);
  }
}

}  // namespace hybridnet::optimizer
