#include "plan/control/sized_loops.h"

#include <algorithm>

#include "base/front_end.h"
#include "base/hash.h"
#include "plan/control/appended_carries.h"
#include "plan/graph_callable.h"
#include "plan/graph_position.h"
#include "plan/task.h"

namespace hybridnet {
namespace {

const OpRef kSliceAxis{"slice_axis"}, kStack{"stack"}, kConcat{"Concat"}, kCopy{"_copy"}, kReshape{"Reshape"};

// Chunks have 2^level iterations: the memory kept for the gradient grows with the number of iterations. With
// checkpoints it hardly grows; then few, long chunks of 64, 4,096, 2 million ... iterations cost the fewest runs, and a
// loop that ends early wastes little in its first, short chunks.
constexpr int kLevels[] = {3, 4, 5, 6, 7, 8, 9, 10}, kLevelsWithCheckpoints[] = {6, 12, 21, 30};
constexpr int64_t kMaxChunkBytes = int64_t{64} << 20;  // for kept rows; big rows get shorter chunks
constexpr int kWholeLoop = -1, kAppendingLoop = -2,
              kFirstChunk = 8;  // keys for function_of(); smaller ones from 0 on are the node's bodies

// The next level, after chunks of 2^level iterations; the first one for -1.
int level_after(int level, bool checkpoints) {
  const std::span<const int> levels = checkpoints ? std::span<const int>(kLevelsWithCheckpoints) : kLevels;
  const auto next = std::upper_bound(levels.begin(), levels.end(), level);
  return next == levels.end() ? levels.back() : *next;
}

// Throws the error with the iteration of the whole loop: a chunk counts its iterations from 0.
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

using Attributes = std::vector<std::pair<std::string, AttrValue>>;

NDArray apply(const OpRef& op, std::span<const NDArray> inputs, const Attributes& attributes = {}) {
  return invoke_one(op.op(), op.op().schema->parse(attributes, op.op().name), inputs);
}

NDArray stacked(std::span<const NDArray> rows) {
  return apply(kStack, rows, {{"num_args", static_cast<int64_t>(rows.size())}, {"axis", 0}});
}

NDArray joined(std::span<const NDArray> parts) {
  if (parts.size() == 1) return parts[0];
  return apply(kConcat, parts, {{"num_args", static_cast<int64_t>(parts.size())}, {"dim", 0}});
}

NDArray zeros(const TensorSpec& spec, Device device) {
  const NDArray made = NDArray::deferred(spec, device);
  push_zeros(made);
  return made;
}

NDArray first_rows(const NDArray& array, int64_t count) {
  if (count == array.shape()[0]) return array;
  if (count > 0) return apply(kSliceAxis, {&array, 1}, {{"axis", 0}, {"begin", 0}, {"end", count}});
  TensorSpec spec = array.spec();
  spec.shape[0] = 0;
  return NDArray::empty(spec, array.device());
}

NDArray array_of_count(int64_t count, const Shape& shape, Device device) {
  const NDArray array = NDArray::empty(shape, DType::kInt64, device);
  array.copy_from(&count);
  return array;
}

int64_t count_in(const NDArray& array) {
  array.wait_to_read();
  int64_t count;
  array.copy_to(&count);
  return count;
}

// Returns the name by which users call the loop.
std::string construct(const Node& node) {
  return node.op->name.compare(0, 1, "_") == 0 ? node.op->name.substr(1) : node.op->name;
}

// The rows of an array, as one step on the tape: a step per row would add gradients of the whole size.
class Rows final : public RecordedFunction {
 public:
  Rows(const TensorSpec& row, bool flat) : row_(row), flat_(flat) {}
  std::string name() const override { return "rows"; }
  bool returns_fresh_arrays() const override { return true; }
  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool) override {
    std::vector<NDArray> rows(out_grads.begin(), out_grads.end());
    for (NDArray& row : rows)
      if (!row) row = zeros(row_, {});
    const NDArray whole = stacked(rows);
    return {flat_ ? apply(kReshape, {&whole, 1}, {{"shape", "(-1,)"}}) : whole};
  }

