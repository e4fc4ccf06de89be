// Runs an exported classifier without Python and compares its outputs with Python's.
//
//   classify PREFIX-symbol.json PREFIX-0000.params check.params
//
// check.params contains "data" (images) and "scores" (the outputs that Python computed for them).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>

#include "hybridnet/cpp/model.h"

namespace hn = hybridnet::cpp;

namespace {

size_t best_class(std::span<const float> scores) {
  return static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

int compare(const hn::Model& model, const hn::Array& images, const hn::Array& expected) {
  const hn::Array scores = model.run({images})[0];
  if (scores.shape() != expected.shape()) {
    std::fprintf(stderr, "the model's output has another shape than the stored scores\n");
    return EXIT_FAILURE;
  }
  const auto got = scores.values<float>();
  const auto want = expected.values<float>();
  const size_t count = static_cast<size_t>(scores.shape()[0]);
  const size_t classes = got.size() / std::max<size_t>(count, 1);
  size_t agreeing = 0;
  float difference = 0;
  for (size_t i = 0; i < count; ++i)
    agreeing += best_class(got.subspan(i * classes, classes)) == best_class(want.subspan(i * classes, classes));
  for (size_t i = 0; i < got.size(); ++i) difference = std::max(difference, std::fabs(got[i] - want[i]));
  std::printf("C++ agrees: %zu of %zu predictions, max difference %.1e\n", agreeing, count,
              static_cast<double>(difference));
  return agreeing == count && difference < 1e-5f ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s PREFIX-symbol.json PREFIX-0000.params check.params\n", argv[0]);
    return EXIT_FAILURE;
  }
  try {
    const hn::Model model(argv[1], argv[2]);
    std::map<std::string, hn::Array> check;
    for (auto& [name, array] : hn::load_arrays(argv[3])) check.emplace(name, array);
    return compare(model, check.at("data"), check.at("scores"));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}
