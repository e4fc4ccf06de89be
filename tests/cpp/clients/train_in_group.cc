// One process of a group that trains a model; the others may be programs in Python or Java.
//
//   train_in_group SYMBOL PARAMS CASE STEPS RESULT [FAULT STEP]
//
// CASE is a .params file with "data" and "label"; each process takes its part of the rows. Writes the parameters to
// RESULT.RANK. FAULT: "throw", "kill", "exit" or "stale" (a backward that reaches nothing) at that step. Prints a
// GroupError with its text.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>

#include "hybridnet/cpp/autograd.h"
#include "hybridnet/cpp/group.h"
#include "hybridnet/cpp/model.h"
#include "hybridnet/cpp/nd.h"
#include "hybridnet/cpp/trainer.h"

using namespace hybridnet::cpp;

namespace {

void fail(const std::string& fault) {
  if (fault == "throw") throw std::runtime_error("a wrong shape\nin two lines");
  if (fault == "kill") std::raise(SIGKILL);
  if (fault == "exit") std::exit(0);
}

Array part_of(const Array& rows) {
  const int64_t count = rows.shape()[0] / group::size();
  return rows.slice(group::rank() * count, (group::rank() + 1) * count);
}

void train(char** argv, const std::string& fault, int fault_step) {
  const Model model(argv[1], argv[2]);
  if (group::rank() > 0)  // the values of process 0 count
    for (const Array& parameter : model.parameters()) nd::zeros_like(parameter, into(parameter));
  std::map<std::string, Array> given;
  for (const auto& [name, array] : load_arrays(argv[3])) given[name] = array;
  const Array data = part_of(given.at("data")), label = part_of(given.at("label"));
  const Trainer trainer(model, "sgd", {{"learning_rate", 0.5}, {"momentum", 0.9}});
  trainer.sum_over_group();
  for (int step = 0; step < std::stoi(argv[4]); ++step) {
    if (step == fault_step) fail(fault);
    if (step != fault_step || fault != "stale") {
      Array loss;
      {
        const autograd::Recorder recorder;
        loss = -nd::pick(nd::log_softmax(model.run({data})[0]), label);
      }
      loss.backward();
    }
    trainer.step(static_cast<double>(given.at("data").shape()[0]), fault == "stale");
  }
  std::vector<std::pair<std::string, Array>> result;
  const std::vector<std::string> names = model.parameter_names();
  for (size_t i = 0; i < names.size(); ++i) result.emplace_back(names[i], model.parameters()[i]);
  save_arrays(std::string(argv[5]) + "." + std::to_string(group::rank()), result);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 6 && argc != 8) return 2;
  group::run([&] { train(argv, argc == 8 ? argv[6] : "", argc == 8 ? std::atoi(argv[7]) : -1); });
  std::printf("done\n");
  return 0;
} catch (const GroupError& error) {
  std::printf("%s: %s\n", error.kind().c_str(), error.what());
  return 7;
} catch (const std::exception& error) {
  std::fprintf(stderr, "failed: %s\n", error.what());
  return 1;
}
