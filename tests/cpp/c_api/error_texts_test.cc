// Error texts for users of the C++ header: the same as in Python, with the node in place of Python's line.
#include <gtest/gtest.h>

#include "hybridnet/cpp/model.h"

namespace {

namespace hn = hybridnet::cpp;

constexpr const char* kGraph = R"json({"nodes": [
  {"op": "null", "name": "data", "inputs": []}, {"op": "null", "name": "rows", "inputs": []}, {"op": "null", "name": "w", "inputs": []},
  {"op": "take", "name": "picked", "attrs": {"mode": "raise"}, "inputs": [[0, 0, 0], [1, 0, 0]]},
  {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "2", "no_bias": "True"}, "inputs": [[3, 0, 0], [2, 0, 0]]}],
 "arg_nodes": [0, 1, 2], "heads": [[4, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})json";

std::string params_path() { return testing::TempDir() + "error_texts_test.params"; }

std::string parameters() {
  const auto w = hn::Array::from<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  const HnArray arrays[] = {w.get()};
  const char* const names[] = {"arg:w"};
  EXPECT_EQ(hn_arrays_save(params_path().c_str(), 1, arrays, names), 0) << hn_last_error();
  std::FILE* file = std::fopen(params_path().c_str(), "rb");
  std::string bytes(4096, '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  std::remove(params_path().c_str());
  return bytes;
}

hn::Model load(const std::string& graph, const std::string& bytes) {
  return hn::Model::from_memory(graph, std::as_bytes(std::span(bytes.data(), bytes.size())));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// Returns "Kind: text" of the error that f throws.
std::string error_of(auto&& f) {
  try {
    f();
  } catch (const hn::Error& error) {
    return error.kind() + ": " + error.what();
  }
  return "no error";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(LoadLibrary, SaysWhatIsWrong) {
  try {
    hn::load_library("no_such_library.so");
    FAIL() << "loaded";
  } catch (const hn::Error& error) {
    EXPECT_NE(std::string(error.what()).find("cannot load the library"), std::string::npos) << error.what();
  }
  EXPECT_EQ(hn_operator_register(nullptr), -1);
  EXPECT_NE(std::string(hn_last_error()).find("NULL"), std::string::npos) << hn_last_error();
  HnOperator taken{};
  taken.struct_size = sizeof(HnOperator);
  taken.name = "relu";
  taken.num_inputs = taken.num_outputs = 1;
  taken.forward = [](const HnOperatorCall*) -> const char* { return nullptr; };
  EXPECT_EQ(hn_operator_register(&taken), -1);
  EXPECT_NE(std::string(hn_last_error()).find("already"), std::string::npos) << hn_last_error();
}

TEST(CppErrorTexts, AWrongShapeNamesTheNodeTheInputAndTheFix) {
  const hn::Model model = load(kGraph, parameters());
  const std::string text = error_of([&] {
    model.run({hn::Array::zeros({5, 4}), hn::Array::zeros({2})})[0].to_vector<float>();
  });
  EXPECT_TRUE(has(text, "ShapeError: operator 'FullyConnected' (node 'fc'")) << text;
  EXPECT_TRUE(has(text, "input 'weight': expected shape (2, 4), got (2, 3).")) << text;
  EXPECT_TRUE(has(text, "\n  Because: data has shape (2, 4), so there are 4 input features.")) << text;
  EXPECT_TRUE(has(text, "\n  Fix: build the layer with in_units=4, or pass data with 3 features.")) << text;
}

TEST(CppErrorTexts, AFailureWhileRunningNamesTheNode) {
  const hn::Model model = load(kGraph, parameters());
  const auto rows = [](float first) { return hn::Array::from<float>({2}, std::vector<float>{first, 1}); };
  const std::string text = error_of([&] { model.run({hn::Array::zeros({5, 3}), rows(9)})[0].to_vector<float>(); });
  EXPECT_TRUE(has(text, "IndexError: operator 'take' (node 'picked'")) << text;
  EXPECT_TRUE(has(text, "expected indices in [-5, 4], got 9.")) << text;
  EXPECT_EQ(model.run({hn::Array::zeros({5, 3}), rows(4)})[0].to_vector<float>(),
            std::vector<float>(4));  // it still works
}

TEST(CppErrorTexts, AnUnknownOperatorIsNamedWithSimilarOnes) {
  const std::string text =
      error_of([] { load(replaced(kGraph, "\"FullyConnected\"", "\"FulyConnected\""), parameters()); });
  EXPECT_TRUE(has(text, "FormatError: operator 'FulyConnected' (node 'fc'): unknown operator 'FulyConnected'."))
      << text;
  EXPECT_TRUE(has(text, "\n  Fix: operators of similar names: FullyConnected.")) << text;
}

TEST(CppErrorTexts, ABadAttributeNamesTheParameter) {
  const std::string text =
      error_of([] { load(replaced(kGraph, "\"num_hidden\": \"2\"", "\"num_hidden\": \"two\""), parameters()); });
  EXPECT_TRUE(has(
      text, "ParamError: operator 'FullyConnected' (node 'fc'), input 'num_hidden': expected an int >= 1, got 'two'."))
      << text;
}

TEST(CppErrorTexts, EveryTruncationOfAFileIsAnError) {
  const std::string graph = kGraph, bytes = parameters();
  for (size_t size = 0; size + 1 < graph.size(); size += 3)
    EXPECT_TRUE(has(error_of([&] { load(graph.substr(0, size), bytes); }), "FormatError")) << size;
  for (size_t size = 1; size < bytes.size(); ++size)
    EXPECT_TRUE(has(error_of([&] { load(graph, bytes.substr(0, size)); }), "FormatError")) << size;
}

TEST(CppErrorTexts, EveryChangedByteIsAnErrorOrAValue) {
  const std::string graph = kGraph, bytes = parameters();
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      EXPECT_NE(error_of([&] { load(graph, changed); }), "");  // the guarantee: an error, not a crash
    }
  }
}

TEST(CppErrorTexts, AMissingFileIsNamed) {
  const std::string text = error_of([] { hn::Model("no-symbol.json", "no.params"); });
  EXPECT_TRUE(has(text, "FileError")) << text;
  EXPECT_TRUE(has(text, "no-symbol.json")) << text;
}

TEST(CppErrorTexts, AnArrayThatTheGraphDoesNotReadIsRefusedAtLoad) {
  const std::string text = error_of([] { load(replaced(kGraph, "\"name\": \"w\"", "\"name\": \"u\""), parameters()); });
  EXPECT_TRUE(has(text, "the graph has no variable 'w'")) << text;
  EXPECT_TRUE(has(text, "another network")) << text;
}

}  // namespace
