// Every hand-written dense kernel compared with the library that has it: oneDNN's primitives on memory in our layout,
// OpenBLAS for double. Prints the table of KERNELS.md: our time relative to the library's.
//   build/kernels [--only=WORDS]            at the machine's best instruction set and at AVX2
//   build/kernels --rows [--only=WORDS]     lines for the instruction set in force; with times in microseconds
// Both sides take turns in one process, and the minimum of many times of each counts: other programs on the machine
// disturb both sides equally.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hybridnet/runtime.h"
#include "kernels/comparison.h"
#include "kernels/isa.h"

namespace hybridnet::benchmarks {
namespace {

using Seconds = std::chrono::duration<double>;
constexpr Seconds kMinTime{0.3}, kMaxTime{3};  // per comparison: ends after kMinRounds, within these limits
constexpr int kMinRounds = 40;
constexpr double kMinBatchUs = 30;  // calls per reading of the clock
constexpr double kMaxDifference = 2e-3;

double microseconds(const std::function<void()>& work, int calls) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / calls;
}

struct Times {
  double ours = 1e30, library = 1e30;
  double ratio() const { return ours / library; }
};

Times measure(const Comparison& c) {
  c.ours();
  c.library();
  const double once = std::min(microseconds(c.ours, 1), microseconds(c.library, 1));
  const int calls = std::clamp(static_cast<int>(kMinBatchUs / std::max(once, 0.05)), 1, 1000);
  Times times;
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0;; ++round) {
    const Seconds elapsed = std::chrono::steady_clock::now() - begin;
    if (elapsed > kMaxTime || (elapsed > kMinTime && round >= kMinRounds)) return times;
    times.ours = std::min(times.ours, microseconds(c.ours, calls));
    times.library = std::min(times.library, microseconds(c.library, calls));
  }
}

void print_rows(std::string_view only) {
  Runtime::get();
  for (const int cores : {1, 2}) {
    if (cores > cpu_cores()) break;
    const CoreLease lease(cores);
    const CoreScope scope(cores);
    for (const auto& add : {add_dense, add_convolution, add_pooling, add_normalization, add_softmax, add_recurrent,
                            add_resize, add_linalg}) {
      Comparisons all;
      add(all);
      for (const Comparison& c : all) {
        if ((c.kernel + " " + c.work).find(only) == std::string::npos) continue;
        const Times t = measure(c);
        const double off = c.off();
        if (off > kMaxDifference) std::cerr << c.kernel << ", " << c.work << ": results differ by " << off << "\n";
        std::printf("%s\t%s\t%d\t%.3f\t%.1f\t%.1f\n", c.kernel.c_str(), c.work.c_str(), cores, t.ratio(), t.ours,
                    t.library);
        std::fflush(stdout);
      }
    }
  }
}

// Ratios by kernel and work: 1 and 2 cores at the best instruction set, then at AVX2.
using Ratios = std::array<std::string, 4>;
struct Table {
  std::vector<std::pair<std::string, std::string>> order;
  std::map<std::pair<std::string, std::string>, Ratios> ratios;
};

bool read_rows(const std::string& command, size_t column, Table& table) {
  FILE* rows = popen(command.c_str(), "r");
  if (!rows) return false;
  char line[1024];
  while (std::fgets(line, sizeof line, rows)) {
    std::vector<std::string> fields;
    for (const char* field = std::strtok(line, "\t\n"); field; field = std::strtok(nullptr, "\t\n"))
      fields.emplace_back(field);
    if (fields.size() < 4) continue;
    const std::pair key(fields[0], fields[1]);
    if (!table.ratios.contains(key)) table.order.push_back(key);
    table.ratios[key][column + (fields[2] == "2" ? 1 : 0)] = fields[3].substr(0, fields[3].size() - 1);
  }
  return pclose(rows) == 0;
}

int print_table(const std::string& program, const std::string& only) {
  const std::string arguments = "'" + program + "' --rows '--only=" + only + "'";
  Table table;
  if (!read_rows(arguments, 0, table) ||
      !read_rows("HYBRIDNET_MAX_ISA=avx2 OPENBLAS_CORETYPE=Haswell " + arguments, 2, table))
    return 1;
  std::cout << "Best instruction set here: " << kernels::isa_report() << "\n\n";
  std::cout << "| Kernel | Work | best, 1 core | best, 2 | AVX2, 1 core | AVX2, 2 |\n|---|---|--:|--:|--:|--:|\n";
  for (const auto& key : table.order) {
    std::cout << "| " << key.first << " | " << key.second;
    for (const std::string& ratio : table.ratios[key]) std::cout << " | " << (ratio.empty() ? "-" : ratio);
    std::cout << " |\n";
  }
  return 0;
}

}  // namespace
}  // namespace hybridnet::benchmarks

int main(int argc, char** argv) {
  std::string only;
  bool rows = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--rows") {
      rows = true;
    } else if (argument.starts_with("--only=")) {
      only = argument.substr(7);
    } else {
      std::cerr << "kernels: unknown argument '" << argument << "'. Known: --rows, --only=WORDS\n";
      return 2;
    }
  }
  if (!rows) return hybridnet::benchmarks::print_table(argv[0], only);
  hybridnet::benchmarks::print_rows(only);
  return 0;
}
