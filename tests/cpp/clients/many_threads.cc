// Runs one model on many threads at once and checks that the results have the same bits as on one thread.
//
//   many_threads SYMBOL PARAMS CASE THREADS CALLS
//
// CASE is a .params file with "input:NAME:NUMBER": the inputs of several calls. Each thread makes CALLS calls, cycling
// through the numbered inputs. Prints the number of results that differ from those of the first thread, computed before
// the others start.
#include <atomic>
#include <cstring>
#include <iostream>
#include <map>
#include <thread>

#include "hybridnet/cpp/model.h"

using namespace hybridnet::cpp;

int main(int argc, char** argv) try {
  if (argc != 6) return 2;
  const Model model(argv[1], argv[2]);
  std::map<std::string, Array> given;
  for (const auto& [name, array] : load_arrays(argv[3])) given[name] = array;
  std::vector<std::vector<Array>> inputs, expected;
  for (size_t number = 0;; ++number) {
    std::vector<Array> call;
    for (const std::string& name : model.input_names()) {
      const auto found = given.find("input:" + name + ":" + std::to_string(number));
      if (found != given.end()) call.push_back(found->second);
    }
    if (call.empty()) break;
    inputs.push_back(call);
    expected.push_back(model.run(call));
    for (const Array& array : expected.back()) array.wait();
  }
  const int num_threads = std::stoi(argv[4]), calls = std::stoi(argv[5]);
  std::atomic<long> wrong{0}, done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < num_threads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < calls; ++i) {
        const size_t number = static_cast<size_t>(t + i) % inputs.size();
        const std::vector<Array> results = model.run(inputs[number]);
        for (size_t k = 0; k < results.size(); ++k) {
          const auto a = results[k].values<float>(), b = expected[number][k].values<float>();
          wrong += a.size() != b.size() || std::memcmp(a.data(), b.data(), a.size_bytes()) != 0;
        }
        ++done;
      }
    });
  for (std::thread& t : threads) t.join();
  std::cout << done << " calls, " << wrong << " differ\n";
  return 0;
} catch (const Error& error) {
  std::cerr << error.kind() << ": " << error.what() << "\n";
  return 1;
}