 private:
  const TensorSpec row_;
  const bool flat_;  // the rows of a 1-d array
};

std::vector<NDArray> slices_of(const NDArray& array, bool scalar_slices) {
  const Shape row_shape = slice_spec(array.spec(), scalar_slices).shape;
  std::vector<NDArray> rows;
  for (int64_t row = 0; row < array.shape()[0]; ++row) rows.push_back(array.at(row).reshaped(row_shape).detached());
  if (autograd_state().recording && needs_gradient(array) && !rows.empty())
    record(Ref<RecordedFunction>(new Rows({row_shape, array.dtype()}, array.ndim() == 1)), {&array, 1}, rows);
  return rows;
}

std::string numbered(const char* what, size_t i) { return std::string(what) + "[" + std::to_string(i) + "]"; }

// Pauses recording during its lifetime, if `active`.
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

}  // namespace

SizedLoop::SizedLoop(SegmentedGraph& graph, const Node& node, std::span<const NDArray> arguments, RngKey key)
    : graph_(graph),
      node_(node),
      loop_(loop_of(node)),
      is_while_(control_kind(node) == ControlKind::kWhileLoop),
      arguments_(arguments),
      key_(key),
      origin_{node.name, node.where},
      free_(free_sizes(loop_)),
      pieces_(loop_.outs()) {
  for (size_t i = 0; i < loop_.carries(); ++i) carries_.push_back(arguments[loop_.carry(i)]);
}

SizedLoop::Mode SizedLoop::mode() const {
  const bool wants_gradient =
      autograd_state().recording && std::any_of(arguments_.begin(), arguments_.end(), needs_gradient);
  if (has_dynamic_body(node_) || !loop_.free_axes.empty() || (wants_gradient && has_unbounded_body(node_)))
    return Mode::kSteps;
  const bool in_chunks = is_while_ && ((!loop_.max_iterations && loop_.num_out > 0) ||
                                       (wants_gradient && !is_bounded_for_gradient(loop_)) ||
                                       (loop_.exact && room_for_all() > kMaxChunkBytes));
  return in_chunks ? Mode::kChunks : Mode::kWhole;
}

std::vector<NDArray> SizedLoop::run() {
  if (const Ref<GraphCallable> appending = appending_form()) return appending->call(arguments_, {}, key_);
  const Mode chosen = mode();
  if (chosen == Mode::kWhole) return run_whole();
  in_steps_ = chosen == Mode::kSteps;
  int64_t size = 0;  // rows of the outputs, if not the number of iterations that ran
  if (is_while_) {
    limit_ = loop_.max_iterations.value_or(INT64_MAX);
    if (loop_.counted) {
      arguments_.back().wait_to_read();
      limit_ = std::min(limit_, limit_of_run(origin_, arguments_.back().ref()));
    }
    size = loop_.max_iterations.value_or(limit_);
  } else {
    limit_ = size = rows_of(loop_, arguments_.empty() ? TensorSpec{} : arguments_[0].spec());
    if (loop_.counted) {
      arguments_.back().wait_to_read();
      limit_ = std::clamp<int64_t>(static_cast<int64_t>(read_number(arguments_.back().ref())), 0, size);
    }
    for (size_t i = 0; i < loop_.seqs(); ++i) sequences_.push_back(slices_of(arguments_[i], loop_.scalar_slices));
  }
  std::vector<TensorSpec> specs(loop_.outs());
  if (is_while_ || limit_ == 0) specs = output_specs();
  const int64_t done = in_steps_ ? run_steps() : run_chunks();
  if (is_while_ && loop_.on_limit != "stop" && done == limit_ && condition_holds(done))
    report_limit(origin_, loop_.on_limit, limit_);

  std::vector<NDArray> outputs;
  for (size_t i = 0; i < pieces_.size(); ++i) outputs.push_back(rows(i, specs[i], loop_.exact ? done : size));
  // A carry that no iteration has changed is copied: a write to a result must not change an argument.
  for (const NDArray& carry : carries_) outputs.push_back(done > 0 ? carry : apply(kCopy, {&carry, 1}));
  if (is_while_) outputs.push_back(array_of_count(done, loop_.scalar_slices ? Shape::scalar() : Shape{1}, device()));
  return outputs;
}

Ref<GraphCallable> SizedLoop::appending_form() {
  if (loop_.free_axes.empty() || !has_appended_carries(node_)) return {};
  return graph_.function_of(node_, kAppendingLoop, [&] { return with_appended_rows(node_); });
}

