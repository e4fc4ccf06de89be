// cuBLASLt's functions for products. Descriptors, sizes, alignment, workspace and memory are checked, when a product is
// asked for and when it is pushed; it runs as late as a kernel does, and its accesses count as those of a kernel.
#include <cstring>

#include "faults.h"
#include "library_objects.h"
#include "matmul.h"
#include "memory.h"
#include "schedule.h"

using namespace standin;

namespace {

constexpr int kDone = 0, kNotReadyStatus = 1, kInvalid = 7, kArchMismatch = 8, kFailed = 13, kInternal = 14,
              kUnsupported = 15;  // cublasStatus_t
constexpr int kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77;
constexpr uint32_t kInplace = 1, kOutputType = 4;  // reduction schemes

struct Handle {
  Context* context = nullptr;
};
struct Descriptor {
  int compute = 0, scale = 0;
  int32_t transpose[2] = {0, 0};
};
struct Layout {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  int32_t count = 1;
  int64_t step = 0;
};
struct Preference {
  uint64_t workspace_bytes = 0;
  uint32_t reductions = 7;
  uint32_t alignment[4] = {256, 256, 256, 256};
};
// cublasLtMatmulAlgo_t: what this library wants to find again when the product is pushed.
struct Algorithm {
  uint64_t problem = 0, workspace_bytes = 0, alignment[4] = {}, scheme = 0, reserved = 0;
};
struct Choice {
  Algorithm algorithm;
  size_t workspace_bytes = 0;
  int state = 0;
  float waves = 0;
  int reserved[4] = {};
};
static_assert(sizeof(Algorithm) == 64 && sizeof(Choice) == 96);

template <class T>
int make(World& w, T** made, T value) {
  if (!made) return kInvalid;
  *made = make_object(w, value);
  return kDone;
}

template <class T>
int destroy(World& w, T* object, const char* function) {
  return destroy_object(w, object, function) ? kDone : kInvalid;
}

template <class Body>
int blas(const char* function, Body body) {
  return library_call(function, kNotReadyStatus, kInternal, body);
}

// Sets an attribute whose size must be that of the member.
template <class T>
int set(T& member, const void* value, size_t bytes, const char* function) {
  if (!value || bytes != sizeof(member)) {
    report(std::string("attribute: ") + function + " gets " + std::to_string(bytes) + " bytes for a value of " +
           std::to_string(sizeof(member)));
    return kInvalid;
  }
  std::memcpy(&member, value, bytes);
  return kDone;
}

int unknown_attribute(const char* function, int attribute) {
  report(std::string("attribute: ") + function + " does not know attribute " + std::to_string(attribute));
  return kInvalid;
}

struct Problem {
  const Descriptor* descriptor;
  const Layout* layouts[4];  // A, B, C, D
};

std::string why_wrong_matrix(const Layout& layout, const char* name) {
  const std::string matrix = std::string("matrix ") + name;
  if (bytes_of(static_cast<Element>(layout.type)) == 0) return matrix + " has type " + std::to_string(layout.type);
  if (layout.rows == 0 || layout.columns == 0) return matrix + " is empty";
  if (layout.leading < static_cast<int64_t>(layout.rows))
    return matrix + " has leading dimension " + std::to_string(layout.leading) + " and " + std::to_string(layout.rows) +
           " rows";
  return layout.count < 1 ? matrix + " has no batch" : "";
}

std::string why_wrong_sizes(const Problem& p) {
  const auto [a, b, c, d] = p.layouts;
  const bool ta = p.descriptor->transpose[0] == 1, tb = p.descriptor->transpose[1] == 1;
  if ((ta ? a->columns : a->rows) != d->rows || (tb ? b->rows : b->columns) != d->columns) return "sizes of D disagree";
  if ((ta ? a->rows : a->columns) != (tb ? b->columns : b->rows)) return "sizes of A and B disagree";
  if (c->rows != d->rows || c->columns != d->columns) return "sizes of C and D disagree";
  if (a->count != d->count || b->count != d->count || c->count != d->count) return "numbers of matrices disagree";
  return d->count > 1 && d->step == 0 ? "all matrices of D are in one place" : "";
}

std::string why_wrong_types(const Problem& p) {
  const int type = p.layouts[3]->type;
  for (const Layout* layout : p.layouts)
    if (layout->type != type) return "types of matrices differ";
  const bool wide = type == static_cast<int>(Element::kFloat64), narrow = type == static_cast<int>(Element::kFloat32);
  const int compute = p.descriptor->compute;
  const bool agrees = wide ? compute == kCompute64 : compute == kCompute32 || (narrow && compute == kComputeTf32);
  if (!agrees)
    return "compute type " + std::to_string(compute) + " is not for matrices of type " + std::to_string(type);
  const int scale = static_cast<int>(wide ? Element::kFloat64 : Element::kFloat32);
  return p.descriptor->scale != scale ? "alpha and beta have type " + std::to_string(p.descriptor->scale) : "";
}

bool is_right(const Problem& p, const char* function) {
  if (!exists(p.descriptor, function)) return false;
  for (const Layout* layout : p.layouts)
    if (!exists(layout, function)) return false;
  std::string wrong;
  for (int i = 0; i < 4 && wrong.empty(); ++i)
    wrong = why_wrong_matrix(*p.layouts[i], i == 0 ? "A" : i == 1 ? "B" : i == 2 ? "C" : "D");
  if (wrong.empty()) wrong = why_wrong_types(p);
  if (wrong.empty()) wrong = why_wrong_sizes(p);
  if (!wrong.empty()) report(std::string("product: ") + function + ": " + wrong);
  return wrong.empty();
}

uint64_t hash_of(const Problem& p) {
  uint64_t hash = 1;
  const auto add = [&hash](uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15u; };
  for (const int value : {p.descriptor->compute, p.descriptor->transpose[0], p.descriptor->transpose[1]})
    add(static_cast<uint64_t>(value));
  for (const Layout* layout : p.layouts) {
    add(layout->rows), add(layout->columns), add(static_cast<uint64_t>(layout->leading));
    add(static_cast<uint64_t>(layout->count)), add(static_cast<uint64_t>(layout->step));
    add(static_cast<uint64_t>(layout->type));
  }
  return hash;
}

Matrix matrix_of(const Layout& layout, const void* address) {
  return {reinterpret_cast<uintptr_t>(address),
          static_cast<int64_t>(layout.rows),
          static_cast<int64_t>(layout.columns),
          layout.leading,
          layout.count,
          layout.step};
}

Bytes bytes_of(const Matrix& matrix, Element element) {
  return {matrix.address, matrix.address + static_cast<uint64_t>(matrix.elements()) * bytes_of(element)};
}

// The operands and the workspace are memory of the device, aligned as the algorithm was promised, and apart.
bool has_right_memory(World& w, const Matmul& p, const Algorithm& algorithm, uint64_t workspace, size_t workspace_bytes,
                      const Context& context) {
  const Matrix* const matrices[] = {&p.a, &p.b, &p.c, &p.d};
  const char* const names[] = {"A", "B", "C", "D"};
  const Bytes room{workspace, workspace + algorithm.workspace_bytes}, target = bytes_of(p.d, p.element);
  for (int i = 0; i < 4; ++i) {
    const Bytes bytes = bytes_of(*matrices[i], p.element);
    if (!is_device_memory(w, bytes, context, "cublasLtMatmul", names[i])) return false;
    if (bytes.begin % algorithm.alignment[i] != 0) {
      report(std::string("alignment: cublasLtMatmul gets ") + names[i] + " at " + hex(bytes.begin) +
             ", and its algorithm was chosen for a multiple of " + std::to_string(algorithm.alignment[i]));
      return false;
    }
    if ((i < 2 && bytes.meets(target)) || bytes.meets(room)) {
      report(std::string("overlap: ") + names[i] + " of cublasLtMatmul shares memory with D or the workspace");
      return false;
    }
  }
  if (workspace_bytes < algorithm.workspace_bytes || (workspace_bytes > 0 && workspace % 256 != 0)) {
    report("workspace: cublasLtMatmul gets " + std::to_string(workspace_bytes) + " bytes at " + hex(workspace) +
           ", and its algorithm needs " + std::to_string(algorithm.workspace_bytes));
    return false;
  }
  return workspace_bytes == 0 ||
         is_device_memory(w, {workspace, workspace + workspace_bytes}, context, "cublasLtMatmul", "the workspace");
}

// Runs as a kernel of the library would: computes the product, and writes all of its workspace.
Result run(World& w, const Matmul& product, uint64_t workspace, size_t workspace_bytes, int device) {
  return run_guarded(w, "cublasLtMatmul", device, [&] {
    std::memset(reinterpret_cast<void*>(workspace), 0x5a, workspace_bytes);
    multiply(product);
    return kSuccess;
  });
}

double scalar(const void* from, Element element) {
  if (element == Element::kFloat64) return *static_cast<const double*>(from);
  return *static_cast<const float*>(from);
}

}  // namespace

