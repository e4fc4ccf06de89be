// The parts of a pipeline: its rows, the query that chooses among them, and the report on the rows that ran.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "base/edit_distance.h"
#include "graph/arithmetic.h"
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
    case Trait::kActivation:
      return static_cast<bool>(op.layer_activation);
  }
  return false;
}

[[noreturn]] void throw_wrong_row(const Rewrite& row, std::string message, std::string fix) {
  throw ParamError(
      {.op = "pipeline", .input = "row '" + row.name + "'", .message = std::move(message), .fix = std::move(fix)});
}

std::string position_text(double position) {
  char text[40];
  std::snprintf(text, sizeof(text), "%g", position);
  return text;
}

// The largest edit distance at which a known word is suggested for an unknown one.
constexpr size_t kLargestDistance = 3;

}  // namespace

bool Rewrite::tracks(const Op& op) const {
  if (ops.empty() && traits.empty()) return true;
  return std::find(ops.begin(), ops.end(), op.name) != ops.end() ||
         std::any_of(traits.begin(), traits.end(), [&](Trait t) { return has_trait(op, t); });
}

bool Query::accepts(const Rewrite& rewrite) const {
  if (rewrite.exactness == Exactness::kUnsafe &&
      std::find(include.begin(), include.end(), "fast_math") == include.end())
    return false;
  auto has = [&](const std::string& tag) { return rewrite.has_tag(tag); };
  return std::any_of(include.begin(), include.end(), has) && std::all_of(require.begin(), require.end(), has) &&
         std::none_of(exclude.begin(), exclude.end(), has);
}

const Query& Query::in(const std::string& stage) const {
  const auto found = subqueries.find(stage);
  return found == subqueries.end() ? *this : found->second;
}

void Query::add_word(std::string_view word) {
  const char sign = word.front();
  if (sign == '-' || sign == '&' || sign == '+') word.remove_prefix(1);
  if (word.empty()) {
    throw ParamError({.input = "passes",
                      .expected = "words such as 'fast_run,-fusion,&loop'",
                      .given = std::string("a lone '") + sign + "'"});
  }
  if (word.substr(0, 2) == "<=") {
    const std::string number(word.substr(2));
    char* end = nullptr;
    position_cutoff = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != '\0' || sign == '-' || sign == '&')
      throw ParamError(
          {.input = "passes", .expected = "a position such as '<=30'", .given = "'" + std::string(word) + "'"});
    return;
  }
  if (word == "debug" && sign != '-' && sign != '&') {
    debug = true;
    word = "fast_run";
  }
  if (sign != '-' && sign != '&' && word != "fast_math") chooses = true;  // fast_math allows rows, but chooses none
  (sign == '-' ? exclude : sign == '&' ? require : include).emplace_back(word);
}

Query Query::parse(std::string_view text) {
  Query query;
  std::vector<std::pair<std::string, std::string_view>> of_stages;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (item.empty()) continue;
    if (const size_t colon = item.find(':'); colon != std::string_view::npos && colon + 1 < item.size()) {
      of_stages.emplace_back(item.substr(0, colon), item.substr(colon + 1));
      continue;
    }
    query.add_word(item);
  }
  if (!query.chooses) query.include.emplace_back("fast_run");
  const Query around = query;
  for (const auto& [stage, word] : of_stages) {
    Query& inner = query.subqueries.try_emplace(stage, around).first->second;
    const bool first_include = word.front() != '-' && word.front() != '&' && inner.include == around.include;
    if (first_include) inner.include.clear();
    inner.add_word(word);
  }
  return query;
}

std::string Query::text() const {
  std::string text;
  auto add = [&](const std::string& word) { text += (text.empty() ? "" : ",") + word; };
  auto add_words = [&](const Query& query, const std::string& prefix, const Query* around) {
    auto known = [&](const std::vector<std::string> Query::*list, const std::string& word) {
      return around && std::find((around->*list).begin(), (around->*list).end(), word) != (around->*list).end();
    };
    if (!around || query.include != around->include)
      for (const std::string& word : query.include) add(prefix + word);
    for (const std::string& word : query.exclude)
      if (!known(&Query::exclude, word)) add(prefix + "-" + word);
    for (const std::string& word : query.require)
      if (!known(&Query::require, word)) add(prefix + "&" + word);
  };
  add_words(*this, "", nullptr);
  if (debug) add("debug");
  if (position_cutoff < std::numeric_limits<double>::infinity()) {
    char number[40];
    std::snprintf(number, sizeof(number), "<=%.17g", position_cutoff);
    add(number);
  }
  for (const auto& [stage, query] : subqueries) add_words(query, stage + ":", this);
  return text;
}

