// Rewrites and differentiates once per graph, not once per shape: keeps the graphs that a signature was compiled to,
// and uses them for other sizes if compiling anew is known to give the same graphs.
//
// A template serves a signature when
//   - it differs in sizes only, and no size becomes or ceases to be 0 or 1;
//   - shapes that were equal in the graphs are equal again, and different ones different, because rules compare shapes
//     (if different ones become equal, compiling anew must give the same graphs each time);
//   - the axes whose sizes differ are proved: for another signature in which all of them differed, the template gave
//     exactly the graphs that compiling anew gave. An attribute that a rule took from a size would differ there;
//   - the questions that rewrites have asked about sizes (passes/control/size_questions.h), such as where images lie
//     channels-last and which convolutions go through Winograd's algorithm, have the same answers;
//   - the gradient rules, called again with the new sizes, make the same nodes. Parameters that differ are taken over.
//     (If they were the same for all sizes so far, the rules are not called; for proved sizes, only the rules whose
//     parameters have differed are called.)
// The first template of a graph may contain sizes, as constants in place of shape_array: it serves no other sizes. When
// other sizes come, the next template is made to serve all.
// Graphs with loops or branches serve sizes that leave the sizes in their bodies unchanged: other numbers of
// iterations. Since rules for loops ask whether sizes are above a limit, these graphs are proved for a smallest and a
// largest signature and serve the signatures in between.
// The graphs of a template are linked once, and laid out for each signature that it serves (plan/plan.h).
// Graphs with operators outside the library are always compiled anew.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "passes/control/size_questions.h"
#include "plan/compilation.h"

namespace hybridnet {

// The specs of all values of a list of nodes, inferred from those of the inputs in one sweep.
class SpecTape {
 public:
  // order: every node after its producers.
  SpecTape(const std::vector<Node*>& order, bool train);
  std::vector<TensorSpec> values;  // in order, one per output
  TensorSpec& operator[](const NodeEntry& entry) { return values[first_value_.at(entry.node.get()) + entry.index]; }
  bool has(const Node* node) const { return first_value_.count(node) != 0; }
  // Returns false if some spec is not determined. Throws the errors of inference.
  bool infer();
  std::vector<TensorSpec> body_inputs() const;  // input specs of all bodies
  void store() const;                           // into Node::specs

 private:
  struct Step {
    Node* node;
    std::vector<size_t> in;
    size_t out, num_out;
  };
  const bool train_;
  std::vector<Step> steps_;
  std::unordered_map<const Node*, size_t> first_value_;
  std::vector<TensorSpec> in_;
};

class CompilationTemplate {
 public:
  CompilationTemplate(const GraphDefinition& definition, const CallSignature& signature, const CompileOptions& options,
                      GraphSizes sizes);

  // False: it serves its own signature only.
  bool is_generic() const { return generic_; }
  // False: proofs for other sizes have failed so often that it is not tried again.
  bool may_serve() const { return failed_proofs_ < kMaxFailedProofs; }
  bool differs_in_sizes_only(const CallSignature& signature) const;
  bool is_proved_for(const CallSignature& signature) const;
  // Returns larger and smaller signatures, by half, whose proofs include this one; empty: proving this one is enough.
  std::vector<CallSignature> to_prove(const CallSignature& signature) const;
  // Whether shapes that differ in the graphs may be equal for other inputs, such as 64 rows beside 64 units.
  enum class Coincidence : uint8_t { kForbidden, kAllowed };
  // Gives every value the size that it has for these inputs. Returns false if the template does not serve them; it must
  // then be resized before it is used again.
  bool resize(const CallSignature& signature, Coincidence coincidence = Coincidence::kForbidden);
  // `fresh`: made for the signature that this template was resized to. Returns true if the graphs are the same; then,
  // if no shapes coincide, the axes whose sizes differ from the first signature's are proved.
  bool prove(const CompilationTemplate& fresh);

  const RewrittenGraphs& rewritten() const { return rewritten_; }
  GraphSizes sizes() const { return sizes_; }
  LinkedPlans linked;  // laid out for each signature; empty: not linked yet

