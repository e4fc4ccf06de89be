// Makes a Plan from a rewritten graph: places every value, orders the nodes and links their kernels.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

#include "base/hash.h"
#include "hybridnet/engine.h"
#include "hybridnet/ndarray.h"
#include "hybridnet/pass.h"
#include "hybridnet/threads.h"
#include "passes/preparation.h"
#include "passes/rounding.h"
#include "plan/control/control_kernel.h"
#include "plan/placed_constant.h"
#include "plan/plan.h"
#include "plan/shared_kernels.h"

namespace hybridnet {
namespace {

using Kind = PlanStorage::Kind;

}  // namespace

// Links a graph, or lays out `known`, its instructions that were linked for other sizes.
class PlanBuilder {
 public:
  PlanBuilder(const Graph& graph, const Plan::Options& options, const Ref<Plan::Linked>& known)
      : graph_(graph),
        known_(known.get()),
        kernels_(graph, options.kernels),
        plan_(make_ref<Plan>()),
        num_visible_(graph.outputs().size() - options.num_residuals) {
    plan_->options_ = options;
    plan_->linked_ = known ? known : make_ref<Plan::Linked>();
    if (!options.arenas) plan_->options_.arenas = make_ref<ArenaPool>();
    plan_->train_ = graph.train();
    for (Node* node : graph.schedule()) {
      if (!node->is_variable() && !is_free_view(*node)) steps_.push_back(node);
    }
    for (size_t i = 0; i < steps_.size(); ++i) step_of_[steps_[i]] = static_cast<int>(i);
    for (const Graph::Writeback& writeback : graph.writebacks()) delay_writer(writeback.value, writeback.input);
    for (size_t i = 0; i < options.replaced.size(); ++i)
      if (options.replaced[i] >= 0) delay_writer(graph.outputs()[i], options.replaced[i]);
    for (size_t i = 0; i < options.donated.size(); ++i)
      if (options.donated[i] != 0) delay_writer_over_donated(static_cast<int>(i));
  }

  // Outputs that are written over a donated input are made after the last reader of that input.
  void delay_writer_over_donated(int input) {
    const NodeEntry variable{graph_.inputs()[static_cast<size_t>(input)], 0};
    for (const NodeEntry& output : graph_.outputs())
      if (const NodeEntry made = root(output); !made.node->is_variable() && replaces(made, variable))
        delay_writer(output, input);
  }

  // Moves the node that makes the new value of an input behind the last reader of the old value, so that it can write
  // there, unless its results are read before.
  void delay_writer(const NodeEntry& value, int input) {
    const NodeEntry variable{graph_.inputs()[static_cast<size_t>(input)], 0};
    const NodeEntry made = root(value);
    if (made.node->is_variable()) return;
    const int at = step_of_.at(made.node.get());
    int last = at, first_use = static_cast<int>(steps_.size());
    bool is_reader = false;
    for (const int step : steps_reading(variable)) {
      last = std::max(last, step);
      is_reader = is_reader || step == at;
    }
    for (uint32_t i = 0; i < made.node->specs.size(); ++i)
      for (const int step : steps_reading({made.node, i})) first_use = std::min(first_use, step);
    if (last == at || first_use <= last || (is_reader && !replaces(made, variable))) return;
    const auto begin = steps_.begin();
    std::rotate(begin + at, begin + at + 1, begin + last + 1);
    for (int step = at; step <= last; ++step) step_of_[steps_[static_cast<size_t>(step)]] = step;
  }

  // Numbers of the instructions that read an entry, also through views.
  std::vector<int> steps_reading(const NodeEntry& entry) const {
    std::vector<int> steps;
    for (const Client& reader : graph_.clients(entry)) {
      if (reader.kind != Client::Kind::kNode) continue;
      if (!is_free_view(*reader.node)) {
        steps.push_back(step_of_.at(reader.node));
        continue;
      }
      for (const int step : steps_reading({NodePtr(reader.node), 0})) steps.push_back(step);
    }
    return steps;
  }

  // Returns null if the graph has other instructions than `known`.
  Ref<Plan> run() {
    find_roots();
    if (is_other()) return nullptr;
    find_last_readers();
    place_replacements();
    place_outputs();
    keep_inputs_for_writebacks();
    place_writebacks();
    share_in_place();
    place_in_donated();
    emit_nodes();
    emit_copies();
    if (known_ && plan_->instructions_.size() != known_->steps.size()) return nullptr;
    place_memory();
    finish();
    return plan_;
  }

 private:
  // A view that needs no instruction: same bytes, read in place.
  bool is_free_view(const Node& node) const {
    return node.op->is_view && node.specs.size() == 1 && graph_.format(node.inputs[0]) == Format::kPlain;
  }

  // Returns the entry whose bytes an entry shows, through views.
  NodeEntry root(NodeEntry entry) const {
    while (!entry.node->is_variable() && is_free_view(*entry.node)) entry = entry.node->inputs[0];
    return entry;
  }

  PlanStorage& storage_of(const NodeEntry& entry) { return *storage_by_root_.at(root(entry)); }

  // True if the kernel does not write this output, because it is not used.
  bool is_left_out(const Node& node, uint32_t output) const {
    return output > 0 && node.op->skips_unwanted_outputs && !graph_.is_used(node, static_cast<int>(output));
  }
  PlanStorage* make_storage(Kind kind, int index, int64_t bytes) {
    storages_.push_back({kind, index, bytes, 0, 0, -1});
    return &storages_.back();
  }

