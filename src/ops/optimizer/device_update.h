// Optimizer updates on a device: one launch for as many tensors as the parameters of a kernel have room for. The
// functions here are the device forms of update_loop.h; device::current() must be set.
#pragma once

#include <algorithm>
#include <string>

#include "device/program.h"
#include "hybridnet/op.h"
#include "kernels/device/program_table.h"
#include "kernels/device/update_arguments.h"

namespace hybridnet::ops::on_device {

// The dtypes of one update: of weights, gradients, states, the output, and of the scalars of the rule.
struct UpdateDTypes {
  DType weight, grad, state, out, scalar = DType::kFloat32;
  bool is_double() const { return state == DType::kFloat64; }
  // The CPU's loop for these dtypes is compiled for FMA (update_loop.h).
  bool fma = false;
};

// The text of a kernel for a rule: `source` names its Source in terms of Rule.
inline std::string update_text(const char* header, const char* rule, const std::string& source, int states,
                               int capacity, const UpdateDTypes& d) {
  const std::string compute = d.is_double() ? "double" : "float";
  std::string types;
  for (const DType dtype : {d.weight, d.grad, d.state, d.out}) types += ", " + device::element_name(dtype);
  return device::include_line("update.cuh") + "#include \"kernels/functors/" + header + "\"\n" +
         "using Rule = hybridnet::kernels::" + rule + "<" + compute + ">;\n" +
         "using Arguments = hybridnet::device::UpdateArguments<hybridnet::device::" + source + ", " +
         std::to_string(states) + ", " + std::to_string(capacity) + ">;\n" +
         "HN_KERNEL(update, Arguments) {\n  hybridnet::device::update<Rule" + types + ", " + compute + ", " +
         device::element_name(d.scalar) + ", " + (d.fma ? "true" : "false") + ">(a);\n}\n";
}

// Adds a tensor to the table of a launch.
template <typename Arguments, typename Tensor>
void add_tensor(Arguments& a, const Tensor& tensor, int64_t block_elements) {
  const int64_t blocks = (tensor.size + block_elements - 1) / block_elements;
  a.tensors[a.count] = tensor;
  a.first_block[a.count + 1] = a.first_block[a.count] + static_cast<int32_t>(blocks);
  ++a.count;
}

template <typename Arguments>
void launch_table(const std::string& text, const char* entry, const Arguments& a) {
  const int64_t blocks = a.first_block[a.count];
  if (blocks > 0) device::Program::of(text).launch(entry, device::geometry_for_rows(blocks, 256), a);
}

// Updates `count` tensors: tensor_of(i), by the rule rule_of(i).
template <typename Rule, int kCapacity, typename TensorOf, typename RuleOf>
void run_given(const UpdateDTypes& dtypes, int count, const void* const (&scalars)[2], const TensorOf& tensor_of,
               const RuleOf& rule_of) {
  const std::string text =
      update_text(Rule::kHeader, Rule::kName, "GivenRules<Rule, " + std::to_string(kCapacity) + ">", Rule::kStates,
                  kCapacity, dtypes);
  for (int begin = 0; begin < count; begin += kCapacity) {
    device::UpdateArguments<device::GivenRules<Rule, kCapacity>, Rule::kStates, kCapacity> a{};
    std::copy_n(scalars, 2, a.scalars);
    for (int i = begin; i < std::min(count, begin + kCapacity); ++i) {
      a.source.rules[i - begin] = rule_of(i);
      add_tensor(a, tensor_of(i), device::kUpdateBlock);
    }
    launch_table(text, "update", a);
  }
}

// The same with learning rates and weight decays from arrays.
template <typename Rule, typename TensorOf>
void run_preloaded(const UpdateDTypes& dtypes, int count, device::PreloadedRules rules, const TensorOf& tensor_of) {
  constexpr int kCapacity = device::update_capacity<Rule::kStates>(0);
  const std::string text = update_text(Rule::kHeader, Rule::kName, "PreloadedRules", Rule::kStates, kCapacity, dtypes);
  for (int begin = 0; begin < count; begin += kCapacity) {
    device::UpdateArguments<device::PreloadedRules, Rule::kStates, kCapacity> a{};
    a.source = rules;
    a.source.first = begin;
    for (int i = begin; i < std::min(count, begin + kCapacity); ++i) add_tensor(a, tensor_of(i), device::kUpdateBlock);
    launch_table(text, "update", a);
  }
}

// ---- _update_with_rates: an update whose numbers are elements of an array

struct Rates {
  const double* values = nullptr;          // one for each column
  const float* condition = nullptr;        // null: the update always runs
  std::vector<device::RatedField> fields;  // of the update's parameters, one for each column
};
// Runs an update with its parameters, tensors and rates.
using RatedUpdateFn = void (*)(const void* params, const Rates& rates, const KernelArgs& a);
void add_rated_update(const std::string& op, RatedUpdateFn run);
RatedUpdateFn rated_update(const std::string& op);  // null if the operator has no such form

template <typename Rule, typename P>
void run_rated(const P& params, const Rates& rates, const UpdateDTypes& dtypes, const void* const (&scalars)[2],
               const device::UpdateTensors<Rule::kStates>& tensor) {
  device::UpdateArguments<device::RatedRule<P>, Rule::kStates, 1> a{};
  a.condition = rates.condition;
  std::copy_n(scalars, 2, a.scalars);
  a.source.params = params;
  a.source.rates = rates.values;
  a.source.columns = static_cast<int64_t>(rates.fields.size());
  std::copy(rates.fields.begin(), rates.fields.end(), a.source.fields);
  add_tensor(a, tensor, device::kUpdateBlock);
  launch_table(update_text(Rule::kHeader, Rule::kName, std::string("RatedRule<hybridnet::kernels::") + P::kName + ">",
                           Rule::kStates, 1, dtypes),
               "update", a);
}

}  // namespace hybridnet::ops::on_device