Query& Query::excluding(const std::vector<std::string>& tags) {
  exclude.insert(exclude.end(), tags.begin(), tags.end());
  return *this;
}

Query& Query::including(const std::vector<std::string>& tags) {
  include.insert(include.end(), tags.begin(), tags.end());
  for (auto& [stage, query] : subqueries) query.including(tags);
  return *this;
}

// ---- the report
void PassReport::add(std::string_view name, std::string_view stage, std::string_view place, const Line& more) {
  auto line =
      std::find_if(lines_.begin(), lines_.end(), [&](const Line& l) { return l.name == name && l.stage == stage; });
  if (line == lines_.end()) line = lines_.insert(line, Line{.name = std::string(name), .stage = std::string(stage)});
  line->tried += more.tried;
  line->fired += more.fired;
  line->failed += more.failed;
  line->rejected += more.rejected;
  line->made += more.made;
  line->dropped += more.dropped;
  line->microseconds += more.microseconds;
  if (more.fired == 0 || place.empty()) return;
  auto body = std::find_if(line->bodies.begin(), line->bodies.end(), [&](const auto& b) { return b.first == place; });
  if (body == line->bodies.end()) body = line->bodies.insert(body, {std::string(place), 0});
  body->second += more.fired;
}

void PassReport::add_feature(std::string_view feature, std::string_view callback, double microseconds) {
  auto line = std::find_if(features_.begin(), features_.end(),
                           [&](const FeatureLine& l) { return l.feature == feature && l.callback == callback; });
  if (line == features_.end()) line = features_.insert(line, {std::string(feature), std::string(callback)});
  ++line->calls;
  line->microseconds += microseconds;
}