  // True if the instructions of `known` are those of another graph. For one graph they are the same for all sizes.
  bool is_other() const {
    if (!known_) return false;
    const std::vector<Plan::Linked::Step>& steps = known_->steps;
    return steps.size() < steps_.size() || constants_ != known_->constants ||
           !std::equal(steps_.begin(), steps_.end(), steps.begin(),
                       [](const Node* node, const Plan::Linked::Step& step) {
                         return node->op == step.op && node->inputs.size() + node->specs.size() == step.specs.size();
                       });
  }

  void find_roots() {
    const auto& inputs = graph_.inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      storage_by_root_[{inputs[i], 0}] = make_storage(Kind::kInput, static_cast<int>(i), inputs[i]->specs[0].bytes());
    }
    for (Node* node : graph_.order()) {
      if (!node->is_variable() || graph_.input_index(node) >= 0) continue;
      if (!node->constant) {
        throw Error(ErrorKind::kError,
                    {.node = node->name, .message = "a variable of the graph is not among its inputs"});
      }
      const int index = static_cast<int>(constants_.size());
      constants_.push_back(placed_constant(node->constant, plan_->options_.device));
      storage_by_root_[{NodePtr(node), 0}] = make_storage(Kind::kConstant, index, node->specs[0].bytes());
    }
    for (size_t step = 0; step < steps_.size(); ++step) {
      Node* node = steps_[step];
      for (uint32_t i = 0; i < node->specs.size(); ++i) {
        PlanStorage* storage = make_storage(Kind::kTemporary, 0, is_left_out(*node, i) ? 0 : node->specs[i].bytes());
        storage->first = storage->last = static_cast<int>(step);
        storage_by_root_[{NodePtr(node), i}] = storage;
      }
      share_between_branches(*node);
    }
  }

  void share_between_branches(const Node& node) {
    const NodePtr self(const_cast<Node*>(&node));
    if (control_kind(node) == ControlKind::kCond) {
      for (uint32_t i = 0; i < node.specs.size(); ++i) {
        PlanStorage& storage = *storage_by_root_.at({self, i});
        storage.side = branch_side(node, static_cast<int>(i));
        if (storage.side != BranchSide::kBoth) storage.cond = &node;
      }
    }
    for (const auto& [i, j] : exclusive_rows(node)) {
      const NodeEntry one{self, static_cast<uint32_t>(i)}, other{self, static_cast<uint32_t>(j)};
      if (is_visible(one) || is_visible(other)) continue;
      PlanStorage*& gone = storage_by_root_.at(other);
      gone->bytes = 0;
      gone = storage_by_root_.at(one);
      for (const NodeEntry& member : {one, other}) shared_[gone].push_back(member);
    }
  }

  bool is_visible(const NodeEntry& entry) const {
    const auto first = graph_.outputs().begin();
    return std::any_of(first, first + static_cast<long>(num_visible_),
                       [&](const NodeEntry& output) { return root(output) == entry; });
  }

  void find_last_readers() {
    for (size_t step = 0; step < steps_.size(); ++step) {
      for (const NodeEntry& input : steps_[step]->inputs) {
        PlanStorage& storage = storage_of(input);
        storage.last = std::max(storage.last, static_cast<int>(step));
      }
    }
  }

  // ---------------------------------------------------------------------------------------- outputs and write-backs
  void place_outputs() {
    const auto& outputs = graph_.outputs();
    const std::vector<int>& first_of = plan_->options_.first_of;
    std::map<std::pair<const PlanStorage*, int>, int> fresh_of;
    for (size_t i = 0; i < num_visible_; ++i) {
      const TensorSpec& spec = graph_.spec(outputs[i]);
      if (i < plan_->options_.passed.size() && plan_->options_.passed[i] >= 0) {
        plan_->outputs_.push_back({spec, -1, plan_->options_.passed[i]});
        continue;
      }
      PlanStorage& storage = storage_of(outputs[i]);
      if (is_replacement(i, storage)) {
        plan_->outputs_.push_back({spec, -1, storage.index, true});
        continue;
      }
      const auto [it, is_new] =
          fresh_of.try_emplace({&storage, first_of.empty() ? 0 : first_of[i]}, static_cast<int>(plan_->fresh_.size()));
      int input = -1;
      if (is_new) {
        plan_->fresh_.push_back(spec);
        if (storage.kind == Kind::kTemporary) {
          storage.kind = Kind::kOutput;
          storage.index = it->second;
        } else {
          add_copy(outputs[i], make_storage(Kind::kOutput, it->second, storage.bytes));
          if (storage.kind == Kind::kInput && graph_.writebacks().empty()) input = storage.index;
        }
      }
      plan_->outputs_.push_back({spec, it->second, input});
    }
    std::vector<PlanStorage*> residuals;
    for (size_t i = num_visible_; i < outputs.size(); ++i) residuals.push_back(residual_storage(outputs[i]));
    place_residuals(residuals);
  }

  PlanStorage* residual_storage(const NodeEntry& entry) {
    PlanStorage* storage = &storage_of(entry);
    if (storage->kind == Kind::kInput || storage->kind == Kind::kConstant) {
      PlanStorage* copy = make_storage(Kind::kResidual, 0, storage->bytes);
      add_copy(entry, copy);
      storage = copy;
    } else if (storage->kind == Kind::kTemporary) {
      storage->kind = Kind::kResidual;
    }
    return storage;
  }

