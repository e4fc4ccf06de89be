// A loop that steps a known recurrent cell becomes the operator RNN over the whole sequence, which packs the weights
// once and computes the products of all steps together. Cells on top of each other in one body go one by one: the
// states of the first are a sequence for the second. Other work of the body stays in the loop.
//
// RNN is differentiable twice, a loop any number of times: gradients that may be differentiated again are defined
// without this row (kLimitedOrder), and graphs that hold gradients of gradients are left alone. So are bodies of loops
// and branches, because the graph around them is not known.
#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>

#include "graph/control/loop_view.h"
#include "passes/attributes.h"
#include "passes/control/size_questions.h"
#include "passes/gradient/node_builders.h"
#include "passes/loops/row_work.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

// RNN joins and packs the weights in each call; a loop reads them in place. RNN pays if there are few elements of the
// weights per position (a row of an example). Ratios to the loop's time on two cores with AVX2, LSTM of 32, 256 and 512
// units: 16 positions in prediction 0.73, 1.10, 1.56; 512 positions 0.65, 0.93, 0.91; 256 positions in training 0.75,
// 1.05, 1.06; 8 positions 0.94, 1.31, 1.89.
constexpr int64_t kWeightsPerPosition = 1024;

const OpRef kRnn{"RNN"}, kJoin{"_rnn_param_concat"}, kExpand{"expand_dims"}, kSqueeze{"squeeze"},
    kDense{"FullyConnected"}, kSplit{"SliceChannel"}, kActivation{"Activation"}, kOnes{"ones_like"},
    kFromNumber{"_rminus_scalar"}, kGradient{"_gradient"};
const std::array<OpRef, 2> kAdd{OpRef{"elemwise_add"}, OpRef{"broadcast_add"}},
    kMultiply{OpRef{"elemwise_mul"}, OpRef{"broadcast_mul"}}, kSubtract{OpRef{"elemwise_sub"}, OpRef{"broadcast_sub"}};

// The inputs and outputs of one step, as entries of the body.
struct Cell {
  std::string mode;
  int64_t hidden = 0;
  NodeEntry data, state, output;
  std::optional<NodeEntry> memory, next_memory;                  // LSTM
  NodeEntry input_weight, state_weight, input_bias, state_bias;  // null biases: none
  std::vector<const Node*> inside;                               // nodes that the operator computes
};

class CellMatcher {
 public:
  // body: the body of the loop; state: the slot whose next value is `output`.
  CellMatcher(const Graph& body, const NodeEntry& state, const NodeEntry& output) : body_(body) {
    cell_.state = state;
    cell_.output = output;
  }

  std::optional<Cell> find() {
    if (cell_.output.node->is_variable() || body_.spec(cell_.state).shape.ndim() != 2) return std::nullopt;
    if (!(body_.spec(cell_.output) == body_.spec(cell_.state))) return std::nullopt;
    cell_.hidden = body_.spec(cell_.state).shape[1];
    for (const auto match : {&CellMatcher::is_lstm, &CellMatcher::is_gru, &CellMatcher::is_plain}) {
      Cell found = cell_;
      std::swap(found, cell_);
      if ((this->*match)()) return cell_;
      cell_ = std::move(found);
    }
    return std::nullopt;
  }

 private:
  using Operands = std::array<NodeEntry, 2>;

  // The operands of a node of this kind that broadcasts neither of them.
  std::optional<Operands> operands(const NodeEntry& entry, const std::array<OpRef, 2>& ops) {
    if (!is_first_of(entry, ops[0]) && !is_first_of(entry, ops[1])) return std::nullopt;
    const Node& node = *entry.node;
    for (const NodeEntry& input : node.inputs)
      if (!(body_.spec(input) == node.specs[0])) return std::nullopt;
    cell_.inside.push_back(&node);
    return Operands{node.inputs[0], node.inputs[1]};
  }

