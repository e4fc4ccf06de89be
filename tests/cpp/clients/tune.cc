// Fine-tunes a model with a trainer and prints the bits of the loss of each step.
//
//   tune SYMBOL PARAMS CASE STEPS SAVED_SYMBOL SAVED_PARAMS SAVED_STATES OPTIMIZER [NAME VALUE]...
//
// CASE is a .params file: "input:NAME", and "target" for output 0; the loss is the mean of the squared difference.
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>

#include "hybridnet/cpp/autograd.h"
#include "hybridnet/cpp/model.h"
#include "hybridnet/cpp/nd.h"
#include "hybridnet/cpp/trainer.h"

using namespace hybridnet::cpp;

int main(int argc, char** argv) try {
  if (argc < 9 || argc % 2 != 1) return 2;
  const Model model(argv[1], argv[2]);
  std::map<std::string, Array> given;
  for (const auto& [name, array] : load_arrays(argv[3])) given[name] = array;
  std::vector<Array> inputs;
  for (const std::string& name : model.input_names()) inputs.push_back(given.at("input:" + name));
  Attributes settings;
  for (int i = 9; i < argc; i += 2) settings.emplace_back(argv[i], argv[i + 1]);
  const Trainer trainer(model, argv[8], settings);
  const int steps = std::stoi(argv[4]);
  for (int step = 0; step < steps; ++step) {
    Array loss;
    {
      const autograd::Recorder recorder;
      loss = nd::mean(nd::square(model.run(inputs)[0] - given.at("target")));
    }
    loss.backward();
    trainer.step(1);
    uint32_t bits = 0;
    const float value = loss.to_vector<float>()[0];
    std::memcpy(&bits, &value, sizeof bits);
    std::printf("%08" PRIx32 "\n", bits);
  }
  model.save(argv[5], argv[6]);
  trainer.save_states(argv[7]);
  return trainer.num_updates() == steps ? 0 : 3;
} catch (const Error& error) {
  std::fprintf(stderr, "%s: %s\n", error.kind().c_str(), error.what());
  return 1;
}