  // Places residuals one after the other, except that those of the two branches of a cond overlap.
  void place_residuals(const std::vector<PlanStorage*>& residuals) {
    std::vector<PlanStorage*> of_branches;
    for (PlanStorage* storage : residuals) {
      if (storage->kind != Kind::kResidual || storage->offset >= 0) continue;
      if (storage->cond) {
        storage->offset = 0;  // counted once
        of_branches.push_back(storage);
        continue;
      }
      storage->offset = plan_->residual_bytes_;
      plan_->residual_bytes_ += (storage->bytes + 63) / 64 * 64;
    }
    for (PlanStorage* storage : of_branches) storage->first = storage->last = 0;
    const int64_t bytes = place_in_arena(of_branches);
    for (PlanStorage* storage : of_branches) storage->offset += plan_->residual_bytes_;
    plan_->residual_bytes_ += bytes;
    for (const PlanStorage* storage : residuals) {
      const bool in_output = storage->kind == Kind::kOutput;
      plan_->residuals_.push_back({in_output, storage->index, in_output ? 0 : storage->offset});
    }
  }

  // Copies run after all nodes, in the order in which they are added here.
  void add_copy(const NodeEntry& entry, PlanStorage* target) { add_copy(entry, &storage_of(entry), target); }
  void add_copy(const NodeEntry& entry, PlanStorage* source, PlanStorage* target) {
    source->last = std::max(source->last, static_cast<int>(steps_.size()));
    copies_.push_back({entry, source, target});
  }

  // An input whose old value becomes the new value of another input is read after all nodes have run. (Outputs and
  // residuals that show an input are copies, too: add_copy() has noted it.)
  void keep_inputs_for_writebacks() {
    for (const Graph::Writeback& writeback : graph_.writebacks())
      if (const int old = shown_input(writeback.value); old >= 0 && old != writeback.input)
        storage_of(writeback.value).last = static_cast<int>(steps_.size());
  }

  // The input that an entry shows, perhaps through views; -1: none.
  int shown_input(const NodeEntry& entry) const { return graph_.input_index(root(entry).node.get()); }

  // Places a new state directly in the input's memory if no later node reads the old one. All others are copied there
  // at the end, when every node has read the old values of the inputs.
  void place_writebacks() {
    std::vector<std::pair<const Graph::Writeback*, PlanStorage*>> shown;  // old values of inputs, set aside
    for (const Graph::Writeback& writeback : graph_.writebacks()) {
      if (const int old = shown_input(writeback.value); old >= 0 && old != writeback.input && is_written(old)) {
        PlanStorage* aside = make_storage(Kind::kTemporary, 0, storage_of(writeback.value).bytes);
        aside->first = static_cast<int>(steps_.size());
        add_copy(writeback.value, aside);
        shown.emplace_back(&writeback, aside);
      }
    }
    for (const Graph::Writeback& writeback : graph_.writebacks()) {
      const auto aside =
          std::find_if(shown.begin(), shown.end(), [&](const auto& other) { return other.first == &writeback; });
      place_writeback(writeback, aside == shown.end() ? nullptr : aside->second);
    }
  }

  bool is_written(int input) const {
    return std::any_of(graph_.writebacks().begin(), graph_.writebacks().end(),
                       [input](const Graph::Writeback& writeback) { return writeback.input == input; });
  }

  void place_writeback(const Graph::Writeback& writeback, PlanStorage* aside) {
    std::vector<int>& written = plan_->written_inputs_;
    if (std::find(written.begin(), written.end(), writeback.input) == written.end()) written.push_back(writeback.input);
    const NodeEntry variable{graph_.inputs()[static_cast<size_t>(writeback.input)], 0};
    PlanStorage& value = storage_of(writeback.value);
    if (value.kind == Kind::kTemporary && writes_over(writeback.value, variable)) {
      place_over(writeback.value, variable);
    } else if (!(value.kind == Kind::kInput && value.index == writeback.input)) {
      add_copy(writeback.value, aside ? aside : &value, make_storage(Kind::kInput, writeback.input, value.bytes));
    }
  }

  // Outputs that take the place of inputs (Options::replaced) where nothing reads the old value afterwards: no node, no
  // other output, and no output that shows the same array.
  void place_replacements() {
    const std::vector<int>& replaced = plan_->options_.replaced;
    const auto& outputs = graph_.outputs();
    if (!graph_.writebacks().empty()) return;
    for (size_t i = 0; i < replaced.size(); ++i) {
      if (replaced[i] < 0) continue;
      const NodeEntry variable{graph_.inputs()[static_cast<size_t>(replaced[i])], 0}, made = root(outputs[i]);
      const auto reads_either = [&](const NodeEntry& output) {
        const NodeEntry shown = root(output);
        return shown == variable || shown == made;
      };
      if (std::count_if(outputs.begin(), outputs.end(), reads_either) == 1 &&
          graph_.spec(outputs[i]) == graph_.spec(variable) && storage_of(outputs[i]).kind == Kind::kTemporary &&
          writes_over(outputs[i], variable))
        place_over(outputs[i], variable);
    }
  }

  bool is_replacement(size_t output, const PlanStorage& storage) const {
    const std::vector<int>& replaced = plan_->options_.replaced;
    return output < replaced.size() && replaced[output] >= 0 && storage.kind == Kind::kInput &&
           storage.index == replaced[output] && shown_input(graph_.outputs()[output]) < 0;
  }

  // True for the memory of an input that this plan alone writes.
  bool is_replaced_input(const PlanStorage& storage) const {
    const std::vector<int>& replaced = plan_->options_.replaced;
    return storage.kind == Kind::kInput && std::find(replaced.begin(), replaced.end(), storage.index) != replaced.end();
  }

