// Runs exported models without Python and compares their outputs with the expected ones.
//
//   compare_models FOLDER [TOLERANCE]
//
// For every NAME-case.params in FOLDER there are NAME-symbol.json and NAME-0000.params. The case holds arrays
// "input:<name of the input>" (inputs that the model does not have are ignored) and "output:<number>", all of float64.
// TOLERANCE is relative to max(1, |expected|); without it every bit must be the same. Prints the failures and a
// summary; the exit status is 0 if all models agree, 1 if some do not, 2 if there is nothing to compare.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "hybridnet/cpp/model.h"

namespace {

using hybridnet::cpp::Array;
using hybridnet::cpp::Model;

constexpr std::string_view kCase = "-case.params";

std::vector<std::string> case_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    if (file.ends_with(kCase)) names.push_back(file.substr(0, file.size() - kCase.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns the largest difference relative to max(1, |expected|); throws if shapes or special values (NaN, inf) differ.
double difference(const Array& given, const Array& expected) {
  if (given.shape() != expected.shape()) throw std::runtime_error("the shape of an output is another one");
  const std::span<const double> a = given.values<double>(), b = expected.values<double>();
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(double)) == 0 || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double now = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
    if (!std::isfinite(now)) throw std::runtime_error("an output is not a finite number where one was expected");
    largest = std::max(largest, std::max(now, std::numeric_limits<double>::denorm_min()));
  }
  return largest;
}

// Returns the largest difference over all outputs of a model.
double compare(const std::string& path) {
  const Model model(path + "-symbol.json", path + "-0000.params");
  std::map<std::string, Array> arrays;
  for (auto& [name, array] : hybridnet::cpp::load_arrays(path + std::string(kCase))) arrays.emplace(name, array);
  std::vector<Array> inputs;
  for (const std::string& name : model.input_names()) inputs.push_back(arrays.at("input:" + name));
  const std::vector<Array> outputs = model.run(inputs);
  double largest = 0;
  size_t number = 0;
  for (; number < outputs.size(); ++number)
    largest = std::max(largest, difference(outputs[number], arrays.at("output:" + std::to_string(number))));
  if (arrays.contains("output:" + std::to_string(number))) throw std::runtime_error("the model has too few outputs");
  return largest;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::cerr << "usage: compare_models FOLDER [TOLERANCE]\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const double tolerance = argc == 3 ? std::strtod(argv[2], nullptr) : 0;
  size_t compared = 0, failed = 0;
  double largest = 0;
  for (const std::string& name : case_names(folder)) {
    ++compared;
    try {
      const double now = compare((folder / name).string());
      largest = std::max(largest, now);
      if (now <= tolerance) continue;
      std::cout << name << ": differs by " << now << "\n";
    } catch (const std::exception& error) {
      std::cout << name << ": " << error.what() << "\n";
    }
    ++failed;
  }
  std::cout << compared << " models, " << failed << " failed, largest difference " << largest << "\n";
  return compared == 0 ? 2 : failed == 0 ? 0 : 1;
}
