// Runs an exported model on zeros and prints its outputs.
//
//   predict PREFIX SIZES...       # predict net 1,4: net-symbol.json and net-0000.params, an input of shape (1, 4)
#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "hybridnet/cpp/model.h"

using namespace hybridnet::cpp;

namespace {

// Reads "1,4" as {1, 4}.
std::vector<int64_t> sizes_of(const std::string& text) {
  std::vector<int64_t> sizes;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) sizes.push_back(std::stoll(word));
  return sizes;
}

void print(const Array& output) {
  std::cout << "shape (";
  for (const int64_t size : output.shape()) std::cout << size << ",";
  std::cout << "):";
  const std::vector<float> values = output.to_vector<float>();
  for (size_t i = 0; i < std::min<size_t>(values.size(), 8); ++i) std::cout << " " << values[i];
  std::cout << (values.size() > 8 ? " ...\n" : "\n");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::cerr << "usage: " << argv[0] << " PREFIX SIZES...\n";
    return 2;
  }
  const std::string prefix = argv[1];
  const Model model(prefix + "-symbol.json", prefix + "-0000.params");
  std::vector<Array> inputs;
  for (int i = 2; i < argc; ++i) inputs.push_back(Array::zeros(sizes_of(argv[i])));
  if (inputs.size() != model.input_names().size()) {
    std::cerr << "give the sizes of each input:";
    for (const std::string& name : model.input_names()) std::cerr << " " << name;
    std::cerr << "\n";
    return 2;
  }
  for (const Array& output : model.run(inputs)) print(output);
  return 0;
} catch (const std::exception& error) {  // Error of the library, or a size that is no number
  std::cerr << error.what() << "\n";
  return 1;
}
