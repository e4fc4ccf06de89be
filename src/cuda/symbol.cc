#include "cuda/symbol.h"

#include <dlfcn.h>

namespace hybridnet::cuda {

void find_all(void* library, const std::vector<Symbol*>& table) {
  for (Symbol* symbol : table) symbol->address = dlsym(library, symbol->name);
}

const Symbol* first_missing(const std::vector<Symbol*>& table) {
  for (const Symbol* symbol : table)
    if (!symbol->address && symbol->need == Need::kRequired) return symbol;
  return nullptr;
}

}  // namespace hybridnet::cuda
