// Functions of a library that is loaded while the process runs, each declared in one place: name, signature, and the
// version that first had it.
#pragma once

#include <cstdint>
#include <vector>

namespace hybridnet::cuda {

using Result = int;  // CUresult, nvrtcResult, cublasStatus_t, cudnnStatus_t; 0 is success

enum class Need : uint8_t { kRequired, kOptional };

struct Symbol {
  const char* name;
  int since;  // 1000 * major + 10 * minor
  Need need;
  void* address = nullptr;  // null: not loaded, or an optional function that the library lacks
};

// A function of a table. Callable when it has an address.
template <class Signature>
class Function;
template <class Returned, class... Parameters>
class Function<Returned(Parameters...)> : public Symbol {
 public:
  Function(std::vector<Symbol*>& table, const char* name, int since, Need need = Need::kRequired)
      : Symbol{name, since, need} {
    table.push_back(this);
  }
  Function(const Function&) = delete;
  explicit operator bool() const { return address != nullptr; }
  [[nodiscard]] Returned operator()(Parameters... arguments) const {
    return reinterpret_cast<Returned (*)(Parameters...)>(address)(arguments...);
  }
};

// Looks all functions up.
void find_all(void* library, const std::vector<Symbol*>& table);
// The first required function that has no address; null if there is none.
const Symbol* first_missing(const std::vector<Symbol*>& table);

}  // namespace hybridnet::cuda
