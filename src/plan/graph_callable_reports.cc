// Reports of a graph function: memory, counts, and texts for people.
#include "plan/graph_callable.h"

namespace hybridnet {
namespace {

int64_t memory_of(const Compilation& compiled) {
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

int64_t GraphCallable::memory_bytes(std::span<const NDArray> inputs, std::span<const uint8_t> wants) {
  if (is_cut_ || is_cut_for_gradient_ || has_sparse(inputs)) return memory_of_parts();
  const Ref<Compilation> compiled = compilation_for(inputs, wants, !wants.empty());
  switch (compiled->form) {
    case Compilation::Form::kCutAtBranches:
      return cut_at(compiled->unequal)->memory_of_parts();
    case Compilation::Form::kBySteps:
      return memory_of_parts();
    default:
      return memory_of(*compiled);
  }
}

int64_t GraphCallable::memory_of_parts() {
  int64_t bytes = 0;
  for (const Ref<GraphCallable>& part : parts()) bytes += part->memory_of_parts();
  const std::lock_guard lock(mutex_);
  return compiled_.empty() ? bytes : bytes + memory_of(*compiled_.front());
}

SegmentedGraph& GraphCallable::shown_segments() {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [use, graph] : segments_)
      if (std::get<2>(use).empty()) return *graph;
  }
  return segments(false, false);
}

size_t GraphCallable::num_segments() { return is_cut_ ? shown_segments().num_segments() : 1; }

GraphCallable::Counts GraphCallable::counts() {
  Counts all{0, 0, 0, 0};
  for (const Ref<GraphCallable>& part : parts()) {
    const Counts more = part->counts();
    all = {all.plans + more.plans, all.linked + more.linked, all.layouts + more.layouts,
           all.rewritten + more.rewritten};
  }
  const std::lock_guard lock(mutex_);
  std::set<const Plan::Linked*> plans;
  for (const Ref<Compilation>& call : compiled_)
    if (call->forward) plans.insert(call->forward->linked().get());
  return {all.plans + plans.size(), all.linked + compiler_.num_linked(), all.layouts + compiler_.num_layouts(),
          all.rewritten + compiler_.num_rewritten()};
}

bool GraphCallable::is_torn() {
  const std::lock_guard lock(mutex_);
  return std::any_of(compiled_.begin(), compiled_.end(),
                     [](const Ref<Compilation>& call) { return call->forward && call->forward->is_torn(); });
}

void GraphCallable::forget_torn() {
  const std::lock_guard lock(mutex_);
  for (const Ref<Compilation>& call : compiled_)
    if (call->forward) call->forward->forget_torn();
}

// Names and specs of the first inputs, and how many more there are.
std::string GraphCallable::inputs_text(const CallSignature& signature) const {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, signature.inputs.size()); ++i)
    text += (i > 0 ? ", " : "") + definition_.inputs[i]->name + " " + signature.inputs[i].str();
  if (signature.inputs.size() > kShown)
    text += ", and " + std::to_string(signature.inputs.size() - kShown) + " more inputs";
  return text;
}

std::string GraphCallable::sparse_segments_text() {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [use, graph] : segments_) {
    if (std::get<2>(use).empty()) continue;
    text += "for inputs in storages (";
    for (size_t i = 0; i < std::get<2>(use).size(); ++i)
      text += std::string(i > 0 ? ", " : "") + storage_type_name(std::get<2>(use)[i]);
    text += "):\n" + graph->text();
  }
  return text;
}

std::string GraphCallable::summary() {
  if (is_cut_) {
    const SegmentedGraph& graph = shown_segments();
    std::string text = options_.name + ": " + std::to_string(graph.num_segments()) + " segments\n" + graph.text();
    for (const Ref<GraphCallable>& part : parts()) text += part->summary();
    return text;
  }
  std::string text = options_.name + ": " + std::to_string(counts().plans) + " plans\n" + sparse_segments_text();
  for (const Ref<GraphCallable>& part : parts()) text += part->summary();
  auto line = [&](const char* what, const Plan& plan) {
    text += std::string("  ") + what + ": " + std::to_string(plan.num_instructions()) + " instructions, arena " +
            std::to_string(plan.arena_bytes()) + " bytes, kept for backward " + std::to_string(plan.residual_bytes()) +
            " bytes, about " + std::to_string(plan.cost_ns() / 1000) + " us\n";
  };
  const std::lock_guard lock(mutex_);
  for (const Ref<Compilation>& call : compiled_) {
    if (!call->forward) continue;
    text +=
        std::string(call->signature.train ? " training" : " prediction") + ": " + inputs_text(call->signature) + "\n";
    line("forward", *call->forward);
    if (call->backward) line("backward", *call->backward);
    text += call->report.text();
  }
  return text;
}

Ref<Compilation> GraphCallable::most_recent() {
  const std::lock_guard lock(mutex_);
  for (const Ref<Compilation>& call : compiled_)
    if (call->form != Compilation::Form::kBySteps) return call;
  return nullptr;
}

std::string GraphCallable::plan_text() {
  if (is_cut_) {
    std::string text = shown_segments().text();
    for (const Ref<GraphCallable>& part : parts()) text += part->plan_text();
    return text;
  }
  const Ref<Compilation> call = most_recent();
  if (!call) {
    std::string text = sparse_segments_text();
    for (const Ref<GraphCallable>& part : parts()) text += part->plan_text();
    return text;
  }
  if (call->form == Compilation::Form::kCutAtBranches) return cut_at(call->unequal)->plan_text();
  const char* kind = call->signature.train ? ", training: " : ", prediction: ";
  std::string text = options_.name + kind + inputs_text(call->signature) + "\n";
  text += "forward: " + call->forward->text();
  if (call->backward) text += "backward: " + call->backward->text();
  return text;
}

std::vector<std::pair<std::string, std::string>> GraphCallable::fired_rewrites() {
  std::vector<std::pair<std::string, std::string>> names;
  const Ref<Compilation> call = most_recent();
  if (!call) return names;
  for (const PassReport::Line& line : call->report.lines())
    if (line.fired > 0) names.emplace_back(line.name, line.stage);
  return names;
}

std::string GraphCallable::graph_text() {
  if (is_cut_) {
    std::string text = shown_segments().text();
    for (const Ref<GraphCallable>& part : parts()) text += part->options_.name + ":\n" + part->graph_text();
    return text;
  }
  const Ref<Compilation> call = most_recent();
  if (!call) {
    std::string text = sparse_segments_text();
    for (const Ref<GraphCallable>& part : parts()) text += part->options_.name + ":\n" + part->graph_text();
    return text;
  }
  if (call->form == Compilation::Form::kCutAtBranches) return cut_at(call->unequal)->graph_text();
  const std::lock_guard lock(mutex_);
  return compiler_.graph_text(call->signature);
}

}  // namespace hybridnet