extern "C" {

size_t cublasLtGetVersion() { return 130100; }
const char* cublasLtGetStatusName(int status) {
  switch (status) {
    case kNotReadyStatus:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case kInvalid:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case kArchMismatch:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case kFailed:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case kInternal:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case kUnsupported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "unknown";
  }
}

int cublasLtCreate(Handle** handle) {
  return blas(__func__, [&](World& w) { return t_context ? make(w, handle, Handle{t_context}) : kNotReadyStatus; });
}
int cublasLtDestroy(Handle* handle) {
  return blas(__func__, [&](World& w) { return destroy(w, handle, "cublasLtDestroy"); });
}
int cublasLtMatmulDescCreate(Descriptor** made, int compute, int scale) {
  return blas(__func__, [&](World& w) { return make(w, made, Descriptor{compute, scale}); });
}
int cublasLtMatmulDescDestroy(Descriptor* descriptor) {
  return blas(__func__, [&](World& w) { return destroy(w, descriptor, "cublasLtMatmulDescDestroy"); });
}
int cublasLtMatmulDescSetAttribute(Descriptor* descriptor, int attribute, const void* value, size_t bytes) {
  return blas(__func__, [&](World&) {
    const char* const function = "cublasLtMatmulDescSetAttribute";
    if (!exists(descriptor, function)) return kInvalid;
    if (attribute != 3 && attribute != 4) return unknown_attribute(function, attribute);
    return set(descriptor->transpose[attribute - 3], value, bytes, function);
  });
}
int cublasLtMatrixLayoutCreate(Layout** made, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  return blas(__func__, [&](World& w) { return make(w, made, Layout{type, rows, columns, leading}); });
}
int cublasLtMatrixLayoutDestroy(Layout* layout) {
  return blas(__func__, [&](World& w) { return destroy(w, layout, "cublasLtMatrixLayoutDestroy"); });
}
int cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute, const void* value, size_t bytes) {
  return blas(__func__, [&](World&) {
    const char* const function = "cublasLtMatrixLayoutSetAttribute";
    if (!exists(layout, function)) return kInvalid;
    if (attribute == 5) return set(layout->count, value, bytes, function);
    if (attribute == 6) return set(layout->step, value, bytes, function);
    return unknown_attribute(function, attribute);
  });
}
int cublasLtMatmulPreferenceCreate(Preference** made) {
  return blas(__func__, [&](World& w) { return make(w, made, Preference{}); });
}
int cublasLtMatmulPreferenceDestroy(Preference* preference) {
  return blas(__func__, [&](World& w) { return destroy(w, preference, "cublasLtMatmulPreferenceDestroy"); });
}
int cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, const void* value, size_t bytes) {
  return blas(__func__, [&](World&) {
    const char* const function = "cublasLtMatmulPreferenceSetAttribute";
    if (!exists(preference, function)) return kInvalid;
    if (attribute == 1) return set(preference->workspace_bytes, value, bytes, function);
    if (attribute == 3) return set(preference->reductions, value, bytes, function);
    if (attribute >= 5 && attribute <= 8) return set(preference->alignment[attribute - 5], value, bytes, function);
    return unknown_attribute(function, attribute);
  });
}

