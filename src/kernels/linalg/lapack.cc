#include "kernels/linalg/lapack.h"

#include <dlfcn.h>
#include <sched.h>

#include <limits>
#include <string>

#include "base/library_folder.h"
#include "hybridnet/env.h"
#include "hybridnet/error.h"
#include "kernels/isa.h"

namespace hybridnet::kernels {
namespace {

constexpr const char* kFile = "libscipy_openblas.so";  // PyPI scipy-openblas32: every symbol begins with scipy_

[[noreturn]] void throw_missing(const char* reason) {
  throw Error(ErrorKind::kError,
              {.message = std::string("factorizations and products in float64 need OpenBLAS, which cannot be loaded"),
               .because = reason ? reason : "no reason is known",
               .fix = std::string("reinstall hybridnet, or put ") + kFile +
                      " of the PyPI package scipy-openblas32 beside libhybridnet.so"});
}

// OpenBLAS starts a thread for each core that the loading thread may use, and keeps threads that are never used.
class OnOneCore {
 public:
  OnOneCore() {
    if (sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    int core = 0;
    while (core + 1 < CPU_SETSIZE && !CPU_ISSET(core, &before_)) ++core;
    CPU_SET(core, &one);
    changed_ = sched_setaffinity(0, sizeof one, &one) == 0;
  }
  ~OnOneCore() {
    if (changed_) sched_setaffinity(0, sizeof before_, &before_);
  }
  OnOneCore(const OnOneCore&) = delete;

 private:
  cpu_set_t before_;
  bool changed_ = false;
};

// The processor type whose kernels OpenBLAS must use; null: the best that it finds, or the one in the user's
// OPENBLAS_CORETYPE. With AVX2 the choice is fixed, and gemm_choice.cc relies on its speed for float32 products: a
// variable set for another program, to an older processor, would make them 3 times as slow.
const char* core_type() {
  const bool capped = !max_isa_at_load().empty();
  switch (isa_in_force().level) {
    case Isa::kSse4:
      return capped ? "Nehalem" : nullptr;
    case Isa::kAvx2:
      return "Haswell";
    case Isa::kAvx512:
      return capped ? "SkylakeX" : nullptr;
    default:
      return nullptr;
  }
}

void* load() {
  const OnOneCore one_core;
  const TemporaryVariable type("OPENBLAS_CORETYPE", core_type());
  void* library = dlopen((folder_of_this_library() + kFile).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw_missing(dlerror());
  return library;
}

template <typename F>
void find(void* library, const std::string& name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(library, ("scipy_" + name).c_str()));
  if (!function) throw_missing(dlerror());
}

// Loaded once and never closed: code that runs at exit may still need it.
void* openblas() {
  static void* const library = [] {
    void* const loaded = load();
    void (*set_number)(int) = nullptr;
    find(loaded, "openblas_set_num_threads", set_number);
    set_number(1);
    find(loaded, "LAPACKE_set_nancheck", set_number);
    set_number(0);  // factorizations of NaN are NaN, or callers check for it
    return loaded;
  }();
  return library;
}

template <typename T>
Lapack<T> find_functions() {
  void* const library = openblas();
  const std::string letter = sizeof(T) == 4 ? "s" : "d", lapacke = "LAPACKE_" + letter;
  Lapack<T> found;
  find(library, "cblas_" + letter + "gemm", found.gemm);
  find(library, "cblas_" + letter + "trsm", found.trsm);
  find(library, lapacke + "potrf", found.potrf);
  find(library, lapacke + "getrf", found.getrf);
  find(library, lapacke + "geqrf", found.geqrf);
  find(library, lapacke + "orgqr", found.orgqr);
  find(library, lapacke + "syevd", found.syevd);
  find(library, lapacke + "gesdd", found.gesdd);
  find(library, lapacke + "geev", found.geev);
  return found;
}

}  // namespace

template <typename T>
const Lapack<T>& lapack() {
  static const Lapack<T> functions = find_functions<T>();
  return functions;
}
template const Lapack<float>& lapack();
template const Lapack<double>& lapack();

int blas_size(int64_t size) {
  if (size <= std::numeric_limits<int>::max()) return static_cast<int>(size);
  throw Error(ErrorKind::kError,
              {.expected = "matrices with sizes below 2^31 for OpenBLAS", .given = "the size " + std::to_string(size)});
}

}  // namespace hybridnet::kernels
