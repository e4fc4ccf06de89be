#include <gtest/gtest.h>

#include <random>

#include "hybridnet/graph.h"
#include "hybridnet/runtime.h"

namespace hybridnet {
namespace {

class SymbolJson : public testing::Test {
 protected:
  void SetUp() override { Runtime::get(); }
};

constexpr const char* kMlp = R"json({
 "nodes": [
  {"op": "null", "name": "data", "inputs": []},
  {"op": "null", "name": "fc_weight", "attrs": {"__shape__": "(4, 3)", "__init__": "[\"normal\", {\"sigma\": 0.1}]"}, "inputs": []},
  {"op": "null", "name": "fc_bias", "inputs": []},
  {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "4"}, "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]]},
  {"op": "Activation", "name": "relu", "attrs": {"act_type": "relu"}, "inputs": [[3, 0, 0]]}],
 "arg_nodes": [0, 1, 2], "node_row_ptr": [0, 1, 2, 3, 4, 5], "heads": [[4, 0, 0]],
 "attrs": {"mxnet_version": ["int", 10901]}})json";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

template <typename E>
std::string error_of(const std::string& text) {
  try {
    Symbol::from_json(text, "net-symbol.json");
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(SymbolJson, WhatIsReadIsWrittenAndReadTheSame) {
  Symbol net = Symbol::from_json(kMlp, "mlp");
  EXPECT_EQ(net.list_arguments(), (std::vector<std::string>{"data", "fc_weight", "fc_bias"}));
  EXPECT_EQ(net.list_outputs(), std::vector<std::string>{"relu_output"});
  const std::string first = net.tojson();
  EXPECT_EQ(Symbol::from_json(first, "again").tojson(), first);
  EXPECT_NE(first.find("__init__"), std::string::npos);  // hidden attributes survive
}

TEST_F(SymbolJson, ShapesAreInferredFromTheData) {
  Symbol net = Symbol::from_json(kMlp, "mlp");
  Symbol::Specs specs = net.infer({{"data", {Shape{2, 3}, DType::kFloat32}}}, false);
  EXPECT_EQ(specs.arguments[1].shape, (Shape{4, 3}));
  EXPECT_EQ(specs.arguments[2].shape, (Shape{4}));
  EXPECT_EQ(specs.outputs[0].shape, (Shape{2, 4}));
}

TEST_F(SymbolJson, AnUnknownOperatorIsNamedWithSimilarOnes) {
  const std::string text = error_of<FormatError>(replaced(kMlp, "\"FullyConnected\"", "\"FulyConnected\""));
  EXPECT_NE(text.find("FulyConnected"), std::string::npos) << text;
  EXPECT_NE(text.find("net-symbol.json"), std::string::npos) << text;
}

TEST_F(SymbolJson, BrokenFilesAreRejectedWithThePlace) {
  EXPECT_NE(error_of<FormatError>(std::string(kMlp).substr(0, 200)).find("not valid JSON"), std::string::npos);
  EXPECT_NE(error_of<FormatError>(replaced(kMlp, "[4, 0, 0]", "[9, 0, 0]")).find("heads[0]"), std::string::npos);
  EXPECT_NE(error_of<FormatError>(replaced(kMlp, "[4, 0, 0]", "[4, 7, 0]")).find("output index"), std::string::npos);
  EXPECT_NE(error_of<FormatError>(replaced(kMlp, "[[3, 0, 0]]", "[[4, 0, 0]]")).find("cycle"), std::string::npos);
  EXPECT_NE(error_of<FormatError>(replaced(kMlp, "\"heads\"", "\"tails\"")).find("'heads' is missing"),
            std::string::npos);
  EXPECT_NE(error_of<FormatError>(replaced(kMlp, "\"4\"", "4")).find("not a string"), std::string::npos);
  EXPECT_NE(error_of<FormatError>(replaced(kMlp, ", [2, 0, 0]]", "]")).find("number of inputs"), std::string::npos);
  EXPECT_NE(error_of<ParamError>(replaced(kMlp, "\"4\"", "\"four\"")).find("num_hidden"), std::string::npos);
  EXPECT_NE(error_of<FormatError>("[1, 2]").find("JSON object"), std::string::npos);
}

TEST_F(SymbolJson, AnyChangedBytesEndInAGraphOrAnError) {
  const std::string text = kMlp;
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = text;
    for (int k = 0; k < 2; ++k) damaged[random() % damaged.size()] = static_cast<char>(32 + random() % 90);
    try {
      Symbol::from_json(damaged, "damaged").tojson();
    } catch (const Error&) {
    }
  }
}

TEST_F(SymbolJson, VariablesOfOneNameAreOneInput) {
  std::string text = replaced(kMlp, "\"fc_bias\"", "\"data\"");
  EXPECT_EQ(Symbol::from_json(text, "twice").list_arguments(), (std::vector<std::string>{"data", "fc_weight"}));
}

TEST_F(SymbolJson, OldFilesAreUpgraded) {
  std::string text = replaced(kMlp, "\"attrs\": {\"num_hidden\"", "\"param\": {\"num_hidden\"");
  text = replaced(text, "\"inputs\": [[0, 0, 0], [1",
                  "\"attr\": {\"weight_lr_mult\": \"2\", \"ctx_group\": \"a\"}, \"inputs\": [[0, 0], [1");
  text = replaced(text, "10901", "800");
  Symbol net = Symbol::from_json(text, "old");
  const Node& fc = *net.outputs[0].node->inputs[0].node;
  EXPECT_EQ(fc.inputs[1].node->attrs.at("__lr_mult__"), "2");
  EXPECT_EQ(fc.attrs.at("__ctx_group__"), "a");
}

TEST(Json, AValueThatABranchGetsTwiceKeepsItsPlaces) {
  Runtime::get();
  const std::string text = R"model({"nodes": [
    {"op": "null", "name": "p", "inputs": []}, {"op": "null", "name": "x", "inputs": []},
    {"op": "_cond", "name": "choice",
     "attrs": {"num_args": "3", "num_outputs": "1", "cond_input_locs": "(0,)", "then_input_locs": "(1,)",
               "else_input_locs": "(2, 2)"},
     "inputs": [[0, 0, 0], [1, 0, 0], [1, 0, 0]],
     "subgraphs": [
      {"nodes": [{"op": "null", "name": "p", "inputs": []}, {"op": "_copy", "name": "c", "inputs": [[0, 0, 0]]}],
       "arg_nodes": [0], "heads": [[1, 0, 0]]},
      {"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "negative", "name": "n", "inputs": [[0, 0, 0]]}],
       "arg_nodes": [0], "heads": [[1, 0, 0]]},
      {"nodes": [{"op": "null", "name": "a", "inputs": []}, {"op": "null", "name": "b", "inputs": []},
                 {"op": "elemwise_add", "name": "s", "inputs": [[0, 0, 0], [1, 0, 0]]}],
       "arg_nodes": [0, 1], "heads": [[2, 0, 0]]}]}],
    "arg_nodes": [0, 1], "heads": [[2, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})model";
  const std::string once = Symbol::from_json(text, "net").tojson();
  EXPECT_NE(once.find("\"then_input_locs\": \"(1,)\""), std::string::npos);
  EXPECT_NE(once.find("\"else_input_locs\": \"(2,)\""), std::string::npos);  // one value feeds both inputs
  EXPECT_EQ(Symbol::from_json(once, "again").tojson(), once);
}

}  // namespace
}  // namespace hybridnet
