// Reports of a graph function: memory, counts, and texts for people.
#include "plan/graph_function.h"

namespace hybridnet {
namespace {

int64_t memory_of(const CompiledCall& compiled) {
  if (!compiled.forward) return 0;  // its parts are counted separately
  const Plan& forward = *compiled.forward;
  int64_t bytes = forward.arena_bytes() + forward.residual_bytes();
  for (const Plan::OutputInfo& output : forward.outputs()) bytes += output.spec.bytes();
  if (!compiled.backward) return bytes;
  bytes += compiled.backward->arena_bytes();
  for (const BackwardInput& source : compiled.sources)
    if (source.kind == BackwardInput::Kind::kHead)
      bytes += forward.outputs()[static_cast<size_t>(source.index)].spec.bytes();
  return bytes;
}

}  // namespace

int64_t GraphFunction::memory_bytes(std::span<const NDArray> inputs, std::span<const uint8_t> wants) {
  if (is_cut_ || is_cut_for_gradient_ || has_sparse(inputs)) return memory_of_parts();
  const Ref<CompiledCall> compiled = compiled_for(inputs, wants, !wants.empty());
  return compiled->unequal.empty() ? memory_of(*compiled) : cut_at(compiled->unequal)->memory_of_parts();
}

int64_t GraphFunction::memory_of_parts() {
  int64_t bytes = 0;
  for (const Ref<GraphFunction>& part : parts()) bytes += part->memory_of_parts();
  const std::lock_guard lock(mutex_);
  return compiled_.empty() ? bytes : bytes + memory_of(*compiled_.front());
}

size_t GraphFunction::num_segments() { return is_cut_ ? segments(false).num_segments() : 1; }

GraphFunction::Counts GraphFunction::counts() {
  Counts all{0, 0, 0, 0};
  for (const Ref<GraphFunction>& part : parts()) {
    const Counts more = part->counts();
    all = {all.plans + more.plans, all.linked + more.linked, all.layouts + more.layouts,
           all.rewritten + more.rewritten};
  }
  const std::lock_guard lock(mutex_);
  std::set<const Plan::Linked*> plans;
  for (const Ref<CompiledCall>& call : compiled_)
    if (call->forward) plans.insert(call->forward->linked().get());
  return {all.plans + plans.size(), all.linked + compiler_.num_linked(), all.layouts + compiler_.num_layouts(),
          all.rewritten + compiler_.num_rewritten()};
}

bool GraphFunction::is_torn() {
  const std::lock_guard lock(mutex_);
  return std::any_of(compiled_.begin(), compiled_.end(),
                     [](const Ref<CompiledCall>& call) { return call->forward && call->forward->is_torn(); });
}

void GraphFunction::forget_torn() {
  const std::lock_guard lock(mutex_);
  for (const Ref<CompiledCall>& call : compiled_)
    if (call->forward) call->forward->forget_torn();
}

// Names and specs of the first inputs, and how many more there are.
std::string GraphFunction::inputs_text(const CallSignature& signature) const {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, signature.inputs.size()); ++i)
    text += (i > 0 ? ", " : "") + definition_.inputs[i]->name + " " + signature.inputs[i].str();
  if (signature.inputs.size() > kShown)
    text += ", and " + std::to_string(signature.inputs.size() - kShown) + " more inputs";
  return text;
}

std::string GraphFunction::sparse_segments_text() {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [use, graph] : segments_) {
    if (use.second.empty()) continue;
    text += "for inputs in storages (";
    for (size_t i = 0; i < use.second.size(); ++i)
      text += std::string(i > 0 ? ", " : "") + storage_type_name(use.second[i]);
    text += "):\n" + graph->text();
  }
  return text;
}

std::string GraphFunction::summary() {
  if (is_cut_) {
    const SegmentedGraph& graph = segments(false);
    std::string text = options_.name + ": " + std::to_string(graph.num_segments()) + " segments\n" + graph.text();
    for (const Ref<GraphFunction>& part : parts()) text += part->summary();
    return text;
  }
  std::string text = options_.name + ": " + std::to_string(counts().plans) + " plans\n" + sparse_segments_text();
  for (const Ref<GraphFunction>& part : parts()) text += part->summary();
  auto line = [&](const char* what, const Plan& plan) {
    text += std::string("  ") + what + ": " + std::to_string(plan.num_instructions()) + " instructions, arena " +
            std::to_string(plan.arena_bytes()) + " bytes, kept for backward " + std::to_string(plan.residual_bytes()) +
            " bytes, about " + std::to_string(plan.cost_ns() / 1000) + " us\n";
  };
  const std::lock_guard lock(mutex_);
  for (const Ref<CompiledCall>& call : compiled_) {
    if (!call->forward) continue;
    text +=
        std::string(call->signature.train ? " training" : " prediction") + ": " + inputs_text(call->signature) + "\n";
    line("forward", *call->forward);
    if (call->backward) line("backward", *call->backward);
    text += call->report.text();
  }
  return text;
}

Ref<CompiledCall> GraphFunction::most_recent() {
  const std::lock_guard lock(mutex_);
  return compiled_.empty() ? nullptr : compiled_.front();
}

std::string GraphFunction::plan_text() {
  if (is_cut_) {
    std::string text = segments(false).text();
    for (const Ref<GraphFunction>& part : parts()) text += part->plan_text();
    return text;
  }
  const Ref<CompiledCall> call = most_recent();
  if (!call) {
    std::string text = sparse_segments_text();
    for (const Ref<GraphFunction>& part : parts()) text += part->plan_text();
    return text;
  }
  if (!call->unequal.empty()) return cut_at(call->unequal)->plan_text();
  const char* kind = call->signature.train ? ", training: " : ", prediction: ";
  std::string text = options_.name + kind + inputs_text(call->signature) + "\n";
  text += "forward: " + call->forward->text();
  if (call->backward) text += "backward: " + call->backward->text();
  return text;
}

std::vector<std::string> GraphFunction::fired_rewrites() {
  std::vector<std::string> names;
  const Ref<CompiledCall> call = most_recent();
  if (!call) return names;
  for (const PassReport::Line& line : call->report.lines())
    if (line.fired > 0) names.push_back(line.name);
  return names;
}

std::string GraphFunction::graph_text() {
  if (is_cut_) {
    std::string text = segments(false).text();
    for (const Ref<GraphFunction>& part : parts()) text += part->options_.name + ":\n" + part->graph_text();
    return text;
  }
  const Ref<CompiledCall> call = most_recent();
  if (!call) {
    std::string text = sparse_segments_text();
    for (const Ref<GraphFunction>& part : parts()) text += part->options_.name + ":\n" + part->graph_text();
    return text;
  }
  if (!call->unequal.empty()) return cut_at(call->unequal)->graph_text();
  const std::lock_guard lock(mutex_);
  return compiler_.graph_text(call->signature);
}

}  // namespace hybridnet
