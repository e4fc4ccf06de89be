#include "graph/rule_words.h"

#include "graph/arithmetic.h"

namespace hybridnet {

std::vector<std::string> operators_of(const std::string& word) {
  const Arithmetic* arithmetic = find_arithmetic(word);
  if (arithmetic == nullptr) return {op_registry().at(word).name};
  std::vector<std::string> names;
  for (const std::string_view each :
       {arithmetic->equal_shapes, arithmetic->broadcast, arithmetic->number_right, arithmetic->number_left})
    if (!each.empty()) names.emplace_back(each);
  return names;
}

Stage stage_named(const std::string& name) {
  const std::shared_ptr<const Pipeline> pipeline = RewriteDatabase::current();
  std::string known;
  for (const StageInfo& stage : pipeline->stages()) {
    if (stage.stage == Stage::kOwn) continue;
    if (stage.name == name) return stage.stage;
    known += (known.empty() ? "" : ", ") + stage.name;
  }
  throw ValueError({.input = "db", .expected = "a stage of the pipeline: " + known, .given = "'" + name + "'"});
}

}  // namespace hybridnet
