#include "plan/control/while_by_node.h"

#include <algorithm>

#include "base/front_end.h"
#include "plan/control/loop_rows.h"
#include "plan/graph_function.h"
#include "plan/place.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"};

// Chunks have 2^level iterations: what is kept for the gradient grows with the number of iterations. With checkpoints
// it hardly does, and chunks of 64, 4,096, 2 million ... iterations cost the fewer runs the earlier the loop ends.
constexpr int kLevels[] = {3, 4, 5, 6, 7, 8, 9, 10}, kLevelsWithCheckpoints[] = {6, 12, 21, 30};
constexpr int64_t kMostChunkBytes = int64_t{64} << 20;  // of kept rows; big ones get shorter chunks
constexpr int kChunkNumber = 8;                         // of functions of one node: bodies come first

// The next level, after chunks of 2^level iterations; the first one for -1.
int level_after(int level, bool checkpoints) {
  const std::span<const int> levels = checkpoints ? std::span<const int>(kLevelsWithCheckpoints) : kLevels;
  const auto next = std::upper_bound(levels.begin(), levels.end(), level);
  return next == levels.end() ? levels.back() : *next;
}

// A chunk counts its iterations from 0, the user those of the whole loop.
[[noreturn]] void fail_in_chunk(const Error& error, const Node& node, int64_t before) {
  ErrorFields fields = error.fields();
  const std::string prefix = node.name + ", iteration ";
  if (fields.node.compare(0, prefix.size(), prefix) == 0) {
    size_t digits = 0;
    const long long iteration = std::stoll(fields.node.substr(prefix.size()), &digits);
    fields.node = prefix + std::to_string(iteration + before) + fields.node.substr(prefix.size() + digits);
  }
  throw Error(error.kind(), std::move(fields));
}

NDArray array_of_count(int64_t count, const Shape& shape) {
  NDArray array = NDArray::empty(shape, DType::kInt64);
  *static_cast<int64_t*>(array.data()) = count;
  return array;
}

}  // namespace

WhileLoopByNode::WhileLoopByNode(NodeByNode& graph, const Node& node, std::span<const NDArray> arguments, bool in_steps)
    : graph_(graph),
      node_(node),
      p_(loop_of(node)),
      arguments_(arguments),
      in_steps_(in_steps || !p_.free_axes.empty()),
      origin_{node.name, node.where},
      pieces_(p_.outs()),
      states_(arguments.begin(), arguments.begin() + p_.num_carry) {}

bool WhileLoopByNode::is_needed(bool wants_gradient) const {
  return in_steps_ || (!p_.max_iterations && p_.num_out > 0) || (wants_gradient && !is_bounded_for_gradient(p_)) ||
         (p_.exact && room_for_all() > kMostChunkBytes);
}

std::vector<TensorSpec> WhileLoopByNode::output_specs() const {
  std::vector<TensorSpec> in, out(static_cast<size_t>(node_.num_outputs()));
  for (const NDArray& argument : arguments_) in.push_back(argument.spec());
  infer_node(node_, in, out, autograd_state().training);
  return out;
}

int64_t WhileLoopByNode::bytes_of_states() const {
  int64_t bytes = 0;
  for (const NDArray& state : states_) bytes += state.bytes();
  return bytes;
}

// Of one row of each stacked output.
int64_t WhileLoopByNode::bytes_of_rows() const {
  int64_t bytes = 0;
  const std::vector<TensorSpec> specs = output_specs();
  for (size_t i = 0; i < pieces_.size(); ++i) {
    TensorSpec row = specs[i];
    if (!row.shape.rank_known() || row.shape.ndim() == 0) continue;
    row.shape[0] = 1;
    if (row.known()) bytes += row.bytes();
  }
  return bytes;
}

// Bytes of the variables and outputs of all iterations that max_iterations allows.
int64_t WhileLoopByNode::room_for_all() const {
  const auto row = static_cast<double>(bytes_of_states() + bytes_of_rows());
  return static_cast<int64_t>(std::min(row * static_cast<double>(p_.max_iterations.value_or(INT64_MAX)), 9e18));
}

