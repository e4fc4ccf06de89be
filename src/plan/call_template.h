// Rewriting and differentiation once per graph, not once per shape: the graphs that a signature was compiled to are
// kept, and serve other sizes where that is known to give what compiling anew would give.
//
// A template serves a signature when
//   - it differs in sizes only, and no size becomes or ceases to be 0 or 1;
//   - shapes that were equal in the graphs are equal again, and different ones different: that is what rules compare
//     (where different ones become equal, compiling anew must give the same graphs each time);
//   - the axes whose sizes differ are proved: for another signature in which all of them differed, the template gave
//     exactly the graphs that compiling anew gave. An attribute that a rule took from a size would differ there;
//   - what rewrites have asked about sizes (passes/size_questions.h), such as where images lie channels-last and which
//     convolutions go through Winograd's algorithm, has the same answers;
//   - the gradient rules, asked again with the new sizes, give the same nodes. Parameters that differ are taken over.
//     (Where they were the same for all sizes so far, the rules are not asked; for proved sizes, those alone are asked
//     whose parameters have differed.)
// The first template of a graph may hold sizes themselves, as constants in the place of shape_array: it serves no other
// ones. When such come, the next template is made to serve all.
// Graphs with loops or branches serve sizes for which their bodies keep theirs: other numbers of iterations. As rules
// for loops ask whether sizes are above a limit, they are proved for a smallest and a largest signature and serve those
// in between.
// The graphs of a template are linked once, and laid out for each signature that it serves (plan/plan.h).
// Graphs with operators outside the library are always compiled anew.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "passes/size_questions.h"
#include "plan/compiled_call.h"

namespace hybridnet {

// The specs of all values of a list of nodes, inferred from those of the inputs in one sweep.
class SpecTape {
 public:
  // Every node after its producers.
  SpecTape(const std::vector<Node*>& order, bool train);
  std::vector<TensorSpec> values;  // in order, one per output
  TensorSpec& operator[](const NodeEntry& entry) { return values[first_value_.at(entry.node.get()) + entry.index]; }
  bool has(const Node* node) const { return first_value_.count(node) != 0; }
  // False: some spec is not determined. Throws what inference throws.
  bool infer();
  std::vector<TensorSpec> body_inputs() const;  // of all bodies
  void store() const;                           // as Node::specs

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

class CallTemplate {
 public:
  CallTemplate(const GraphDefinition& definition, const CallSignature& signature, const CompileOptions& options,
               GraphSizes sizes);

  // False: it serves its own signature only.
  bool is_generic() const { return generic_; }
  // False: it has failed to serve other sizes so often that it is not worth asking.
  bool may_serve() const { return failed_proofs_ < kMaxFailedProofs; }
  bool differs_in_sizes_only(const CallSignature& signature) const;
  bool is_proved_for(const CallSignature& signature) const;
  // Larger and smaller signatures by half, whose proofs prove it for this one; empty: it is enough to prove this one.
  std::vector<CallSignature> to_prove(const CallSignature& signature) const;
  // Shapes that are different in the graphs and equal for other inputs: 64 rows beside 64 units.
  enum class Coincidence : uint8_t { kForbidden, kAllowed };
  // Gives every value the size that it has for these inputs. False: the template does not serve them, and has to be
  // resized before it is used again.
  bool resize(const CallSignature& signature, Coincidence coincidence = Coincidence::kForbidden);
  // `fresh`: made for the signature that this template was resized to. True: the graphs are the same, and, if no shapes
  // coincide, the axes whose sizes differ from the first signature's are proved.
  bool prove(const CallTemplate& fresh);

  const RewrittenCall& rewritten() const { return rewritten_; }
  GraphSizes sizes() const { return sizes_; }
  LinkedCall linked;  // what is laid out for each signature; empty: it is not linked yet

 private:
  // A node of the joint graph, as it was differentiated.
  struct JointNode {
    const Op* op;
    ParamsPtr params;
    std::vector<std::pair<int, uint32_t>> inputs;
  };
  using Joint = std::vector<JointNode>;
  // Parameters that a gradient rule made, and the nodes that have them now.
  struct RuleParams {
    std::vector<size_t> makers;  // in joint_
    ParamsPtr now;
    bool hold_sizes = false;  // they differed for some sizes
    std::vector<NodePtr> users;
    std::vector<std::pair<NodePtr, size_t>> steps;  // of fused elementwise nodes
  };
  // A gradient rule that makes such parameters which hold sizes: what it was asked, and made.
  struct SizedRule {
    const Node* node;  // of rewritten_.undifferentiated
    std::vector<bool> arrives, wanted;
    std::vector<const Op*> ops;
    std::vector<int> params;  // per node that it makes: number in rule_params_, -1: they hold no size
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
  bool shapes_correspond();  // and the answers to the questions about them stay
  bool results_fit(const CallSignature& signature);

  const GraphDefinition& definition_;
  const CompileOptions& options_;
  const GraphSizes sizes_;  // as they were said to be when the graphs were rewritten
  CallSignature first_, current_;
  SizeQuestions questions_;  // that rewriting has asked
  RewrittenCall rewritten_;
  Joint joint_;
  std::vector<RuleParams> rule_params_;
  std::vector<SizedRule> sized_rules_;
  bool knows_sized_rules_ = false;  // no other rule makes parameters that hold sizes
  std::vector<SpecTape> tapes_;     // of the definition, then of the graphs
  std::vector<std::vector<TensorSpec>> first_values_,
      first_body_inputs_;  // of the tapes, for first_
  std::set<Axis> proved_;
  std::vector<TensorSpec> smallest_,
      largest_;  // inputs that it is proved for; with has_bodies_ also all in
                 // between
  bool has_bodies_ = false;
  bool one_for_one_ = true;  // no shapes coincide for current_
  int failed_proofs_ = 0;
  bool generic_ = false;
  bool rule_params_changed_ = false;  // for some sizes
};

// Compiles the signatures of one graph. Threads: one at a time.
class CallCompiler {
 public:
  CallCompiler(const GraphDefinition& definition, const CompileOptions& options)
      : definition_(definition), options_(options) {}
  // Throws what rewrite_call and link_call throw.
  Ref<CompiledCall> compile(const CallSignature& signature);
  std::string graph_text(const CallSignature& signature);  // of the rewritten graphs, made anew
  void forget() { templates_.clear(); }                    // the next signature is compiled anew
  size_t num_linked() const { return num_linked_; }
  size_t num_layouts() const { return num_layouts_; }
  size_t num_rewritten() const { return num_rewritten_; }

 private:
  Ref<CompiledCall> link(size_t known, const CallSignature& signature);
  void note_linked(const CompiledCall& call, const LinkedCall& known);
  void forget_other_rules();
  bool prove(CallTemplate& known, const CallSignature& signature);

  static constexpr size_t kMaxTemplates = 4;

  const GraphDefinition& definition_;
  const CompileOptions& options_;
  std::vector<std::unique_ptr<CallTemplate>> templates_;  // used last first
  std::string rules_;  // the rewrites that made them: generation of the database, and query
  size_t num_linked_ = 0, num_layouts_ = 0, num_rewritten_ = 0;
};

}  // namespace hybridnet