// Runs a linked loop with outputs of as many rows as the limit allows, and cuts them to the rows that ran.
std::vector<NDArray> SizedLoop::run_whole() {
  LoopSpec padded = loop_;
  padded.exact = false;
  std::vector<NDArray> results = function_alone(kWholeLoop, std::move(padded))->call(arguments_, {}, key_);
  if (!loop_.exact) return results;
  const int64_t count = count_in(results.back());
  for (size_t i = 0; i < pieces_.size(); ++i) results[i] = first_rows(results[i], count);
  return results;
}

Ref<GraphCallable> SizedLoop::function_alone(int number, LoopSpec loop) {
  return graph_.function_of(node_, number, [&] {
    GraphDefinition definition;
    std::vector<NodeEntry> read;
    for (int i = 0; i < loop.num_args; ++i) {
      definition.inputs.push_back(make_variable(node_.name + "_input" + std::to_string(i)));
      read.push_back({definition.inputs.back(), 0});
    }
    const NodePtr alone = copy_of(node_, std::move(read));
    alone->params = boxed(std::move(loop));
    for (int i = 0; i < alone->num_outputs(); ++i) definition.outputs.push_back({alone, static_cast<uint32_t>(i)});
    return definition;
  });
}

std::vector<TensorSpec> SizedLoop::output_specs() const {
  std::vector<TensorSpec> in, out(static_cast<size_t>(node_.num_outputs()));
  for (const NDArray& argument : arguments_) in.push_back(argument.spec());
  infer_node(node_, in, out, autograd_state().training);
  return out;
}

// Returns an output of `size` rows: the rows of the pieces, then zeros. Throws ShapeError if no iteration ran and the
// shape of a row is unknown.
NDArray SizedLoop::rows(size_t output, const TensorSpec& spec, int64_t size) const {
  const std::vector<NDArray>& pieces = pieces_[output];
  TensorSpec rest = spec;
  if (pieces.empty()) {
    if (rest.shape.rank_known() && rest.shape.ndim() > 0) rest.shape[0] = size;
    if (rest.known()) return zeros(rest, device());
    throw ShapeError({.op = node_.op->name,
                      .node = node_.name,
                      .message = "the shape of an output is not known without an iteration: " + rest.str(),
                      .fix = "run at least one iteration",
                      .where = node_.where});
  }
  const NDArray whole = in_steps_ ? stacked(pieces) : joined(pieces);
  rest = whole.spec();
  rest.shape[0] = size - whole.shape()[0];
  if (rest.shape[0] <= 0) return whole;
  const NDArray parts[] = {whole, zeros(rest, whole.device())};
  return joined(parts);
}

int64_t SizedLoop::bytes_of_carries() const {
  int64_t bytes = 0;
  for (const NDArray& carry : carries_) bytes += carry.bytes();
  return bytes;
}