  // True if the node that makes the new value may write it over the old one.
  bool writes_over(const NodeEntry& value, const NodeEntry& variable) const {
    const NodeEntry made = root(value);
    return !made.node->is_variable() && graph_.format(made) == Format::kPlain && writes_in_place() &&
           may_begin_at(made, variable);
  }

  // True if no instruction after the one that makes this value reads the variable.
  bool may_begin_at(const NodeEntry& made, const NodeEntry& variable) const {
    const int step = step_of_.at(made.node.get()), last = storage_by_root_.at(variable)->last;
    if (last > step || (plan_->options_.atomic && may_fail_since(step))) return false;
    return last < step || replaces(made, variable);
  }

  // Places the new value of an input in the input's memory, and with it the values that it is made of in place, so that
  // several writes to one array copy nothing.
  void place_over(const NodeEntry& value, const NodeEntry& variable) {
    std::vector<NodeEntry> chain{root(value)};
    while (const std::optional<NodeEntry> source = value_written_over(chain.back())) chain.push_back(*source);
    while (!may_begin_at(chain.back(), variable)) chain.pop_back();
    const PlanStorage& input = *storage_by_root_.at(variable);
    PlanStorage& placed = storage_of(value);
    placed.kind = Kind::kInput;
    placed.index = input.index;
    for (size_t i = 1; i < chain.size(); ++i) {
      PlanStorage*& gone = storage_by_root_.at(chain[i]);
      gone->bytes = 0;
      gone = &placed;
      shared_[&placed].push_back(chain[i]);
    }
  }

  // Returns the value over which a node may write this output of it, and which nothing else reads afterwards.
  std::optional<NodeEntry> value_written_over(const NodeEntry& made) const {
    const int step = step_of_.at(made.node.get());
    for (const Op::InplacePair& pair : inplace_pairs(*made.node)) {
      if (pair.output != static_cast<int>(made.index)) continue;
      const NodeEntry source = root(made.node->inputs[static_cast<size_t>(pair.input)]);
      if (source.node->is_variable() || graph_.format(source) != Format::kPlain) return std::nullopt;
      const PlanStorage& storage = *storage_by_root_.at(source);
      const bool is_free = storage.kind == Kind::kTemporary && storage.last == step && storage.cond == nullptr &&
                           storage.bytes == storage_by_root_.at(made)->bytes && shared_.count(&storage) == 0;
      const auto shows_it = [&](const NodeEntry& read) { return root(read) == source; };
      if (!is_free || std::count_if(made.node->inputs.begin(), made.node->inputs.end(), shows_it) != 1)
        return std::nullopt;
      const auto& outputs = graph_.outputs();
      if (std::any_of(outputs.begin(), outputs.end(), shows_it)) return std::nullopt;
      return source;
    }
    return std::nullopt;
  }

  // True if the node that makes a value reads the variable once, and declares that the value may take its place.
  bool replaces(const NodeEntry& made, const NodeEntry& variable) const {
    const Node& node = *made.node;
    const auto shows_it = [&](const NodeEntry& read) { return root(read) == variable; };
    if (std::count_if(node.inputs.begin(), node.inputs.end(), shows_it) != 1) return false;
    const auto output = static_cast<int>(made.index);
    const auto reads_it_at = [&](int at) {
      return at >= 0 && at < static_cast<int>(node.inputs.size()) && node.inputs[static_cast<size_t>(at)] == variable;
    };
    if (reads_it_at(node.op->writeback_input(node.params->data(), output))) return true;
    const std::vector<Op::InplacePair> pairs = inplace_pairs(node);
    return std::any_of(pairs.begin(), pairs.end(),
                       [&](const Op::InplacePair& pair) { return pair.output == output && reads_it_at(pair.input); });
  }

  // True if this instruction or a later one can fail. Then nothing is overwritten before the end.
  bool may_fail_since(int step) const {
    if (last_risky_ == kUnknownStep) {
      last_risky_ = -1;
      for (size_t i = 0; i < steps_.size(); ++i)
        if (may_fail(*steps_[i])) last_risky_ = static_cast<int>(i);
    }
    return last_risky_ >= step;
  }

  static bool may_fail(const Node& node) { return !node.op->total || is_opaque(node) || !node.subgraphs.empty(); }

  // -------------------------------------------------------------------------------------------------------- in place
  // "-inplace" switches it off: no instruction writes over the result of another one.
  static bool writes_in_place() {
    const std::vector<std::string>& excluded = PipelineScope::current().query.exclude;
    return std::find(excluded.begin(), excluded.end(), "inplace") == excluded.end();
  }

  void share_in_place() {
    if (!writes_in_place()) return;
    // Last step first, so that a chain ends in the memory of an output when it can.
    for (int step = static_cast<int>(steps_.size()) - 1; step >= 0; --step) {
      const Node& node = *steps_[static_cast<size_t>(step)];
      std::vector<bool> gives(node.inputs.size()), takes(node.specs.size());
      for (const Op::InplacePair& pair : inplace_pairs(node)) {
        const auto input = static_cast<size_t>(pair.input), output = static_cast<size_t>(pair.output);
        if (input >= gives.size() || output >= takes.size() || gives[input] || takes[output]) continue;
        gives[input] = takes[output] = share(node, step, pair);
      }
    }
  }