  // The input of an activation of this kind.
  std::optional<NodeEntry> activated(const NodeEntry& entry, std::string_view kind) {
    if (entry.node->is_variable() || entry.index != 0) return std::nullopt;
    const Node& node = *entry.node;
    const bool is_kind =
        node.op == &kActivation.op() ? text_attribute(node, "act_type") == kind : node.op->name == kind;
    if (!is_kind || node.inputs.size() != 1) return std::nullopt;
    cell_.inside.push_back(&node);
    return node.inputs[0];
  }

  // The value that is split into `gates` gates, if `entry` is number `gate` of them.
  std::optional<NodeEntry> whole_of(const NodeEntry& entry, int gates, uint32_t gate) {
    const Node& node = *entry.node;
    if (node.is_variable() || node.op != &kSplit.op() || entry.index != gate || node.specs.size() != size_t(gates))
      return std::nullopt;
    const double axis = number_attribute(node, "axis", 1);
    if ((axis != 1 && axis != -1) || bool_attribute(node, "squeeze_axis", false)) return std::nullopt;
    cell_.inside.push_back(&node);
    return node.inputs[0];
  }

  // True for a dense layer that makes all gates from the state (of_state), or from another value.
  bool is_dense(const NodeEntry& entry, bool of_state, int gates) {
    if (!is_first_of(entry, kDense)) return false;
    const Node& node = *entry.node;
    if ((node.inputs[0] == cell_.state) != of_state) return false;
    const TensorSpec &data = body_.spec(node.inputs[0]), &out = node.specs[0];
    if (data.shape.ndim() != 2 || out.shape.ndim() != 2 || out.shape[1] != gates * cell_.hidden) return false;
    (of_state ? cell_.state_weight : cell_.input_weight) = node.inputs[1];
    if (node.inputs.size() > 2) (of_state ? cell_.state_bias : cell_.input_bias) = node.inputs[2];
    if (!of_state) cell_.data = node.inputs[0];
    cell_.inside.push_back(&node);
    return true;
  }
  bool is_sum_of_layers(const NodeEntry& entry, int gates) {
    const auto sides = operands(entry, kAdd);
    return sides && ((is_dense((*sides)[0], false, gates) && is_dense((*sides)[1], true, gates)) ||
                     (is_dense((*sides)[1], false, gates) && is_dense((*sides)[0], true, gates)));
  }

  // f(a, b) for the operands in either order. A failed try leaves no nodes in `inside`.
  template <typename F>
  bool either(const Operands& sides, const F& f) {
    const size_t noted = cell_.inside.size();
    if (f(sides[0], sides[1])) return true;
    cell_.inside.resize(noted);
    return f(sides[1], sides[0]);
  }

  bool is_gate(const NodeEntry& entry, std::string_view activation, uint32_t number, std::optional<NodeEntry>& whole) {
    const auto before = activated(entry, activation);
    const auto cut = before ? whole_of(*before, 4, number) : std::nullopt;
    if (!cut || (whole && !(*whole == *cut))) return false;
    whole = cut;
    return true;
  }

  // c' = f * c + i * g;  h' = o * tanh(c')
  bool is_lstm() {
    std::optional<NodeEntry> gates;
    const auto product = operands(cell_.output, kMultiply);
    const auto is_output = [&](const NodeEntry& gate, const NodeEntry& shown) {
      const auto memory = is_gate(gate, "sigmoid", 3, gates) ? activated(shown, "tanh") : std::nullopt;
      if (memory) cell_.next_memory = memory;
      return memory.has_value();
    };
    const auto is_kept = [&](const NodeEntry& forget, const NodeEntry& memory) {
      if (!is_gate(forget, "sigmoid", 1, gates) || !memory.node->is_variable()) return false;
      cell_.memory = memory;
      return true;
    };
    const auto is_added = [&](const NodeEntry& in, const NodeEntry& candidate) {
      return is_gate(in, "sigmoid", 0, gates) && is_gate(candidate, "tanh", 2, gates);
    };
    if (!product || !either(*product, is_output)) return false;
    const auto terms = operands(*cell_.next_memory, kAdd);
    const bool found = terms && either(*terms, [&](const NodeEntry& kept, const NodeEntry& added) {
                         const auto a = operands(kept, kMultiply), b = operands(added, kMultiply);
                         return a && b && either(*a, is_kept) && either(*b, is_added);
                       });
    cell_.mode = "lstm";
    return found && is_sum_of_layers(*gates, 4);
  }