std::string PassReport::text() const {
  std::vector<const Line*> fired;
  double idle_microseconds = 0;
  for (const Line& line : lines_) {
    if (line.fired > 0 || line.rejected > 0 || line.failed > 0)
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
    if (!line->stage.empty()) text += " in " + line->stage;
    text += ", tried " + std::to_string(line->tried) + ", nodes +" + std::to_string(line->made) + " -" +
            std::to_string(line->dropped);
    if (line->failed > 0) text += ", " + std::to_string(line->failed) + " failed";
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
  std::vector<FeatureLine> features = features_;
  std::stable_sort(features.begin(), features.end(),
                   [](const FeatureLine& a, const FeatureLine& b) { return a.microseconds > b.microseconds; });
  for (const FeatureLine& line : features) {
    std::snprintf(row, sizeof(row), "    %-28s called %5lld  %10.1f us\n",
                  ("feature " + line.feature + "." + line.callback).c_str(), static_cast<long long>(line.calls),
                  line.microseconds);
    text += row;
  }
  for (const std::string& warning : warnings_) text += "    warning: " + warning + "\n";
  return text;
}

// ---- the table
namespace {

// Stages of the forward graph whose rules run again in the joint graph, and their stages there.
constexpr std::pair<Stage, Stage> kTwins[] = {{Stage::kClean, Stage::kCleanJoint},
                                              {Stage::kCanonicalize, Stage::kCanonicalizeJoint},
                                              {Stage::kLoops, Stage::kLoopsJoint}};

// Returns the stage under which the table lists the rows of this stage.
Stage listed_under(Stage stage) {
  for (const auto& [forward, joint] : kTwins)
    if (stage == joint) return forward;
  return stage;
}

void check_row(const Rewrite& row, const StageInfo& stage) {
  if (!row.local == !row.pass) throw_wrong_row(row, "it needs a local rule or a pass, and not both", "give one");
  const bool behind = stage.position >= kInPlacePosition;
  if (row.in_place && !behind)
    throw_wrong_row(row, "it may write over its inputs, and stands at position " + position_text(stage.position),
                    "give it a position of 50 or more: in front of that, readers of what it destroys may still come");
  if (!(stage.position >= 0 && stage.position < kEndPosition))
    throw_wrong_row(row, "its position is " + position_text(stage.position), "choose one from 0 up to 100");
  if (row.phase != Phase::kSweep && !stage.equilibrium)
    throw_wrong_row(row, "stage '" + stage.name + "' runs its rows one after the other, and has no sweeps",
                    "leave out cleanup and final, or choose a stage that runs to equilibrium");
}

void check_stages(const Rewrite& row) {
  if (row.stages.empty()) throw_wrong_row(row, "it names no stage", "list the stages in which it runs");
  if (std::adjacent_find(row.stages.begin(), row.stages.end(), std::greater_equal<>()) != row.stages.end())
    throw_wrong_row(row, "its stages are out of order", "list each once, in the order of the pipeline");
  for (const auto& [stage, difference] : row.differences)
    if (std::find(row.stages.begin() + 1, row.stages.end(), stage) == row.stages.end())
      throw_wrong_row(row, "it is different in a stage that is none of its later stages", "add the stage");
}

void check_names(const std::vector<Rewrite>& rows) {
  std::set<std::string> names, tags;
  for (const Rewrite& row : rows) {
    if (tags.count(row.name) != 0 || !names.insert(row.name).second)
      throw_wrong_row(row, "its name is taken, by a row or as a tag", "choose another name");
    for (const std::string& tag : row.tags) {
      if (names.count(tag) != 0)
        throw_wrong_row(row, "its tag '" + tag + "' is the name of a row", "choose another tag");
      tags.insert(tag);
    }
  }
}

// Replaces words such as "mul" by the operators of this arithmetic.
std::vector<std::string> operators_in(const std::vector<std::string>& words) {
  std::vector<std::string> ops;
  for (const std::string& word : words) {
    const Arithmetic* arithmetic = find_arithmetic(word);
    const std::vector<std::string_view> names =
        arithmetic == nullptr ? std::vector<std::string_view>{word} : arithmetic->operators();
    ops.insert(ops.end(), names.begin(), names.end());
  }
  return ops;
}

// Returns the row as it stands in one of its stages.
Rewrite in_stage(const Rewrite& row, Stage stage) {
  Rewrite here = row;
  here.stages = {stage};
  here.differences.clear();
  if (stage != row.stage()) here.after.clear(), here.why.clear();
  if (const auto found = row.differences.find(stage); found != row.differences.end()) {
    const Difference& difference = found->second;
    if (difference.local) here.local = difference.local;
    if (difference.pass) here.pass = difference.pass;
    if (!difference.ops.empty()) here.ops = difference.ops;
    for (const std::string& tag : difference.without) here.tags.erase(tag);
    here.after = difference.after;
    here.why = difference.why;
  }
  here.ops = operators_in(here.ops);
  return here;
}

// Moves rows for which this is a later stage behind the rows of their `after`.
void move_behind(std::vector<Rewrite>& here, const std::set<std::string>& moved) {
  for (size_t i = here.size(); i-- > 0;) {
    if (moved.count(here[i].name) == 0) continue;
    size_t last = i;
    for (size_t j = i + 1; j < here.size(); ++j)
      if (std::find(here[i].after.begin(), here[i].after.end(), here[j].name) != here[i].after.end()) last = j;
    const auto at = here.begin() + static_cast<std::ptrdiff_t>(i);
    std::rotate(at, at + 1, here.begin() + static_cast<std::ptrdiff_t>(last) + 1);
  }
}

// Returns the rows of the table that stand in this stage, in their order.
std::vector<Rewrite> rows_in(const std::vector<Rewrite>& table, const StageInfo& stage) {
  std::vector<Rewrite> here;
  std::set<std::string> again;
  for (const Rewrite& row : table) {
    if (std::find(row.stages.begin(), row.stages.end(), stage.stage) == row.stages.end()) continue;
    if (stage.stage == Stage::kOwn && row.name != stage.name) continue;
    here.push_back(in_stage(row, stage.stage));
    if (stage.stage != row.stage()) again.insert(row.name);
  }
  move_behind(here, again);
  std::stable_sort(here.begin(), here.end(),
                   [](const Rewrite& a, const Rewrite& b) { return a.position < b.position; });
  return here;
}

}  // namespace

Pipeline::Pipeline(std::vector<StageInfo> stages, const std::vector<Rewrite>& table) : stages_(std::move(stages)) {
  Stage last = stages_.empty() ? Stage::kOwn : stages_.front().stage;
  for (const Rewrite& row : table) {
    check_stages(row);
    if (row.stage() == Stage::kOwn) {
      stages_.push_back({.stage = Stage::kOwn, .position = row.position, .name = row.name, .what = row.what});
      continue;
    }
    for (const Stage stage : row.stages) info(stage);  // throws for an unknown stage
    if (row.position != 0) continue;
    const Stage now = listed_under(row.stage());
    if (now < last) throw_wrong_row(row, "it stands behind a row of a later stage", "move it up to its stage");
    last = now;
  }
  check_names(table);
  std::stable_sort(stages_.begin(), stages_.end(), [](const StageInfo& a, const StageInfo& b) {
    return a.position != b.position ? a.position < b.position
                                    : a.stage == Stage::kOwn && b.stage == Stage::kOwn && a.name < b.name;
  });
  std::vector<size_t> ends;
  for (const StageInfo& stage : stages_) {
    for (Rewrite& row : rows_in(table, stage)) {
      if (row.exactness == Exactness::kRounding) row.tags.insert("rounding");  // "-rounding": the bits of the operators
      rows_.push_back(std::move(row));
    }
    ends.push_back(rows_.size());
  }
  rows_of_.resize(stages_.size());
  std::set<std::string> names;
  for (size_t s = 0, r = 0; s < stages_.size(); ++s) {
    for (; r < ends[s]; ++r) {
      const Rewrite& row = rows_[r];
      rows_of_[s].push_back(&row);
      check_row(row, stages_[s]);
      for (const std::string& before : row.after)
        if (names.count(before) == 0)
          throw_wrong_row(row, "it needs '" + before + "' to stand before it, which does not", "reorder the rows");
      names.insert(row.name);
    }
  }
}

const StageInfo& Pipeline::info(Stage stage) const {
  for (const StageInfo& info : stages_)
    if (info.stage == stage && stage != Stage::kOwn) return info;
  throw ParamError({.op = "pipeline",
                    .input = "stage",
                    .message = "stage number " + std::to_string(static_cast<int>(stage)) + " is not described",
                    .fix = "add it to the stages of the pipeline"});
}

const StageInfo& Pipeline::info(const Rewrite& row) const {
  if (row.stage() != Stage::kOwn) return info(row.stage());
  return *std::find_if(stages_.begin(), stages_.end(),
                       [&](const StageInfo& info) { return info.stage == Stage::kOwn && info.name == row.name; });
}

bool Pipeline::has(std::string_view name) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const Rewrite& row) { return row.name == name; });
}

