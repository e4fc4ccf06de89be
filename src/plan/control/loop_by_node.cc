#include "plan/control/loop_by_node.h"

#include <algorithm>

#include "plan/control/control_kernel.h"
#include "plan/control/loop_rows.h"
#include "plan/place.h"
#include "plan/task.h"

namespace hybridnet {
namespace {

const OpRef kStack{"stack"}, kConcat{"Concat"}, kCopy{"_copy"}, kReshape{"Reshape"};

using Attributes = std::vector<std::pair<std::string, AttrValue>>;

NDArray call(const Op& op, const Attributes& attributes, std::span<const NDArray> inputs) {
  return invoke_one(op, op.schema->parse(attributes, op.name), inputs);
}

NDArray stacked(std::span<const NDArray> rows) {
  return call(kStack.op(), {{"axis", 0}, {"num_args", static_cast<int64_t>(rows.size())}}, rows);
}

// What no iteration has changed is not handed out itself: who writes to a result must not change an argument.
NDArray copied(const NDArray& array) { return invoke_one(kCopy.op(), kCopy.op().default_params, {&array, 1}); }

double number_in(const NDArray& array) {
  array.wait_to_read();
  return read_number(array.ref());
}

// The rows of an array, as one step on the tape: a step per row would add arrays of the whole's size.
class Rows final : public RecordedFunction {
 public:
  Rows(const TensorSpec& row, bool flat) : row_(row), flat_(flat) {}
  std::string name() const override { return "rows"; }
  bool returns_fresh_arrays() const override { return true; }
  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool) override {
    std::vector<NDArray> rows(out_grads.begin(), out_grads.end());
    for (NDArray& row : rows)
      if (!row) row = zeros(row_);
    const NDArray whole = stacked(rows);
    return {flat_ ? call(kReshape.op(), {{"shape", "(-1,)"}}, {&whole, 1}) : whole};
  }

 private:
  const TensorSpec row_;
  const bool flat_;  // the rows of a 1-d array
};

// One array per output and iteration.
class Outputs {
 public:
  explicit Outputs(size_t count) : rows_(count) {}
  void add(std::span<const NDArray> outs, const Node& node) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      rows_[i].push_back(outs[i]);
      check_row(node, i, rows_[i][0].spec(), outs[i].spec());
    }
  }
  void reverse() {
    for (std::vector<NDArray>& rows : rows_) std::reverse(rows.begin(), rows.end());
  }
  // All iterations' along a new axis 0, with zeros behind to the size of spec; zeros alone after no iteration.
  std::vector<NDArray> whole(std::span<const TensorSpec> specs, int64_t size, Device device, const Node& node) const {
    std::vector<NDArray> whole;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const std::vector<NDArray>& rows = rows_[i];
      TensorSpec rest = rows.empty() ? specs[i] : rows[0].spec();
      const auto missing = size - static_cast<int64_t>(rows.size());
      if (rows.empty()) {
        whole.push_back(rows_without_iterations(rest, size, node));
        continue;
      }
      whole.push_back(stacked(rows));
      if (missing == 0) continue;
      rest.shape = whole.back().shape();
      rest.shape[0] = missing;
      const NDArray parts[] = {whole.back(), zeros(rest, device)};
      whole.back() = call(kConcat.op(), {{"dim", 0}, {"num_args", 2}}, parts);
    }
    return whole;
  }

 private:
  std::vector<std::vector<NDArray>> rows_;
};

std::vector<TensorSpec> output_specs(const Node& node, std::span<const NDArray> arguments) {
  std::vector<TensorSpec> in, out(static_cast<size_t>(node.num_outputs()));
  for (const NDArray& argument : arguments) in.push_back(argument.spec());
  infer_node(node, in, out, autograd_state().training);
  return out;
}

Device device_of(std::span<const NDArray> arguments) { return arguments.empty() ? Device{} : arguments[0].device(); }

// While it lives nothing is recorded.
class Unrecorded {
 public:
  explicit Unrecorded(bool active) : before_(autograd_state().recording) {
    if (active) autograd_state().recording = false;
  }
  ~Unrecorded() { autograd_state().recording = before_; }
  Unrecorded(const Unrecorded&) = delete;

 private:
  const bool before_;
};