  // True if these are gate `number` of the input's and the state's layer; stores the values that they are split from.
  bool are_gates(const NodeEntry& of_input, const NodeEntry& of_state, uint32_t number,
                 std::array<NodeEntry, 2>& wholes) {
    const auto a = whole_of(of_input, 3, number), b = whole_of(of_state, 3, number);
    if (!a || !b) return false;
    const std::array<NodeEntry, 2> now{*a, *b};
    if (wholes[0].node && !(wholes == now)) return false;
    wholes = now;
    return true;
  }
  bool is_sigmoid_gate(const NodeEntry& entry, uint32_t number, std::array<NodeEntry, 2>& wholes) {
    const auto sum = activated(entry, "sigmoid");
    const auto sides = sum ? operands(*sum, kAdd) : std::nullopt;
    return sides &&
           either(*sides, [&](const NodeEntry& a, const NodeEntry& b) { return are_gates(a, b, number, wholes); });
  }
  // 1 - z
  bool is_rest_of(const NodeEntry& entry, const NodeEntry& update) {
    if (is_first_of(entry, kFromNumber)) {
      cell_.inside.push_back(entry.node.get());
      return entry.node->inputs[0] == update && number_attribute(*entry.node, "scalar", 0) == 1;
    }
    const auto sides = operands(entry, kSubtract);
    if (!sides || !((*sides)[1] == update) || !is_first_of((*sides)[0], kOnes)) return false;
    cell_.inside.push_back((*sides)[0].node.get());
    return true;
  }

  // h' = (1 - z) * tanh(x_n + r * h_n) + z * h
  bool is_gru() {
    std::array<NodeEntry, 2> wholes;
    const auto terms = operands(cell_.output, kAdd);
    const auto is_candidate = [&](const NodeEntry& entry) {
      const auto sum = activated(entry, "tanh");
      const auto sides = sum ? operands(*sum, kAdd) : std::nullopt;
      return sides && either(*sides, [&](const NodeEntry& of_input, const NodeEntry& rest) {
               const auto product = operands(rest, kMultiply);
               return product && either(*product, [&](const NodeEntry& reset, const NodeEntry& of_state) {
                        return are_gates(of_input, of_state, 2, wholes) && is_sigmoid_gate(reset, 0, wholes);
                      });
             });
    };
    const bool found =
        terms && either(*terms, [&](const NodeEntry& changed, const NodeEntry& kept) {
          const auto a = operands(changed, kMultiply), b = operands(kept, kMultiply);
          return a && b && either(*b, [&](const NodeEntry& update, const NodeEntry& state) {
                   const bool is_mix =
                       state == cell_.state && either(*a, [&](const NodeEntry& rest, const NodeEntry& candidate) {
                         return is_rest_of(rest, update) && is_candidate(candidate);
                       });
                   return is_mix && is_sigmoid_gate(update, 1, wholes);
                 });
        });
    cell_.mode = "gru";
    return found && is_dense(wholes[0], false, 3) && is_dense(wholes[1], true, 3);
  }

  // h' = activation(layer of the input + layer of the state)
  bool is_plain() {
    for (const char* activation : {"tanh", "relu"}) {
      const auto sum = activated(cell_.output, activation);
      cell_.mode = std::string("rnn_") + activation;
      if (sum) return is_sum_of_layers(*sum, 1);
    }
    return false;
  }

  const Graph& body_;
  Cell cell_;
};

class CellsOfLoop {
 public:
  CellsOfLoop(Graph& graph, Node& node) : graph_(graph), node_(node), view_(graph, node), now_(node.specs.size()) {}

  bool run() {
    bool changed = false;
    while (take_one()) changed = true;
    if (!changed) return false;
    if (view_.outs.empty() && view_.carries.empty())
      move_readers(graph_, node_, now_);
    else
      view_.replace(graph_, node_, view_.put_together(graph_, node_), now_);
    return true;
  }