  bool share(const Node& node, int step, const Op::InplacePair& pair) {
    const NodeEntry input = root(node.inputs[static_cast<size_t>(pair.input)]);
    const NodeEntry output{NodePtr(const_cast<Node*>(&node)), static_cast<uint32_t>(pair.output)};
    PlanStorage*& in = storage_by_root_.at(input);
    PlanStorage* out = storage_by_root_.at(output);
    if (in == out || in->kind != Kind::kTemporary || in->last != step || in->bytes != out->bytes) return false;
    if (out->kind == Kind::kInput) return false;
    if (is_left_out(node, static_cast<uint32_t>(pair.output))) return false;
    if (graph_.format(node.inputs[static_cast<size_t>(pair.input)]) != graph_.format(output)) return false;
    // The memory is written while the node's other inputs are still read.
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (static_cast<int>(i) != pair.input && &storage_of(node.inputs[i]) == in) return false;
    }
    out->first = std::min(out->first, in->first);
    PlanStorage* gone = in;
    for (const NodeEntry& member : members(gone, input)) storage_by_root_[member] = out;
    shared_[out].push_back(input);
    for (const NodeEntry& member : shared_[gone]) shared_[out].push_back(member);
    gone->bytes = 0;
    return true;
  }

  std::vector<NodeEntry> members(PlanStorage* storage, const NodeEntry& root_entry) {
    std::vector<NodeEntry> all{root_entry};
    const auto it = shared_.find(storage);
    if (it != shared_.end()) all.insert(all.end(), it->second.begin(), it->second.end());
    return all;
  }

  // Places outputs in donated inputs that have been read when the outputs are written.
  void place_in_donated() {
    if (!writes_in_place()) return;
    const std::vector<uint8_t>& donated = plan_->options_.donated;
    for (size_t i = 0; i < donated.size(); ++i) {
      if (donated[i] == 0 || is_written(static_cast<int>(i))) continue;
      const NodeEntry variable{graph_.inputs()[i], 0};
      const PlanStorage& in = *storage_by_root_.at(variable);
      for (const PlanStorage& out : storages_) {
        if (out.kind != Kind::kOutput || out.bytes != in.bytes || out.bytes == 0 || !may_follow(variable, in, out))
          continue;
        const auto is_its = [&](const Plan::Donation& other) { return other.fresh == out.index; };
        if (std::any_of(plan_->donations_.begin(), plan_->donations_.end(), is_its)) continue;
        plan_->donations_.push_back({out.index, static_cast<int>(i)});
        break;
      }
    }
  }

  bool may_follow(const NodeEntry& variable, const PlanStorage& in, const PlanStorage& out) const {
    const bool is_made = out.first <= out.last && out.first < static_cast<int>(steps_.size());  // not copied at the end
    if (!is_made || in.last > out.first) return false;
    if (in.last < out.first) return true;
    const Node& node = *steps_[static_cast<size_t>(out.first)];
    // A branch that writes over its input is linked for that, but a call may keep the donated array.
    if (control_kind(node) == ControlKind::kCond) return false;
    size_t uses = 0;
    for (const NodeEntry& input : node.inputs) uses += root(input) == variable ? 1 : 0;
    const std::vector<Op::InplacePair> pairs = inplace_pairs(node);
    return uses == 1 && std::any_of(pairs.begin(), pairs.end(), [&](const Op::InplacePair& pair) {
             const NodeEntry made{NodePtr(const_cast<Node*>(&node)), static_cast<uint32_t>(pair.output)};
             return pair.input < static_cast<int>(node.inputs.size()) &&
                    pair.output < static_cast<int>(node.specs.size()) &&
                    root(node.inputs[static_cast<size_t>(pair.input)]) == variable &&
                    storage_by_root_.at(made) == &out && graph_.format(made) == Format::kPlain;
           });
  }

  // ------------------------------------------------------------------------------------------------------- emission
  void add_arg(PlanStorage* storage, const TensorSpec& spec, Format format) {
    Plan& plan = *plan_;
    storage_of_arg_.push_back(storage);
    plan.specs_.push_back(spec);
    TensorRef ref;
    ref.shape = &plan.specs_.back().shape;
    ref.dtype = spec.dtype;
    ref.format = format;
    const int arg = static_cast<int>(plan.args_.size());
    if (storage) {
      switch (storage->kind) {
        case Kind::kTemporary:
          temporaries_.push_back({arg, storage});
          break;
        case Kind::kInput:
          plan.input_patches_.push_back({arg, storage->index, 0});
          plan.given_args_.push_back(arg);
          break;
        case Kind::kOutput:
          plan.output_patches_.push_back({arg, storage->index, 0});
          break;
        case Kind::kResidual:
          plan.residual_patches_.push_back({arg, 0, storage->offset});
          break;
        case Kind::kConstant: {
          plan.given_args_.push_back(arg);
          const auto* array = static_cast<const ArrayImpl*>(constants_[static_cast<size_t>(storage->index)].get());
          array->chunk->owner().pin_for_good();  // runs do not order themselves among its users
          ref.data = static_cast<char*>(array->chunk->memory()) + array->offset;
          plan.constant_patches_.push_back({arg, array->chunk.get()});
          break;
        }
      }
    }
    plan.args_.push_back(ref);
  }

  // The estimated time of work that several cores can share.
  double shared_ns() const {
    double shared_ns = 0;
    for (const Node* node : steps_) {
      // The cost is known only when the bodies are linked; they may run many times.
      if (!node->subgraphs.empty()) return std::numeric_limits<double>::infinity();
      std::vector<TensorSpec> in;
      for (const NodeEntry& input : node->inputs) in.push_back(graph_.spec(input));
      const auto cost = static_cast<double>(node->op->cost_ns(node->params->data(), in, node->specs));
      if (cost >= 2 * kNsWorthACore) shared_ns += cost;
    }
    return shared_ns;
  }

  // Shared work saves time only if it is worth the wake-up of the team, which sleeps between calls: 20 to 30 us
  // measured. Two cores save half of the work, and guesses are up to twice too high.
  void emit_nodes() {
    constexpr double kWorthWaking = 100e3;
    std::optional<CoreScope> alone;                       // kernels are linked for the cores that they will run on
    if (plan_->options_.wakes_team && !graph_.train()) {  // training steps follow each other closely
      const double shared = shared_ns();
      if (shared < kWorthWaking) alone.emplace(1);
      plan_->gains_from_awake_team_ = alone && shared > 0;
    }
    for (size_t step = 0; step < steps_.size(); ++step) emit(*steps_[step], static_cast<int>(step));
    if (alone) plan_->cores_ = 1;
  }

  void emit(const Node& node, int step) {
    Plan& plan = *plan_;
    Plan::Instruction instruction;
    instruction.params = node.params->data();
    instruction.first_arg = static_cast<int>(plan.args_.size());
    instruction.num_in = static_cast<int>(node.inputs.size());
    instruction.num_out = static_cast<int>(node.specs.size());
    instruction.random = is_random(node);
    instruction.stream = instruction.random ? stream_of(node, step) : 0;
    plan.uses_random_ = plan.uses_random_ || instruction.random;

    std::vector<TensorSpec> in;
    std::vector<Format> in_format, out_format;
    for (const NodeEntry& input : node.inputs) {
      in.push_back(graph_.spec(input));
      in_format.push_back(graph_.format(input));
      add_arg(&storage_of(input), in.back(), in_format.back());
    }
    for (uint32_t i = 0; i < node.specs.size(); ++i) {
      const NodeEntry output{NodePtr(const_cast<Node*>(&node)), i};
      out_format.push_back(graph_.format(output));
      add_arg(is_left_out(node, i) ? nullptr : &storage_of(output), node.specs[i], out_format.back());
      if (storage_of(output).kind == Kind::kInput)
        plan.first_write_ = std::min(plan.first_write_, plan.instructions_.size());
    }
    check_formats(node, in_format);
    LinkContext context;
    context.params = instruction.params;
    context.in = in;
    context.out = node.specs;
    context.in_format = in_format;
    context.out_format = out_format;
    context.device = plan.options_.device;
    context.train = graph_.train();
    context.frozen_weights = has_frozen_weights(node);
    context.may_round_more = may_round_more(node);
    LinkedNode linked;
    try {
      linked = link(node, context, step);
    } catch (Error& error) {
      error.add_context({.op = node.op->name, .node = node.name, .block = node.block, .where = node.where});
      throw;
    }
    instruction.kernel = linked.kernel.get();
    instruction.opaque = linked.opaque;
    plan.is_opaque_ = plan.is_opaque_ || linked.opaque;
    plan.waits_for_device_ = plan.waits_for_device_ || linked.kernel->waits_for_device();
    plan.needs_host_ = plan.needs_host_ || linked.opaque || needs_host(node, *linked.kernel);
    plan.has_control_ = plan.has_control_ || !node.subgraphs.empty();
    if (const int64_t bytes = linked.kernel->workspace_bytes(); bytes > 0) {
      PlanStorage* workspace = make_storage(Kind::kTemporary, 0, bytes);
      workspace->first = workspace->last = step;
      workspaces_.push_back({static_cast<int>(plan.instructions_.size()), workspace});
    }
    plan.cost_ns_ += linked.cost_ns;
    plan.cores_ = std::max(plan.cores_, linked.cores);
    add_instruction(instruction, node.params);
    if (known_) {
      if (linked.kernel.get() != known_step(step)->kernel.get()) plan.own_kernels_.push_back(std::move(linked.kernel));
      return;
    }
    std::vector<TensorSpec> specs = std::move(in);
    specs.insert(specs.end(), node.specs.begin(), node.specs.end());
    plan.linked_->steps.push_back(
        {node.op, std::move(linked.kernel), node.params, std::move(specs), node.name, node.block, node.where});
  }

  // Packing pays for weights that stay from run to run: not for those that this plan writes.
  bool has_frozen_weights(const Node& node) const {
    if (!plan_->options_.frozen_weights) return false;
    if (graph_.writebacks().empty() || !node.subgraphs.empty()) return true;
    return std::none_of(node.inputs.begin(), node.inputs.end(), [&](const NodeEntry& input) {
      return &input != &node.inputs.front() && shows_written_input(input);
    });
  }

  // True for an input that the plan writes, for a new value that is placed in the memory of one, and for a conversion
  // of either.
  bool shows_written_input(NodeEntry entry) const {
    while (true) {
      const PlanStorage& storage = *storage_by_root_.at(root(entry));
      if (storage.kind == Kind::kInput) return is_written(storage.index);
      if (entry.node->inputs.size() != 1) return false;
      entry = entry.node->inputs.front();
    }
  }

  static bool needs_host(const Node& node, const Kernel& kernel) {
    if (node.subgraphs.empty()) return kernel.waits_for_device();
    return static_cast<const ControlKernel&>(kernel).needs_host();
  }

  struct LinkedNode {
    Ref<Kernel> kernel;
    int64_t cost_ns = 0;
    int cores = 1;
    bool opaque = false;
  };

  const Plan::Linked::Step* known_step(int step) const {
    return known_ ? &known_->steps[static_cast<size_t>(step)] : nullptr;
  }

  LinkedNode link(const Node& node, const LinkContext& context, int step) {
    const Plan::Linked::Step* known = known_step(step);
    if (node.subgraphs.empty()) {
      const int64_t cost = node.op->cost_ns(context.params, context.in, context.out);
      const bool same = known && is_linked_for(*known, node, context);
      return {same ? known->kernel : kernels_.link(node, context), cost, cores_worth_having(cost), node.op->opaque};
    }
    const Ref<ControlKernel> control =
        link_control(node, context, plan_->options_, lent_memory(node), known ? known->kernel.get() : nullptr);
    const std::vector<ControlKernel::Body> bodies = control->bodies();  // rewriting may have put opaque code into them
    const bool opaque =
        std::any_of(bodies.begin(), bodies.end(), [](const auto& body) { return body.plan->is_opaque(); });
    return {Ref<Kernel>(control.get()), control->cost_ns(context.in), control->cores(context.in), opaque};
  }

  static bool is_linked_for(const Plan::Linked::Step& step, const Node& node, const LinkContext& context) {
    const auto outputs = step.specs.begin() + static_cast<std::ptrdiff_t>(context.in.size());
    return std::equal(context.in.begin(), context.in.end(), step.specs.begin()) &&
           std::equal(context.out.begin(), context.out.end(), outputs) &&
           same_params(*node.op, node.params, step.params);
  }

  // Returns the memory that is lent per state of a loop, or per output of a cond. Memory of inputs is not lent, because
  // a loop that fails writes to no parameter, unless the plan has put the first state there itself. The array of an
  // output shares memory with no input of the call, except that it may be a donated one that holds the first state.
  std::vector<LentMemory> lent_memory(const Node& node) {
    std::vector<LentMemory> lent;
    if (control_kind(node) == ControlKind::kCond) return memory_of_branches(node);
    if (control_kind(node) != ControlKind::kForeach && control_kind(node) != ControlKind::kWhileLoop) return lent;
    const LoopSpec& loop = loop_of(node);
    for (size_t s = 0; s < loop.carries(); ++s) {
      const NodeEntry final{NodePtr(const_cast<Node*>(&node)), static_cast<uint32_t>(loop.final_carry(s))};
      const PlanStorage& last = storage_of(final);
      const bool holds_first = is_same_memory(storage_of(node.inputs[loop.carry(s)]), last);
      const bool may_hold_first = holds_first || last.kind == Kind::kOutput;
      const bool is_own = last.kind == Kind::kTemporary || last.kind == Kind::kResidual;
      lent.push_back(may_hold_first ? LentMemory::kFirstState : is_own ? LentMemory::kFree : LentMemory::kNone);
    }
    return lent;
  }

  // kFirstState: the output lies in the memory of the input that both branches pass on or write over.
  std::vector<LentMemory> memory_of_branches(const Node& node) {
    std::vector<LentMemory> lent;
    for (const NodeEntry& output : outputs_of(node)) {
      const int input = input_written_over(node, static_cast<int>(output.index));
      const bool shares =
          input >= 0 && is_same_memory(storage_of(node.inputs[static_cast<size_t>(input)]), storage_of(output));
      lent.push_back(shares ? LentMemory::kFirstState : LentMemory::kNone);
    }
    return lent;
  }

  static std::vector<NodeEntry> outputs_of(const Node& node) {
    std::vector<NodeEntry> outputs;
    for (uint32_t i = 0; i < node.specs.size(); ++i) outputs.push_back({NodePtr(const_cast<Node*>(&node)), i});
    return outputs;
  }

  // True if a value lies in the memory of an earlier one: by sharing, or because this plan replaces the input.
  bool is_same_memory(const PlanStorage& earlier, const PlanStorage& later) const {
    return &earlier == &later ||
           (is_replaced_input(later) && earlier.kind == Kind::kInput && earlier.index == later.index);
  }

  void add_instruction(const Plan::Instruction& instruction, ParamsPtr params) {
    plan_->instructions_.push_back(instruction);
    plan_->params_.push_back(std::move(params));
  }

  // Throws if a value in another format reaches an operator that knows plain memory only.
  static void check_formats(const Node& node, const std::vector<Format>& in) {
    const Op& op = *node.op;
    const bool image = !op.image_inputs.empty() || !op.image_outputs.empty();
    if (image || op.format_agnostic || op.pointwise || op.renumbered_params) return;
    if (std::find(in.begin(), in.end(), Format::kChannelsLast) == in.end()) return;
    throw Error(ErrorKind::kError, {.op = op.name,
                                    .node = node.name,
                                    .block = node.block,
                                    .message = "a value in channels-last memory reached an operator of plain memory",
                                    .fix = "report this; HYBRIDNET_PASSES=fast_run,-channels_last goes around it",
                                    .where = node.where});
  }

  // Random nodes draw from the stream of their node in the user's graph, wherever rewriting has put them.
  static uint64_t stream_of(const Node& node, int step) {
    if (random_stream(node) == kStreamOfLoopAround) return 0;
    return splitmix64(random_stream(node).value_or((uint64_t{1} << 32) + static_cast<uint64_t>(step)));
  }

  void emit_copies() {
    for (size_t i = 0; i < copies_.size(); ++i) {
      const auto& [entry, source, target] = copies_[i];
      Plan::Instruction instruction;
      instruction.first_arg = static_cast<int>(plan_->args_.size());
      instruction.num_in = instruction.num_out = 1;
      source->last = static_cast<int>(steps_.size() + copies_.size());
      target->last = source->last;
      add_arg(source, graph_.spec(entry), graph_.format(entry));
      add_arg(target, graph_.spec(entry), graph_.format(entry));
      plan_->cost_ns_ += graph_.spec(entry).bytes() / 8;
      if (target->kind == Kind::kInput)
        plan_->first_write_ = std::min(plan_->first_write_, plan_->instructions_.size());
      add_instruction(instruction, nullptr);
      if (!known_)
        plan_->linked_->steps.push_back(
            {nullptr, nullptr, nullptr, {}, entry.node->name, entry.node->block, entry.node->where});
    }
  }

  void place_memory() {
    std::vector<PlanStorage*> temporaries;
    for (PlanStorage& storage : storages_) {
      if (storage.kind == Kind::kTemporary && storage.bytes > 0) temporaries.push_back(&storage);
    }
    plan_->num_temporaries_ = temporaries.size();
    plan_->arena_bytes_ = place_in_arena(std::move(temporaries));
  }

  void finish() {
    Plan& plan = *plan_;
    for (const auto& [arg, storage] : temporaries_) {
      if (storage->offset >= 0) plan.arena_patches_.push_back({arg, 0, storage->offset});
    }
    for (const auto& [instruction, storage] : workspaces_) {
      plan.instructions_[static_cast<size_t>(instruction)].workspace = storage->offset;
    }
    note_cells();
    if (known_) return;
    plan.linked_->constants = constants_;
    for (const NodePtr& input : graph_.inputs()) plan.linked_->input_names.push_back(input->name);
  }

  void note_cells() {
    std::unordered_map<const PlanStorage*, int> numbers;
    for (const PlanStorage* storage : storage_of_arg_) {
      const auto [number, is_new] = numbers.try_emplace(storage, static_cast<int>(plan_->cells_.size()));
      plan_->cell_of_arg_.push_back(storage ? number->second : -1);
      if (storage == nullptr) {
        numbers.erase(number);
      } else if (is_new) {
        plan_->cells_.push_back(
            {storage->kind, storage->index, storage->bytes, storage->offset, storage->first, storage->last});
      }
    }
  }

  const Graph& graph_;
  const Plan::Linked* const known_;  // null: nothing is linked yet
  SharedKernels kernels_;
  Ref<Plan> plan_;
  std::vector<Ref<Object>> constants_;
  const size_t num_visible_;
  std::vector<Node*> steps_;
  std::unordered_map<const Node*, int> step_of_;
  std::deque<PlanStorage> storages_;
  std::unordered_map<NodeEntry, PlanStorage*, NodeEntryHash> storage_by_root_;
  std::unordered_map<const PlanStorage*, std::vector<NodeEntry>> shared_;  // further roots that live in a storage
  struct Copy {
    NodeEntry entry;
    PlanStorage *source, *target;
  };
  std::vector<Copy> copies_;
  static constexpr int kUnknownStep = -2;
  mutable int last_risky_ = kUnknownStep;  // the last instruction that can fail
  std::vector<const PlanStorage*> storage_of_arg_;
  std::vector<std::pair<int, PlanStorage*>> temporaries_;  // argument number, storage
  std::vector<std::pair<int, PlanStorage*>> workspaces_;   // instruction number, storage
};