[[noreturn]] void fail_in_iteration(const Node& node, int64_t iteration) {
  fail_in_body(node.name + ", iteration " + std::to_string(iteration));
}

// ------------------------------------------------------------------------------------------------------------- foreach
std::vector<NDArray> rows_of(const NDArray& array, bool scalar_slices) {
  const Shape row_shape = slice_spec(array.spec(), scalar_slices).shape;
  std::vector<NDArray> rows;
  for (int64_t row = 0; row < array.shape()[0]; ++row) rows.push_back(array.at(row).reshaped(row_shape).detached());
  if (autograd_state().recording && needs_gradient(array) && !rows.empty())
    record(Ref<RecordedFunction>(new Rows({row_shape, array.dtype()}, array.ndim() == 1)), {&array, 1}, rows);
  return rows;
}

class Foreach {
 public:
  Foreach(const Node& node, GraphFunction& body, std::span<const NDArray> arguments)
      : node_(node), p_(loop_of(node)), body_(body), arguments_(arguments) {
    num_data_ = p_.seqs();
    const int64_t size = rows_of(p_, arguments.empty() ? TensorSpec{} : arguments[0].spec());
    size_ = size;
    count_ = p_.counted ? std::clamp<int64_t>(static_cast<int64_t>(number_in(arguments.back())), 0, size) : size;
    for (size_t i = 0; i < num_data_; ++i) data_.push_back(rows_of(arguments[i], p_.scalar_slices));
    for (size_t s = 0; s < p_.carries(); ++s) states_.push_back(arguments[p_.carry(s)]);
  }

  std::vector<NDArray> run() {
    const size_t num_out_data = p_.outs();
    Outputs outputs(num_out_data);
    for (int64_t done = 0; done < count_; ++done) {
      try {
        const std::vector<NDArray> results = step(done);
        for (const NDArray& result : results) result.wait_to_read();  // an error belongs to this iteration
        outputs.add({results.data(), num_out_data}, node_);
        take_states({results.begin() + static_cast<std::ptrdiff_t>(num_out_data), results.end()});
      } catch (const Error&) {
        fail_in_iteration(node_, done);
      }
    }
    if (p_.reverse) outputs.reverse();
    std::vector<TensorSpec> specs;
    if (count_ == 0 && num_out_data > 0) specs = output_specs(node_, arguments_);
    std::vector<NDArray> results = outputs.whole(specs, size_, device_of(arguments_), node_);
    for (const NDArray& state : states_) results.push_back(count_ > 0 ? state : copied(state));
    return results;
  }

 private:
  std::vector<NDArray> step(int64_t done) {
    const int64_t cut = p_.truncate_gradient > 0 ? count_ - p_.truncate_gradient : -1;
    if (done == cut || (p_.detach_every > 0 && done % p_.detach_every == 0)) {
      for (NDArray& state : states_) state = state.detached();
    }
    const Unrecorded unrecorded(done < cut);
    const auto row = static_cast<size_t>(p_.reverse ? count_ - 1 - done : done);
    std::vector<NDArray> inputs;
    for (size_t source = 0; source < p_.slots(); ++source) {
      if (source < num_data_)
        inputs.push_back(data_[source][row]);
      else if (source < num_data_ + states_.size())
        inputs.push_back(states_[source - num_data_]);
      else
        inputs.push_back(arguments_[source]);
    }
    const PlaceScope place(node_, done);
    return body_.call(inputs, {});
  }

  void take_states(std::span<const NDArray> states) {
    for (size_t s = 0; s < states_.size(); ++s) {
      check_state(node_, s, states_[s].spec(), states[s].spec(), {});
      states_[s] = states[s];
    }
  }

  const Node& node_;
  const LoopSpec& p_;
  GraphFunction& body_;
  const std::span<const NDArray> arguments_;
  size_t num_data_ = 0;
  int64_t size_ = 0, count_ = 0;
  std::vector<std::vector<NDArray>> data_;  // rows of each array
  std::vector<NDArray> states_;
};

}  // namespace

NDArray zeros(const TensorSpec& spec, Device device) {
  const NDArray made = NDArray::deferred(spec, device);
  push_zeros(made);
  return made;
}

std::vector<NDArray> foreach_by_node(const Node& node, GraphFunction& body, std::span<const NDArray> arguments) {
  return Foreach(node, body, arguments).run();
}

}  // namespace hybridnet