// The bytes of one row of each stacked output.
int64_t SizedLoop::bytes_of_rows() const {
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

// Bytes of the carries and outputs of all iterations that max_iterations allows.
int64_t SizedLoop::room_for_all() const {
  const auto row = static_cast<double>(bytes_of_carries() + bytes_of_rows());
  return static_cast<int64_t>(std::min(row * static_cast<double>(loop_.max_iterations.value_or(INT64_MAX)), 9e18));
}

// Returns the inputs of an iteration: the current carries, and the inputs that all iterations share. step() adds the
// rows of sequences.
std::vector<NDArray> SizedLoop::inputs_now() const {
  std::vector<NDArray> inputs(arguments_.begin(), arguments_.begin() + static_cast<std::ptrdiff_t>(loop_.slots()));
  std::copy(carries_.begin(), carries_.end(), inputs.begin() + static_cast<std::ptrdiff_t>(loop_.seqs()));
  return inputs;
}

RngKey key_of_body_run(const RngKey& key, uint64_t number) { return {key.seed, splitmix64(key.stream + number)}; }

bool SizedLoop::condition_holds(int64_t done) {
  const NDArray test =
      graph_.body_of(node_, 0)->call(inputs_now(), {}, key_of_body_run(key_, 2 * static_cast<uint64_t>(done)))[0];
  test.wait_to_read();
  return is_true(test.ref());
}

std::vector<NDArray> SizedLoop::step(int64_t done) {
  const int64_t cut = loop_.truncate_gradient > 0 ? limit_ - loop_.truncate_gradient : -1;
  if ((cut > 0 && done == cut) || (loop_.detach_every > 0 && done % loop_.detach_every == 0)) {
    for (NDArray& carry : carries_) carry = carry.detached();
  }
  const Unrecorded unrecorded(done < cut);
  std::vector<NDArray> inputs = inputs_now();
  const auto row = static_cast<size_t>(loop_.reverse ? limit_ - 1 - done : done);
  for (size_t i = 0; i < sequences_.size(); ++i) inputs[i] = sequences_[i][row];
  const std::vector<NDArray> results =
      graph_.body_of(node_, is_while_ ? 1 : 0)
          ->call(inputs, {}, key_of_body_run(key_, 2 * static_cast<uint64_t>(done) + 1));
  for (const NDArray& result : results) result.wait_to_read();  // an error belongs to this iteration
  return results;
}

void SizedLoop::check(std::optional<BrokenRule> broken) const {
  if (broken) throw_broken(std::move(*broken), construct(node_), {"", node_.where});
}

void SizedLoop::take(std::span<const NDArray> results) {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    pieces_[i].push_back(results[i]);
    check(row_rule(numbered("outputs", i), pieces_[i][0].spec(), results[i].spec()));
  }
  for (size_t i = 0; i < carries_.size(); ++i) {
    const NDArray& after = results[loop_.final_carry(i)];
    check(carry_rule(numbered(is_while_ ? "loop_vars" : "states", i), carries_[i].spec(), after.spec(), free_[i],
                     is_while_));
    carries_[i] = after;
  }
}

int64_t SizedLoop::run_steps() {
  InterruptWatch watch;
  int64_t done = 0;
  try {
    for (; done < limit_; ++done) {
      const GraphPositionScope place(node_, done);
      if (is_while_ && !condition_holds(done)) break;
      check_interrupt();  // on the caller's thread
      check_interrupt(watch);
      take(step(done));
    }
  } catch (const Error&) {
    fail_in_body(node_.name + ", iteration " + std::to_string(done));
  }
  if (loop_.reverse)
    for (std::vector<NDArray>& rows : pieces_) std::reverse(rows.begin(), rows.end());
  return done;
}

int64_t SizedLoop::run_chunks() {
  const bool checkpoints = !loop_.checkpoint.empty();
  const int64_t row_bytes = 1 + (checkpoints ? bytes_of_rows() : bytes_of_carries());
  InterruptWatch watch;
  int64_t done = 0;
  for (int level = level_after(-1, checkpoints); done < limit_; level = level_after(level, checkpoints)) {
    check_interrupt();
    check_interrupt(watch);
    while (level > 0 && (int64_t{1} << level) > kMaxChunkBytes / row_bytes) --level;
    const int64_t most = std::min(int64_t{1} << level, limit_ - done);
    // Inputs of a chunk: the slots of the loop, and the number of iterations that it may run.
    std::vector<NDArray> inputs = inputs_now();
    inputs.push_back(array_of_count(most, Shape{1}, device()));
    LoopSpec chunk = loop_;
    chunk.max_iterations = int64_t{1} << level;
    chunk.exact = false;
    chunk.counted = true;
    chunk.on_limit = "stop";
    chunk.num_args = static_cast<int32_t>(loop_.slots()) + 1;
    std::vector<NDArray> results;
    try {
      results = function_alone(kFirstChunk + level, std::move(chunk))
                    ->call(inputs, {}, key_of_body_run(key_, 2 * static_cast<uint64_t>(done) + 1));
      results.back().wait_to_read();
    } catch (const Error& error) {
      fail_in_chunk(error, node_, done);
    }
    const int64_t count = count_in(results.back());
    if (count == 0) break;
    for (size_t i = 0; i < pieces_.size(); ++i) pieces_[i].push_back(first_rows(results[i], count));
    carries_.assign(results.begin() + static_cast<std::ptrdiff_t>(pieces_.size()), results.end() - 1);
    done += count;
    if (count < most) break;
  }
  return done;
}

}  // namespace hybridnet