std::vector<NDArray> WhileLoopByNode::run() {
  const std::vector<TensorSpec> specs = output_specs();
  limit_ = p_.max_iterations.value_or(INT64_MAX);
  if (p_.counted) {
    arguments_.back().wait_to_read();
    limit_ = std::min(limit_, limit_of_run(origin_, arguments_.back().ref()));
  }
  const int64_t done = in_steps_ ? run_steps() : run_chunks();
  if (p_.on_limit != "stop" && done == limit_ && condition_holds()) report_limit(origin_, p_.on_limit, limit_);

  const int64_t rows = p_.exact ? done : p_.max_iterations.value_or(limit_);
  std::vector<NDArray> outputs;
  for (size_t i = 0; i < pieces_.size(); ++i)
    outputs.push_back(in_steps_ ? stacked_rows(pieces_[i], specs[i], rows, node_)
                                : joined_rows(pieces_[i], specs[i], rows, node_));
  // What no iteration has changed is not handed out itself: who writes to a result must not change an argument.
  for (const NDArray& state : states_)
    outputs.push_back(done > 0 ? state : invoke_one(kCopy.op(), kCopy.op().default_params, {&state, 1}));
  outputs.push_back(array_of_count(done, p_.scalar_slices ? Shape::scalar() : Shape{1}));
  return outputs;
}

// What an iteration gets: the variables as they are now, and what all iterations get.
std::vector<NDArray> WhileLoopByNode::inputs_now() const {
  std::vector<NDArray> inputs(arguments_.begin(), arguments_.begin() + static_cast<std::ptrdiff_t>(p_.slots()));
  std::copy(states_.begin(), states_.end(), inputs.begin());
  return inputs;
}

bool WhileLoopByNode::condition_holds() {
  const NDArray test = graph_.body_of(node_, 0)->call(inputs_now(), {})[0];
  test.wait_to_read();
  return is_true(test.ref());
}

int64_t WhileLoopByNode::run_steps() {
  const std::vector<std::vector<bool>> free = free_sizes(p_);
  int64_t done = 0;
  try {
    for (; done < limit_; ++done) {
      const PlaceScope place(node_, done);
      if (!condition_holds()) break;
      check_interrupt();
      const std::vector<NDArray> results = graph_.body_of(node_, 1)->call(inputs_now(), {});
      for (const NDArray& result : results) result.wait_to_read();  // an error belongs to this iteration
      for (size_t i = 0; i < pieces_.size(); ++i) {
        pieces_[i].push_back(results[i]);
        check_row(node_, i, pieces_[i][0].spec(), results[i].spec());
      }
      for (size_t s = 0; s < states_.size(); ++s) {
        const NDArray& after = results[pieces_.size() + s];
        check_state(node_, s, states_[s].spec(), after.spec(), free[s]);
        states_[s] = after;
      }
    }
  } catch (const Error&) {
    fail_in_body(node_.name + ", iteration " + std::to_string(done));
  }
  return done;
}

// Inputs of a chunk: the slots of the loop, and the number of iterations that it may run.
Ref<GraphFunction> WhileLoopByNode::chunk_function(int level) {
  return graph_.function_of(node_, kChunkNumber + level, [&] {
    LoopSpec chunk = p_;
    chunk.max_iterations = int64_t{1} << level;
    chunk.exact = false;
    chunk.counted = true;
    chunk.on_limit = "stop";
    chunk.num_args = static_cast<int32_t>(p_.slots()) + 1;
    const int num_inputs = chunk.num_args;
    return definition_of_copy(node_, boxed(std::move(chunk)), num_inputs);
  });
}

int64_t WhileLoopByNode::run_chunks() {
  const bool checkpoints = !p_.checkpoint.empty();
  const int64_t row_bytes = 1 + (checkpoints ? bytes_of_rows() : bytes_of_states());
  int64_t done = 0;
  for (int level = level_after(-1, checkpoints); done < limit_; level = level_after(level, checkpoints)) {
    check_interrupt();
    while (level > 0 && (int64_t{1} << level) > kMostChunkBytes / row_bytes) --level;
    const int64_t most = std::min(int64_t{1} << level, limit_ - done);
    std::vector<NDArray> inputs = inputs_now();
    inputs.push_back(array_of_count(most, Shape{1}));
    std::vector<NDArray> results;
    try {
      results = chunk_function(level)->call(inputs, {});
      results.back().wait_to_read();
    } catch (const Error& error) {
      fail_in_chunk(error, node_, done);
    }
    const int64_t count = *static_cast<const int64_t*>(results.back().data());
    if (count == 0) break;
    for (size_t i = 0; i < pieces_.size(); ++i) pieces_[i].push_back(first_rows(results[i], count));
    states_.assign(results.begin() + static_cast<long>(pieces_.size()), results.end() - 1);
    done += count;
    if (count < most) break;
  }
  return done;
}

}  // namespace hybridnet