 private:
  // A node of the joint graph (forward and gradients) before it is rewritten.
  struct JointNode {
    const Op* op;
    ParamsPtr params;
    std::vector<std::pair<int, uint32_t>> inputs;
  };
  using Joint = std::vector<JointNode>;
  // Parameters that a gradient rule made, and the nodes that have them now.
  struct RuleParams {
    std::vector<size_t> makers;  // indices in joint_
    ParamsPtr now;
    bool hold_sizes = false;  // they differed for some sizes
    std::vector<NodePtr> users;
    std::vector<std::pair<NodePtr, size_t>> steps;  // steps of fused elementwise nodes
  };
  // A gradient rule that makes parameters which hold sizes: the arguments of its call, and the nodes that it made.
  struct SizedRule {
    const Node* node;  // in rewritten_.undifferentiated
    std::vector<bool> arrives, wanted;
    std::vector<const Op*> ops;
    std::vector<int> params;  // per node that it makes: index in rule_params_; -1: the parameters hold no size
  };
  using Axis = std::pair<size_t, int>;  // number of the input, axis

  static constexpr int kMaxFailedProofs = 3;

  static Joint describe(const Graph& joint);
  void make_tapes();
  void find_rule_params();
  std::vector<Axis> resized_axes(const CallSignature& signature) const;
  bool infer_sizes(const CallSignature& signature);
  bool infer_graph(Graph& graph, SpecTape& tape, const CallSignature& signature);
  bool ask_gradient_rules(const CallSignature& signature);
  bool ask_all_gradient_rules(const CallSignature& signature);
  bool ask_sized_gradient_rules();
  void find_sized_rules(const Graph& joint, const std::vector<AskedRule>& asked, const EntryMap& clones);
  void take_over(RuleParams& params, const ParamsPtr& made);
  bool shapes_correspond();  // and the answers to the questions about them are the same
  bool results_fit(const CallSignature& signature);

  const GraphDefinition& definition_;
  const CompileOptions& options_;
  const GraphSizes sizes_;  // the value for which the graphs were rewritten
  CallSignature first_, current_;
  SizeQuestions questions_;  // asked while rewriting
  RewrittenGraphs rewritten_;
  Joint joint_;
  std::vector<RuleParams> rule_params_;
  std::vector<SizedRule> sized_rules_;
  bool knows_sized_rules_ = false;  // no other rule makes parameters that hold sizes
  std::vector<SpecTape> tapes_;     // for the definition, then for the graphs
  std::vector<std::vector<TensorSpec>> first_values_,
      first_body_inputs_;  // per tape, for first_
  std::set<Axis> proved_;
  std::vector<TensorSpec> smallest_,
      largest_;  // inputs for which it is proved; with has_bodies_ also for all sizes in between
  bool has_bodies_ = false;
  bool one_for_one_ = true;  // no shapes coincide for current_
  int failed_proofs_ = 0;
  bool generic_ = false;
  bool rule_params_changed_ = false;  // for some sizes
};

// Compiles the signatures of one graph. Threads: one at a time.
class Compiler {
 public:
  Compiler(const GraphDefinition& definition, const CompileOptions& options)
      : definition_(definition), options_(options) {}
  // Throws the errors of rewrite_graphs and link_compilation.
  Ref<Compilation> compile(const CallSignature& signature);
  std::string graph_text(const CallSignature& signature);  // the rewritten graphs, made anew
  void forget() { templates_.clear(); }                    // the next signature is compiled anew
  size_t num_linked() const { return num_linked_; }
  size_t num_layouts() const { return num_layouts_; }
  size_t num_rewritten() const { return num_rewritten_; }

 private:
  Ref<Compilation> link(size_t known, const CallSignature& signature);
  void note_linked(const Compilation& call, const LinkedPlans& known);
  void forget_other_rules();
  bool prove(CompilationTemplate& known, const CallSignature& signature);

  static constexpr size_t kMaxTemplates = 4;

  const GraphDefinition& definition_;
  const CompileOptions& options_;
  std::vector<std::unique_ptr<CompilationTemplate>> templates_;  // most recently used first
  std::string rules_;  // the rewrites that made them: generation of the database, and query
  size_t num_linked_ = 0, num_layouts_ = 0, num_rewritten_ = 0;
};

}  // namespace hybridnet