Plan::Options Plan::Options::for_body() const {
  Options body;
  body.name = name;
  body.device = device;
  body.keep_arena = true;
  body.arenas = arenas->for_bodies();
  return body;
}

Plan::Options Plan::Options::for_preparation() const {
  Options preparation;
  preparation.name = name;
  preparation.device = device;
  preparation.arenas = arenas;
  return preparation;
}

Ref<Plan> Plan::compile(const Graph& graph, const Options& options) { return build(graph, options, nullptr); }

Ref<Plan> Plan::lay_out(const Graph& graph, const Options& options, const Ref<Linked>& linked) {
  return build(graph, options, linked);
}

Ref<Plan> Plan::build(const Graph& graph, const Options& options, const Ref<Linked>& known) {
  // On a GPU the preparation is part of each run: nothing tells when a parameter there was written.
  const bool is_prepared = options.device.type != DeviceType::kGPU && has_preparation(graph);
  if (is_prepared) return build_prepared(graph, options, known);
  if (known && known->preparation) return nullptr;
  const Ref<Plan> plan = PlanBuilder(graph, options, known).run();
  if (plan) plan->note_reads(graph.inputs().size());
  if (plan) plan->note_last_uses();
  return plan;
}

Ref<Plan> Plan::build_prepared(const Graph& graph, const Options& options, const Ref<Linked>& known) {
  const PreparationSplit split = split_preparation(graph);
  if (known && (!known->preparation || known->recipe != split.recipe)) return nullptr;
  const Ref<Plan> plan = PlanBuilder(split.main, options, known).run();
  if (plan) plan->note_reads(graph.inputs().size());
  if (plan) plan->note_last_uses();
  if (known) return plan;
  Linked& linked = *plan->linked_;
  linked.preparation = PlanBuilder(split.preparation, options.for_preparation(), nullptr).run();
  linked.prepared_reads = split.reads;
  linked.recipe = split.recipe;
  linked.prepared = std::make_unique<DerivedUser<Prepared>>("prepared " + split.recipe);
  return plan;
}

}  // namespace hybridnet
