// Model files with exchanged numbers, names and lists: models that still load are bound and run forward and backward.
// Every step ends in a result or an error of ours, with memory that follows from the sizes in the file. To be run under
// sanitizers; --gtest_repeat makes longer runs, with other damage each time.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <regex>
#include <sstream>

#include "hybridnet/plan.h"
#include "hybridnet/runtime.h"
#include "plan/control_flow_models.h"

namespace hybridnet {
namespace {

constexpr size_t kMaxFileBytes = 9000;                // larger fixtures are not used
constexpr int64_t kMaxArrayBytes = int64_t{1} << 20;  // graphs with larger arrays are loaded and inferred, not run
constexpr int kRounds = 20;                           // damaged copies of each file

struct Model {
  std::string name, text;
  std::map<std::string, TensorSpec> inputs;
};

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the specs of the inputs in case.json of a fixture.
std::map<std::string, TensorSpec> inputs_of(const std::string& description) {
  static const std::regex kInput(R"re("name":\s*"([^"]*)",\s*"shape":\s*\[([^\]]*)\],\s*"dtype":\s*"([^"]*)")re");
  const size_t first = description.find("\"inputs\""), last = description.find("\"outputs\"");
  const std::string part = description.substr(std::min(first, description.size()), last - first);
  std::map<std::string, TensorSpec> specs;
  for (std::sregex_iterator it(part.begin(), part.end(), kInput), end; it != end; ++it) {
    Shape shape = Shape::scalar();
    std::istringstream sizes((*it)[2].str());
    for (std::string size; std::getline(sizes, size, ',');)
      if (size.find_first_of("0123456789") != std::string::npos) shape.push_back(std::stoll(size));
    specs[(*it)[1].str()] = {shape, dtype_from_name((*it)[3].str())};
  }
  return specs;
}

std::vector<Model> models() {
  const auto vector = [](int64_t n) { return TensorSpec{Shape{n}, DType::kFloat32}; };
  std::vector<Model> found = {
      {"loop_with_branch", kModel, {{"x", vector(5)}, {"start", vector(1)}}},
      {"map_with_while",
       kMap,
       {{"x", {Shape{3, 2}, DType::kFloat32}}, {"picks", vector(3)}, {"table", {Shape{4, 2}, DType::kFloat32}}}}};
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(HYBRIDNET_SOURCE_DIR "/tests/fixtures"))
    if (std::filesystem::exists(entry.path() / "case.json")) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  for (const std::filesystem::path& folder : folders) {
    const std::string name = folder.filename().string();
    const std::string text = contents(folder / (name + "-symbol.json"));
    if (!text.empty() && text.size() <= kMaxFileBytes)
      found.push_back({name, text, inputs_of(contents(folder / "case.json"))});
  }
  return found;
}