// The algorithm needs the alignment that it is promised, a workspace as large as D in float32, and takes a scheme that
// sums in no fixed order if the caller allows one.
int cublasLtMatmulAlgoGetHeuristic(Handle* handle, Descriptor* descriptor, Layout* a, Layout* b, Layout* c, Layout* d,
                                   Preference* preference, int wanted, Choice* choices, int* found) {
  return blas(__func__, [&](World& w) {
    const char* const function = "cublasLtMatmulAlgoGetHeuristic";
    const Problem problem{descriptor, {a, b, c, d}};
    if (!exists(handle, function) || !exists(preference, function) || !is_right(problem, function)) return kInvalid;
    if (wanted < 1 || !choices || !found) return kInvalid;
    ++w.counters.product_choices;
    Choice choice;
    choice.algorithm.problem = hash_of(problem);
    for (int i = 0; i < 4; ++i) choice.algorithm.alignment[i] = preference->alignment[i];
    choice.algorithm.scheme = preference->reductions & (kInplace | kOutputType);
    const uint64_t bytes = d->rows * d->columns * static_cast<uint64_t>(d->count) * 4;
    if (bytes <= preference->workspace_bytes) choice.algorithm.workspace_bytes = choice.workspace_bytes = bytes;
    choices[0] = choice;
    *found = 1;
    return kDone;
  });
}

