// Trains a model for some steps with each optimizer, from the same start.
//
//   train_fixture SYMBOL PARAMS CASE STEPS RESULT OPTIMIZER...
//
// CASE is a .params file: "input:NAME" and "head:NUMBER", the gradient of an output. Writes the parameters after the
// first and the last step as "OPTIMIZER:STEP:NAME".
#include <cstdio>
#include <map>

#include "hybridnet/cpp/autograd.h"
#include "hybridnet/cpp/model.h"
#include "hybridnet/cpp/trainer.h"

using namespace hybridnet::cpp;

// Makes a trainer of all parameters; for GroupAdaGrad, which needs matrices, only of the matrices.
static Trainer make_trainer(const Model& model, const std::string& optimizer) {
  if (optimizer != "GroupAdaGrad") return {model, optimizer, {{"learning_rate", 0.01}}};
  std::map<std::string, Array> matrices;
  for (const std::string& name : model.parameter_names())
    if (const Array parameter = model.parameter(name); parameter.shape().size() == 2) matrices[name] = parameter;
  return {matrices, optimizer, {{"learning_rate", 0.01}}};
}

int main(int argc, char** argv) try {
  if (argc < 7) return 2;
  std::map<std::string, Array> given;
  for (const auto& [name, array] : load_arrays(argv[3])) given[name] = array;
  const int steps = std::stoi(argv[4]);
  std::vector<std::pair<std::string, Array>> result;
  for (int i = 6; i < argc; ++i) {
    const Model model(argv[1], argv[2]);
    const Trainer trainer = make_trainer(model, argv[i]);
    detail::check(hn_seed(7));
    std::vector<Array> inputs;
    for (const std::string& name : model.input_names()) inputs.push_back(given.at("input:" + name));
    for (int step = 1; step <= steps; ++step) {
      std::vector<Array> outputs, heads, head_grads;
      {
        const autograd::Recorder recorder;
        outputs = model.run(inputs);
      }
      for (size_t k = 0; k < outputs.size(); ++k) {
        const auto found = given.find("head:" + std::to_string(k));
        if (found == given.end()) continue;
        heads.push_back(outputs[k]);
        head_grads.push_back(found->second);
      }
      autograd::backward(heads, head_grads);
      trainer.step(2, true);
      if (step != 1 && step != steps) continue;
      const std::vector<std::string> names = model.parameter_names();
      const std::vector<Array> values = model.parameters();
      for (size_t k = 0; k < names.size(); ++k)
        result.emplace_back(std::string(argv[i]) + ":" + std::to_string(step) + ":" + names[k], values[k].copy());
    }
  }
  save_arrays(argv[5], result);
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s: %s\n", error.kind().c_str(), error.what());
  return 1;
}