 private:
  bool take_one() {
    for (size_t state = 0; state < view_.carries.size(); ++state) {
      const std::optional<Cell> cell = CellMatcher(view_.body, slot(state), next(state)).find();
      if (!cell || !fits(*cell)) continue;
      std::optional<size_t> memory;
      if (cell->memory && !(memory = carry_of(*cell->memory, *cell->next_memory))) continue;
      if (!is_closed(*cell, state, memory)) continue;
      replace(*cell, state, memory);
      return true;
    }
    return false;
  }

  NodeEntry slot(size_t carry) const { return {view_.carries[carry].slot.inner, 0}; }
  const NodeEntry& next(size_t carry) const { return view_.entry(view_.carries[carry].next); }
  std::optional<size_t> carry_of(const NodeEntry& before, const NodeEntry& after) const {
    for (size_t i = 0; i < view_.carries.size(); ++i)
      if (slot(i) == before && next(i) == after) return i;
    return std::nullopt;
  }

  // True if the cell reads a sequence and captured weights, has a dtype that RNN computes without casts, and does not
  // need much more memory.
  bool fits(const Cell& cell) const {
    const TensorSpec& state = view_.body.spec(cell.state);
    if (state.dtype != DType::kFloat32 && state.dtype != DType::kFloat64) return false;
    if (!LoopView::find(view_.data, cell.data) || view_.body.spec(cell.data).dtype != state.dtype) return false;
    for (const NodeEntry& weight : {cell.input_weight, cell.state_weight, cell.input_bias, cell.state_bias})
      if (weight.node && !LoopView::find(view_.captured, weight)) return false;
    return pays(cell) && (graph_.train() || 6 * state.bytes() * view_.rows() <= kMaxRowBytesInPrediction);
  }

  bool pays(const Cell& cell) const {
    const int64_t weights =
        view_.body.spec(cell.input_weight).shape.size() + view_.body.spec(cell.state_weight).shape.size();
    const Shape& sequence = graph_.spec(outside(view_.data, cell.data)).shape;  // (iterations, examples, features)
    return ask_sizes({sequence}, [weights](std::span<const Shape> shapes) {
      return shapes[0][0] * shapes[0][1] * kWeightsPerPosition >= weights;
    });
  }

  // True if no other node reads a value that the operator does not return.
  bool is_closed(const Cell& cell, size_t state, std::optional<size_t> memory) const {
    const std::unordered_set<const Node*> inside(cell.inside.begin(), cell.inside.end());
    const auto only_inside = [&](const NodeEntry& entry, int next_of_carry) {
      const auto& clients = view_.body.clients(entry);
      return std::all_of(clients.begin(), clients.end(), [&](const Client& client) {
        if (client.kind == Client::Kind::kNode) return inside.count(client.node) != 0;
        return client.kind == Client::Kind::kOutput && (!is_output(client.index) || client.index == next_of_carry);
      });
    };
    if (!only_inside(cell.state, -1) || (memory && !only_inside(*cell.memory, -1))) return false;
    for (const Node* node : cell.inside) {
      for (uint32_t i = 0; i < node->specs.size(); ++i) {
        const NodeEntry entry{NodePtr(const_cast<Node*>(node)), i};
        if (entry == cell.output) continue;
        const bool is_memory = memory && entry == *cell.next_memory;
        if (!only_inside(entry, is_memory ? view_.carries[*memory].next : -1)) return false;
      }
    }
    return true;
  }
  // True for outputs of the body that the loop still returns; those of cells that were taken out stay unused.
  bool is_output(int index) const {
    const auto is = [index](int other) { return other == index; };
    return std::any_of(view_.outs.begin(), view_.outs.end(), [&](const LoopView::Out& o) { return is(o.value); }) ||
           std::any_of(view_.carries.begin(), view_.carries.end(),
                       [&](const LoopView::Carry& c) { return is(c.next); });
  }