const Rewrite& Pipeline::at(std::string_view name, std::optional<Stage> stage) const {
  for (const Rewrite& row : rows_)
    if (row.name == name && (!stage || row.stage() == *stage)) return row;
  check({.include = {std::string(name)}}, "rule");
  throw ParamError({.input = "rule", .expected = "the name of a row of the pipeline", .given = std::string(name)});
}

namespace {

[[noreturn]] void refuse_word(const std::set<std::string>& known_words, const std::string& word,
                              std::string_view source, const char* what) {
  const std::string* nearest = nullptr;
  size_t distance = kLargestDistance + 1;
  for (const std::string& known : known_words)
    if (const size_t d = edit_distance(known, word); d < distance) distance = d, nearest = &known;
  throw ParamError({.input = std::string(source),
                    .expected = std::string(what) + " (docs/graph-passes.md)",
                    .given = "'" + word + "'",
                    .fix = nearest ? "did you mean '" + *nearest + "'?" : "see the tables in docs/graph-passes.md"});
}

// Words that name no rows ("inplace" is a step of linking, too).
constexpr const char* kOtherWords[] = {"debug", "fast_math", "inplace"};

// Called for every block that is hybridized, with few words.
bool is_known(const std::vector<Rewrite>& rows, const std::string& word) {
  const auto is_it = [&](const std::string& known) { return known == word; };
  return std::any_of(std::begin(kOtherWords), std::end(kOtherWords), is_it) ||
         std::any_of(rows.begin(), rows.end(), [&](const Rewrite& row) {
           return is_it(row.name) || std::any_of(row.tags.begin(), row.tags.end(), is_it);
         });
}

std::set<std::string> known_words(const std::vector<Rewrite>& rows) {
  std::set<std::string> words(std::begin(kOtherWords), std::end(kOtherWords));
  for (const Rewrite& row : rows) {
    words.insert(row.name);
    words.insert(row.tags.begin(), row.tags.end());
  }
  return words;
}

}  // namespace

