// Runs operators and a model with indices and lengths out of range; prints results, failures, with "callback" warnings.
//
// out_of_range callback|stderr SYMBOL PARAMS
#include <iostream>
#include <string>
#include <vector>

#include "hybridnet/c_api.h"
#include "hybridnet/cpp/model.h"
#include "hybridnet/cpp/nd.h"

using hybridnet::cpp::Array;
namespace nd = hybridnet::cpp::nd;

namespace {

template <typename Run>
void print_result(const char* what, Run run) {
  try {
    const Array result = run();
    const std::vector<float> values = result.template to_vector<float>();
    std::cout << what << ":";
    for (const float value : values) std::cout << " " << value;
    std::cout << "\n";
  } catch (const hybridnet::cpp::IndexError& error) {
    std::cout << what << " failed: " << error.kind() << ": " << error.what() << "\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  if (argv[1] == std::string("callback"))
    hn_set_log_callback([](const char* text, void*) { std::cout << "warning: " << text << "\n"; }, nullptr);
  const Array data = Array::from<float>({4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Array index = Array::from<float>({4}, {0, 1, 7, 2}), lengths = Array::from<float>({3}, {4, 1, 9});
  const hybridnet::cpp::Model model(argv[2], argv[3]);
  for (int i = 0; i < 2; ++i) {
    print_result("pick", [&] { return nd::pick(data, index); });
    print_result("SequenceLast", [&] { return nd::SequenceLast(data, lengths, {.use_sequence_length = true}); });
    print_result("model", [&] { return model.run({data, lengths})[0]; });
  }
}
