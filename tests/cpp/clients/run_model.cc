// run_model.c in C++: the same arguments and results.
#include <iostream>
#include <map>

#include "hybridnet/cpp/autograd.h"
#include "hybridnet/cpp/model.h"

using namespace hybridnet::cpp;

int main(int argc, char** argv) try {
  if (argc != 5) return 2;
  const Model model(argv[1], argv[2]);
  std::map<std::string, Array> given;
  for (const auto& [name, array] : load_arrays(argv[3])) given[name] = array;

  std::vector<Array> inputs;
  std::map<std::string, Array> wanted;
  for (const std::string& name : model.input_names()) {
    inputs.push_back(given.at("input:" + name));
    if (given.count("want:" + name)) wanted[name] = inputs.back();
  }
  for (const std::string& name : model.parameter_names())
    if (given.count("want:" + name)) wanted[name] = model.parameter(name);
  for (const auto& [name, array] : wanted) array.attach_grad();

  std::vector<Array> outputs, heads, head_grads;
  std::vector<std::pair<std::string, Array>> results;
  bool records = false;
  for (const auto& [name, array] : given) records = records || name.starts_with("head:");
  {
    const autograd::Recorder recorder(records, records);
    outputs = model.run(inputs);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    results.emplace_back("output:" + std::to_string(i), outputs[i]);
    const auto head = given.find("head:" + std::to_string(i));
    if (head == given.end()) continue;
    heads.push_back(outputs[i]);
    head_grads.push_back(head->second);
  }
  if (records) {
    autograd::backward(heads, head_grads);
    for (const auto& [name, array] : wanted) results.emplace_back("grad:" + name, array.grad());
  }
  save_arrays(argv[4], results);
  return 0;
} catch (const Error& error) {
  std::cerr << error.kind() << ": " << error.what() << "\n";
  return 1;
}