void Pipeline::check(const Query& query, std::string_view source) const {
  for (const auto* list : {&query.include, &query.exclude, &query.require})
    for (const std::string& word : *list)
      if (!is_known(rows_, word)) refuse_word(known_words(rows_), word, source, "names and tags of the pipeline");
  for (const auto& [stage, inner] : query.subqueries) {
    const auto is_it = [&name = stage](const StageInfo& info) { return info.name == name; };
    if (std::none_of(stages_.begin(), stages_.end(), is_it)) {
      std::set<std::string> names;
      for (const StageInfo& info : stages_) names.insert(info.name);
      refuse_word(names, stage, source, "stages of the pipeline in front of ':'");
    }
    check(inner, source);
  }
}

// ---- the database
namespace {

std::mutex database_mutex;

std::shared_ptr<const Pipeline>& current_pipeline() {
  static auto* pipeline = new std::shared_ptr<const Pipeline>(new Pipeline(own_stages(), own_rows()));
  return *pipeline;
}

std::vector<Rewrite>& user_rows() {
  static auto* rows = new std::vector<Rewrite>();
  return *rows;
}

// Rows of users come after the rows of the library unless they set a position.
constexpr double kBehindOwnRows = 1e6;

}  // namespace

std::shared_ptr<const Pipeline> RewriteDatabase::current() {
  const std::lock_guard lock(database_mutex);
  return current_pipeline();
}

void RewriteDatabase::exchange(std::vector<Rewrite> users) {
  std::vector<Rewrite> rows = own_rows();
  rows.insert(rows.end(), users.begin(), users.end());
  auto made = std::make_shared<Pipeline>(own_stages(), rows);
  made->generation_ = current_pipeline()->generation_ + 1;
  user_rows().swap(users);
  current_pipeline() = std::move(made);
}

void RewriteDatabase::add(std::vector<Rewrite> rows) {
  std::shared_ptr<const Pipeline> before;  // destroyed after the lock is released: freeing rules may need the GIL
  std::vector<Rewrite> users;
  const std::lock_guard lock(database_mutex);
  before = current_pipeline();
  users = user_rows();
  for (Rewrite& row : rows) {
    if (row.stage() != Stage::kOwn && row.position == 0) row.position = kBehindOwnRows;
    for (const auto& [forward, joint] : kTwins)
      if (row.stage() == forward) row.stages.push_back(joint);
    users.push_back(std::move(row));
  }
  exchange(std::move(users));
}

void RewriteDatabase::remove(std::string_view name) {
  std::shared_ptr<const Pipeline> before;
  std::vector<Rewrite> users;
  const std::lock_guard lock(database_mutex);
  before = current_pipeline();
  users = user_rows();
  const auto count = std::erase_if(users, [&](const Rewrite& row) { return row.name == name; });
  if (count == 0) {
    if (before->has(name))
      throw ParamError({.input = "name",
                        .given = "'" + std::string(name) + "'",
                        .message = "this rewrite belongs to the library",
                        .fix = "leave it out of a query: passes='fast_run,-" + std::string(name) + "'"});
    before->at(name);  // throws
  }
  exchange(std::move(users));
}

}  // namespace hybridnet
