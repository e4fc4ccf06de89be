// What a pipeline is made of: its rows, the query that chooses among them, and the report of what they did.
#include <algorithm>
#include <cstdio>

#include "base/edit_distance.h"
#include "hybridnet/pass.h"

namespace hybridnet {
namespace {

bool has_trait(const Op& op, Trait trait) {
  switch (trait) {
    case Trait::kAny:
      return true;
    case Trait::kIdentity:
      return static_cast<bool>(op.is_identity);
    case Trait::kView:
      return op.is_view;
    case Trait::kPointwise:
      return op.pointwise != nullptr;
    case Trait::kCommutative:
      return op.commutative;
    case Trait::kImage:
      return !op.image_inputs.empty();
  }
  return false;
}

[[noreturn]] void throw_wrong_row(const Rewrite& row, std::string message, std::string fix) {
  throw ParamError(
      {.op = "pipeline", .input = "row '" + row.name + "'", .message = std::move(message), .fix = std::move(fix)});
}

// Three letters of difference are too many for one word to be meant by another.
constexpr size_t kLargestDistance = 3;

}  // namespace

bool Rewrite::tracks(const Op& op) const {
  if (ops.empty() && traits.empty()) return true;
  return std::find(ops.begin(), ops.end(), op.name) != ops.end() ||
         std::any_of(traits.begin(), traits.end(), [&](Trait t) { return has_trait(op, t); });
}

bool Query::accepts(const Rewrite& rewrite) const {
  auto has = [&](const std::string& tag) { return rewrite.has_tag(tag); };
  return std::any_of(include.begin(), include.end(), has) && std::all_of(require.begin(), require.end(), has) &&
         std::none_of(exclude.begin(), exclude.end(), has);
}

Query Query::parse(std::string_view text) {
  Query query;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (item.empty()) continue;
    const char sign = item.front();
    if (sign == '-' || sign == '&' || sign == '+') item.remove_prefix(1);
    if (item.empty()) {
      throw ParamError({.input = "passes",
                        .expected = "words such as 'fast_run,-fusion,&loop'",
                        .given = std::string("a lone '") + sign + "'"});
    }
    if (item == "debug" && (sign != '-' && sign != '&')) {
      query.debug = true;
      item = "fast_run";
    }
    (sign == '-' ? query.exclude : sign == '&' ? query.require : query.include).emplace_back(item);
  }
  if (query.include.empty()) query.include.emplace_back("fast_run");
  return query;
}

Query& Query::excluding(const std::vector<std::string>& tags) {
  exclude.insert(exclude.end(), tags.begin(), tags.end());
  return *this;
}

// ---- the report
void PassReport::add(std::string_view name, std::string_view place, const Line& more) {
  auto line = std::find_if(lines_.begin(), lines_.end(), [&](const Line& l) { return l.name == name; });
  if (line == lines_.end()) line = lines_.insert(line, Line{.name = std::string(name)});
  line->fired += more.fired;
  line->rejected += more.rejected;
  line->microseconds += more.microseconds;
  if (more.fired == 0 || place.empty()) return;
  auto body = std::find_if(line->bodies.begin(), line->bodies.end(), [&](const auto& b) { return b.first == place; });
  if (body == line->bodies.end()) body = line->bodies.insert(body, {std::string(place), 0});
  body->second += more.fired;
}

