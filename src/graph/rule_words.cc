#include "graph/rule_words.h"

#include "graph/arithmetic.h"

namespace hybridnet {

std::vector<std::string> operators_of(const std::string& word) {
  const Arithmetic* arithmetic = find_arithmetic(word);
  if (arithmetic == nullptr) return {op_registry().at(word).name};
  const std::vector<std::string_view> names = arithmetic->operators();
  return {names.begin(), names.end()};
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