int cublasLtMatmul(Handle* handle, Descriptor* descriptor, const void* alpha, const void* a, Layout* a_layout,
                   const void* b, Layout* b_layout, const void* beta, const void* c, Layout* c_layout, void* d,
                   Layout* d_layout, const Algorithm* algorithm, void* workspace, size_t workspace_bytes,
                   void* stream_handle) {
  return blas(__func__, [&](World& w) {
    const char* const function = "cublasLtMatmul";
    const Problem problem{descriptor, {a_layout, b_layout, c_layout, d_layout}};
    if (!exists(handle, function) || !is_right(problem, function)) return kInvalid;
    if (w.broken != kSuccess) return kFailed;
    Result result = kSuccess;
    Stream* const stream = stream_of(w, stream_handle, function, &result);
    if (!stream) return kInvalid;
    if (stream->context != handle->context || t_context != handle->context) {
      report("wrong context: cublasLtMatmul gets a handle, a stream or a current context of another device");
      return kArchMismatch;
    }
    if (!algorithm || algorithm->problem != hash_of(problem)) {
      report("algorithm: cublasLtMatmul gets an algorithm that was chosen for another product");
      return kUnsupported;
    }
    Matmul product{matrix_of(*a_layout, a), matrix_of(*b_layout, b), matrix_of(*c_layout, c), matrix_of(*d_layout, d)};
    product.transpose_a = descriptor->transpose[0] == 1;
    product.transpose_b = descriptor->transpose[1] == 1;
    product.tf32 = descriptor->compute == kComputeTf32;
    product.element = static_cast<Element>(d_layout->type);
    if (!alpha || !beta || in_device_range(reinterpret_cast<uintptr_t>(alpha)) ||
        in_device_range(reinterpret_cast<uintptr_t>(beta))) {
      report("pointer: alpha and beta of cublasLtMatmul are not memory of the host");
      return kInvalid;
    }
    product.alpha = scalar(alpha, product.element);
    product.beta = scalar(beta, product.element);
    if (algorithm->scheme != 0) product.error = 1e-6 * static_cast<double>(w.random() % 1024) / 1024;
    const auto room = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(workspace));
    const Context& context = *handle->context;
    if (!has_right_memory(w, product, *algorithm, room, workspace_bytes, context)) return kInvalid;
    ++w.counters.products;
    w.counters.tf32_products += product.tf32 ? 1 : 0;
    Work work;
    work.name = function;
    work.run = [&w, product, room, used = algorithm->workspace_bytes, device = context.device](const Work&) {
      return run(w, product, room, used, device);
    };
    push(w, *stream, std::move(work));
    return kDone;
  });
}

}  // extern "C"