  NodeEntry outside(const std::vector<LoopView::Slot>& slots, const NodeEntry& inner) const {
    return LoopView::find(slots, inner)->outer;
  }
  // The captured array as a vector; zeros of this size if there is none.
  NodeEntry flat(const NodeEntry& weight, int64_t size, DType dtype) {
    if (!weight.node) return zeros(graph_, {Shape{size}, dtype}, &node_);
    return reshaped(graph_, outside(view_.captured, weight), Shape{view_.body.spec(weight).shape.size()}, &node_);
  }
  NodeEntry in_front(const NodeEntry& state) { return emit(graph_, kExpand, {state}, {{"axis", "0"}}, &node_); }

  void replace(const Cell& cell, size_t state, std::optional<size_t> memory) {
    const TensorSpec spec = view_.body.spec(cell.state);
    const int64_t rows = view_.body.spec(cell.state_weight).shape[0];
    const NodeEntry parameters =
        emit(graph_, kJoin,
             {flat(cell.input_weight, 0, spec.dtype), flat(cell.state_weight, 0, spec.dtype),
              flat(cell.input_bias, rows, spec.dtype), flat(cell.state_bias, rows, spec.dtype)},
             {{"num_args", "4"}, {"dim", "0"}}, &node_);
    std::vector<NodeEntry> inputs{outside(view_.data, cell.data), parameters,
                                  in_front(view_.carries[state].slot.outer)};
    if (memory) inputs.push_back(in_front(view_.carries[*memory].slot.outer));
    const NodeEntry made = emit(graph_, kRnn, std::move(inputs),
                                {{"state_size", std::to_string(cell.hidden)},
                                 {"num_layers", "1"},
                                 {"mode", cell.mode},
                                 {"state_outputs", "True"}},
                                &node_);
    give_final(state, {made.node, 1});
    if (memory) give_final(*memory, {made.node, 2});
    const NodePtr sequence = view_.add_sequence(made, spec, cell.output.node->name).inner;
    view_.body.replace(cell.output, {sequence, 0});
    std::vector<LoopView::Carry> rest;
    for (size_t i = 0; i < view_.carries.size(); ++i)
      if (i != state && i != memory) rest.push_back(view_.carries[i]);
    view_.carries = std::move(rest);
  }

  void give_final(size_t carry, const NodeEntry& value) {
    const int output = view_.carries[carry].output;
    if (output >= 0 && graph_.is_used(node_, output))
      now_[static_cast<size_t>(output)] = emit(graph_, kSqueeze, {value}, {{"axis", "0"}}, &node_);
  }

  Graph& graph_;
  Node& node_;
  LoopView view_;
  std::vector<NodeEntry> now_;  // per output of the node: its replacement
};

bool may_have_cells(const Graph& graph, const Node& node) {
  const LoopSpec& loop = loop_of(node);
  if (loop.counted || loop.reverse || !loop.checkpoint.empty() || loop.truncate_gradient != 0 || loop.detach_every != 0)
    return false;
  if (loop.num_seq == 0 || loop.num_carry == 0 || !LoopView::can_view(node) || rows_of(graph, node) < 2) return false;
  const std::vector<Node*> nodes = topological_order(node.subgraphs[0]->outputs);
  return std::count_if(nodes.begin(), nodes.end(), [](const Node* n) { return n->op == &kDense.op(); }) >= 2;
}

// True if there is a gradient of a gradient, which may be differentiated once more.
bool differentiates_gradients(const Graph& graph) {
  std::unordered_set<const Node*> behind_gradients;
  for (const Node* node : graph.order()) {
    const bool is_gradient = node->op == &kGradient.op();
    const bool reads_gradient = std::any_of(node->inputs.begin(), node->inputs.end(), [&](const NodeEntry& input) {
      return behind_gradients.count(input.node.get()) != 0;
    });
    if (is_gradient && reads_gradient) return true;
    if (is_gradient || reads_gradient) behind_gradients.insert(node);
  }
  return false;
}

}  // namespace

bool rnn_cell(Graph& graph) {
  if (!PipelineScope::current().place.empty() || differentiates_gradients(graph)) return false;
  bool changed = false;
  for_each_node(graph, {ControlKind::kForeach}, [&](Node& node) {
    if (may_have_cells(graph, node)) changed = CellsOfLoop(graph, node).run() || changed;
  });
  return changed;
}

}  // namespace hybridnet::passes
