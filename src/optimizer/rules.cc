#include "optimizer/rules.h"

#include <algorithm>
#include <cctype>

namespace hybridnet::optimizer {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

std::string Rule::attribute_of(const std::string& field) const {
  // The attribute names of MXNet's classes.
  if (field == "learning_rate") return "lr";
  if (field == "eps" && name != "LARS") return "float_stable_eps";
  return field;
}

bool Rule::is_variable(std::string_view field) const {
  return std::find(variables.begin(), variables.end(), field) != variables.end();
}

Settings Rule::parse(const std::vector<std::pair<std::string, std::string>>& texts) const {
  for (const auto& [key, text] : texts)
    if (is_variable(key))
      throw ParamError(
          {.op = name, .input = key, .message = "cannot be set: each step changes it, and saved states contain it"});
  return schema.parse(texts, name, false)->as<Settings>();
}

UpdateProgram Rule::program(const Settings& settings, UpdateSubject subject, bool allows_native) const {
  UpdateBuilder builder(std::move(subject), native_master && allows_native);
  build(settings, builder);
  return builder.finish();
}

std::vector<double> Rule::rates_of(Settings& settings, const UpdateItem& item) const {
  if (rates) return rates(settings, item);
  std::vector<double> row = {item.lr, item.wd, settings.rescale_grad, static_cast<double>(item.t)};
  row.resize(columns.size());
  return row;
}

const RuleList& rules() {
  static const RuleList list = [] {
    RuleList made;
    add_descent_rules(made);
    add_large_batch_rules(made);
    add_moment_rules(made);
    add_adaptive_rules(made);
    return made;
  }();
  return list;
}

const Rule& rule(std::string_view name) {
  std::string known;
  for (const auto& each : rules()) {
    if (lower(each->name) == lower(name)) return *each;
    known += (known.empty() ? "" : ", ") + lower(each->name);
  }
  throw ValueError({.input = "optimizer", .expected = "one of " + known, .given = "'" + std::string(name) + "'"});
}

std::unique_ptr<Rule> make_rule(const char* name, const char* doc, double learning_rate) {
  auto made = std::make_unique<Rule>();
  made->name = name;
  made->doc = doc;
  SettingsSchema& s = made->schema;
  s.field("learning_rate", &Settings::learning_rate).default_value(learning_rate).doc("Factor of each step.");
  s.field("wd", &Settings::wd).default_value(0.0).doc("Weight decay.");
  s.field("rescale_grad", &Settings::rescale_grad)
      .default_value(1.0)
      .doc("Factor of the gradient, in addition to 1 / batch size.");
  s.field("clip_gradient", &Settings::clip_gradient)
      .none_by_default()
      .doc("The rescaled gradient is clipped to [-clip_gradient, clip_gradient].");
  s.field("multi_precision", &Settings::multi_precision)
      .default_value(false)
      .doc("Whether float16 and bfloat16 weights are updated by means of a float32 copy.");
  s.field("begin_num_update", &Settings::begin_num_update)
      .default_value(0)
      .range(-9e15, 9e15)
      .doc("Initial value of the update count.");
  made->states = no_state;
  return made;
}

StateLayout no_state(const Settings&) { return {.items = {std::nullopt}}; }
StateLayout one_state(const char* name) { return {.items = {StateSpec{name}}}; }
StateLayout tuple_of(std::initializer_list<const char*> names) {
  StateLayout layout{.is_tuple = true, .items = {}};
  for (const char* name : names) layout.items.emplace_back(StateSpec{name});
  return layout;
}

UpdateBuilder::Attributes with_clip(const Settings& s, UpdateBuilder::Attributes attributes, const char* name) {
  if (s.clip_gradient && *s.clip_gradient != 0) attributes.emplace_back(name, AttrValue(*s.clip_gradient));
  return attributes;
}

}  // namespace hybridnet::optimizer
