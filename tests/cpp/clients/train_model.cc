// Trains a model with a step exported by TrainStep.export().
//
//   train_model SYMBOL PARAMS CASE RESULT
//
// CASE is a .params file with "NAME:NUMBER": the inputs of several steps. Writes the loss of each step as "loss:NUMBER"
// and the parameters and states after the last one, by name.
#include <iostream>
#include <map>

#include "hybridnet/cpp/autograd.h"
#include "hybridnet/cpp/model.h"

using namespace hybridnet::cpp;

int main(int argc, char** argv) try {
  if (argc != 5) return 2;
  const Model step(argv[1], argv[2]);
  std::map<std::string, Array> given;
  for (const auto& [name, array] : load_arrays(argv[3])) given[name] = array;
  std::vector<std::pair<std::string, Array>> result;
  const autograd::Pause training(true);
  for (size_t number = 0;; ++number) {
    std::vector<Array> inputs;
    for (const std::string& name : step.input_names()) {
      const auto found = given.find(name + ":" + std::to_string(number));
      if (found != given.end()) inputs.push_back(found->second);
    }
    if (inputs.empty()) break;
    result.emplace_back("loss:" + std::to_string(number), step.run(inputs).at(0));
  }
  const std::vector<std::string> names = step.parameter_names();
  const std::vector<Array> parameters = step.parameters();
  for (size_t i = 0; i < names.size(); ++i) result.emplace_back(names[i], parameters[i]);
  save_arrays(argv[4], result);
  std::cout << result.size() << " arrays\n";
  return 0;
} catch (const Error& error) {
  std::cerr << error.kind() << ": " << error.what() << "\n";
  return 1;
}
