// Tunes a model by SGD with momentum and prints the bits of the loss of each step.
//
//   tune SYMBOL PARAMS CASE STEPS RATE MOMENTUM SAVED_SYMBOL SAVED_PARAMS
//
// CASE is a .params file: "input:NAME", and "target" for output 0; the loss is the mean of the squared difference.
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>

#include "hybridnet/cpp/autograd.h"
#include "hybridnet/cpp/model.h"
#include "hybridnet/cpp/nd.h"

using namespace hybridnet::cpp;

int main(int argc, char** argv) try {
  if (argc != 9) return 2;
  const Model model(argv[1], argv[2]);
  std::map<std::string, Array> given;
  for (const auto& [name, array] : load_arrays(argv[3])) given[name] = array;
  std::vector<Array> inputs, momenta;
  for (const std::string& name : model.input_names()) inputs.push_back(given.at("input:" + name));
  const std::vector<Array> parameters = model.parameters();
  for (const Array& parameter : parameters) {
    parameter.attach_grad();
    momenta.push_back(nd::zeros_like(parameter));
  }
  const int steps = std::stoi(argv[4]);
  const double rate = std::stod(argv[5]), momentum = std::stod(argv[6]);
  for (int step = 0; step < steps; ++step) {
    Array loss;
    {
      const autograd::Recorder recorder;
      loss = nd::mean(nd::square(model.run(inputs)[0] - given.at("target")));
    }
    loss.backward();
    for (size_t i = 0; i < parameters.size(); ++i)
      nd::sgd_mom_update(parameters[i], parameters[i].grad(), momenta[i], {.lr = rate, .momentum = momentum},
                         into(parameters[i]));
    uint32_t bits = 0;
    const float value = loss.to_vector<float>()[0];
    std::memcpy(&bits, &value, sizeof bits);
    std::printf("%08" PRIx32 "\n", bits);
  }
  model.save(argv[7], argv[8]);
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s: %s\n", error.kind().c_str(), error.what());
  return 1;
}