std::string PassReport::text() const {
  std::vector<const Line*> fired;
  double idle_microseconds = 0;
  for (const Line& line : lines_) {
    if (line.fired > 0 || line.rejected > 0)
      fired.push_back(&line);
    else
      idle_microseconds += line.microseconds;
  }
  std::stable_sort(fired.begin(), fired.end(),
                   [](const Line* a, const Line* b) { return a->microseconds > b->microseconds; });
  std::string text;
  char row[200];
  for (const Line* line : fired) {
    std::snprintf(row, sizeof(row), "    %-28s fired %6lld  %10.1f us", line->name.c_str(),
                  static_cast<long long>(line->fired), line->microseconds);
    text += row;
    if (line->rejected > 0) text += ", " + std::to_string(line->rejected) + " undone";
    text += "\n";
    for (const auto& [place, count] : line->bodies)
      text += "      " + std::to_string(count) + " in the " + place + "\n";
  }
  if (const size_t idle = lines_.size() - fired.size(); idle > 0) {
    std::snprintf(row, sizeof(row), "    %-28s              %10.1f us\n",
                  (std::to_string(idle) + (idle == 1 ? " rule" : " rules") + " did not fire").c_str(),
                  idle_microseconds);
    text += row;
  }
  for (const std::string& warning : warnings_) text += "    warning: " + warning + "\n";
  return text;
}

// ---- the table
Pipeline::Pipeline(std::vector<StageInfo> stages, std::vector<Rewrite> rows)
    : stages_(std::move(stages)), rows_(std::move(rows)) {
  std::set<std::string> names, tags;
  for (Rewrite& row : rows_) {
    if (row.rule.empty()) row.rule = row.name;
    const StageInfo& stage = info(row.stage);
    const bool in_order = &row == rows_.data() || (&row)[-1].stage <= row.stage;
    if (!in_order) throw_wrong_row(row, "it stands behind a row of a later stage", "move it up to its stage");
    if (!row.local == !row.pass) throw_wrong_row(row, "it needs a local rule or a pass, and not both", "give one");
    if (row.pass && stage.equilibrium)
      throw_wrong_row(row, "stage '" + stage.name + "' runs local rules to equilibrium, and this is a pass",
                      "choose a stage whose rows run one after the other");
    for (const std::string& before : row.after)
      if (names.count(before) == 0)
        throw_wrong_row(row, "it needs '" + before + "' to stand before it, which does not", "reorder the rows");
    if (tags.count(row.name) != 0 || !names.insert(row.name).second)
      throw_wrong_row(row, "its name is taken, by a row or as a tag", "choose another name");
    for (const std::string& tag : row.tags) {
      if (names.count(tag) != 0)
        throw_wrong_row(row, "its tag '" + tag + "' is the name of a row", "choose another tag");
      tags.insert(tag);
    }
  }
}

const StageInfo& Pipeline::info(Stage stage) const {
  for (const StageInfo& info : stages_)
    if (info.stage == stage) return info;
  throw ParamError({.op = "pipeline",
                    .input = "stage",
                    .message = "stage number " + std::to_string(static_cast<int>(stage)) + " is not described",
                    .fix = "add it to the stages of the pipeline"});
}

const Rewrite& Pipeline::at(std::string_view name) const {
  for (const Rewrite& row : rows_)
    if (row.name == name) return row;
  check({.include = {std::string(name)}}, "rule");
  throw ParamError({.input = "rule", .expected = "the name of a row of the pipeline", .given = std::string(name)});
}

void Pipeline::check(const Query& query, std::string_view source) const {
  std::set<std::string> words{"debug"};
  for (const Rewrite& row : rows_) {
    words.insert({row.name, row.rule});
    words.insert(row.tags.begin(), row.tags.end());
  }
  for (const auto* list : {&query.include, &query.exclude, &query.require}) {
    for (const std::string& word : *list) {
      if (words.count(word) != 0) continue;
      const std::string* nearest = nullptr;
      size_t distance = kLargestDistance + 1;
      for (const std::string& known : words)
        if (const size_t d = edit_distance(known, word); d < distance) distance = d, nearest = &known;
      throw ParamError(
          {.input = std::string(source),
           .expected = "names, rules and tags of the pipeline (docs/graph-passes.md)",
           .given = "'" + word + "'",
           .fix = nearest ? "did you mean '" + *nearest + "'?" : "see the tables in docs/graph-passes.md"});
    }
  }
}

}  // namespace hybridnet