// Positions of numbers and of names in a text, and the words found there.
struct Words {
  struct Place {
    size_t at, length;
  };
  std::vector<Place> numbers, names;
  explicit Words(const std::string& text) {
    static const std::regex kWord(R"re(-?[0-9]+|"[^"]*")re");
    for (std::sregex_iterator it(text.begin(), text.end(), kWord), end; it != end; ++it) {
      const Place place{static_cast<size_t>(it->position()), static_cast<size_t>(it->length())};
      if (text[place.at] != '"') {
        numbers.push_back(place);
        continue;
      }
      names.push_back(place);  // numbers in it are separate places, too
      static const std::regex kNumber("-?[0-9]+");
      const std::string inside = it->str();
      for (std::sregex_iterator n(inside.begin(), inside.end(), kNumber); n != end; ++n)
        numbers.push_back({place.at + static_cast<size_t>(n->position()), static_cast<size_t>(n->length())});
    }
  }
};

// Replaces the words at a few places of the text by another number, another name of the file, or nothing.
std::string damaged(std::string text, std::mt19937& random) {
  static const std::vector<std::string> kNumbers = {
      "0", "1", "2", "3", "-1", "7", "100", "65536", "2147483647", "-2147483648", "4611686018427387904"};
  const auto pick = [&](const auto& list) -> const auto& { return list[random() % list.size()]; };
  for (unsigned change = 1 + random() % 3; change > 0; --change) {
    const Words words(text);
    if (words.numbers.empty() || words.names.empty()) return text;
    const unsigned kind = random() % 8;
    if (kind < 4) {
      const Words::Place place = pick(words.numbers), other = pick(words.numbers);
      text.replace(place.at, place.length, kind < 2 ? pick(kNumbers) : text.substr(other.at, other.length));
    } else if (kind < 7) {
      const Words::Place place = pick(words.names), other = pick(words.names);
      text.replace(place.at, place.length, text.substr(other.at, other.length));
    } else {
      const size_t open = text.find('[', random() % text.size());
      const size_t close = open == std::string::npos ? open : text.find(']', open);
      if (close == std::string::npos) continue;
      const size_t comma = text.find(',', open);  // removes the first item of a list
      if (comma < close) text.erase(open + 1, comma - open);
    }
  }
  return text;
}

int64_t largest_array(const Symbol& symbol, const std::map<std::string, TensorSpec>& inputs) {
  const Symbol::Specs specs = symbol.internals().infer(inputs, true, true);
  int64_t largest = 0;
  for (const std::vector<TensorSpec>* list : {&specs.arguments, &specs.auxiliaries, &specs.outputs})
    for (const TensorSpec& spec : *list)
      if (spec.shape.known() && spec.dtype != DType::kUnknown) largest = std::max(largest, spec.bytes());
  return largest;
}

std::vector<NDArray> arrays_of(const std::vector<TensorSpec>& specs, std::mt19937& random) {
  std::vector<NDArray> arrays;
  for (const TensorSpec& spec : specs) {
    NDArray array = NDArray::empty(spec);
    dispatch_dtype(spec.dtype, [&](auto zero) {
      using T = decltype(zero);
      for (int64_t i = 0; i < array.size(); ++i)
        static_cast<T*>(array.data())[i] = static_cast<T>(static_cast<float>(random() % 3));
    });
    arrays.push_back(array);
  }
  return arrays;
}

// Returns the last stage that the model reached: 0 refused, 1 loaded, 2 bound, 3 run forward and backward.
int carry_out(const std::string& text, const std::map<std::string, TensorSpec>& inputs, std::mt19937& random) {
  int stage = 0;
  try {
    const Symbol symbol = Symbol::from_json(text, "damaged");
    stage = 1;
    EXPECT_EQ(Symbol::from_json(symbol.tojson(), "again").tojson(), symbol.tojson());
    std::map<std::string, TensorSpec> known;
    for (const std::string& name : symbol.list_arguments())
      if (auto it = inputs.find(name); it != inputs.end()) known.insert(*it);
    if (largest_array(symbol, known) > kMaxArrayBytes) return stage;
    const Symbol::Specs specs = symbol.infer(known, false, true);
    const std::vector<NDArray> arguments = arrays_of(specs.arguments, random);
    std::vector<NDArray> gradients;
    std::vector<GradReq> requests;
    for (const TensorSpec& spec : specs.arguments) {
      const bool wanted = is_floating(spec.dtype);
      gradients.push_back(wanted ? NDArray::empty(spec) : NDArray());
      requests.push_back(wanted ? GradReq::kWrite : GradReq::kNull);
    }
    const auto executor =
        make_ref<Executor>(symbol, arguments, gradients, requests, arrays_of(specs.auxiliaries, random));
    stage = 2;
    for (const NDArray& out : executor->forward(false)) out.wait_to_read();
    for (const NDArray& out : executor->forward(true)) out.wait_to_read();
    executor->backward({});
    for (const NDArray& gradient : gradients)
      if (gradient) gradient.wait_to_read();
    stage = 3;
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "");
  }
  try {
    Runtime::get().engine().wait_all();
  } catch (const Error&) {
  }
  return stage;
}

class DamagedModel : public ::testing::TestWithParam<Model> {};

TEST_P(DamagedModel, IsRefusedOrRuns) {
  Runtime::get();
  const Model& model = GetParam();
  static unsigned seed = 0;
  std::mt19937 intact(1);
  EXPECT_EQ(carry_out(model.text, model.inputs, intact), 3) << "the file itself";
  for (int round = 0; round < kRounds; ++round) {
    std::mt19937 random(++seed);
    const std::string text = damaged(model.text, random);
    SCOPED_TRACE("seed " + std::to_string(seed) + " of " + model.name);
    carry_out(text, model.inputs, random);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DamagedModel, ::testing::ValuesIn(models()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hybridnet
