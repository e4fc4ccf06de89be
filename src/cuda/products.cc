#include "cuda/products.h"

#include <algorithm>
#include <limits>

#include "cuda/library_objects.h"

namespace hybridnet::cuda {

std::string text_of(const device::ProductCall& call) {
  const auto matrix = [](int64_t rows, int64_t columns, bool transposed) {
    return "(" + std::to_string(rows) + ", " + std::to_string(columns) + ")" + (transposed ? " transposed" : "");
  };
  std::string text = std::string(dtype_name(call.dtype)) + " product ";
  if (call.batch > 1) text += "of " + std::to_string(call.batch) + " pairs ";
  return text + matrix(call.transpose_a ? call.k : call.m, call.transpose_a ? call.m : call.k, call.transpose_a) +
         " x " + matrix(call.transpose_b ? call.n : call.k, call.transpose_b ? call.k : call.n, call.transpose_b);
}

namespace {

// The memory that the library may use beside its operands, as its documentation advises for the largest GPUs. A
// constant, so that the choice of an algorithm, and with it the bits of a product, do not depend on the memory that is
// left.
constexpr uint64_t kMostWorkspaceBytes = uint64_t{32} << 20;

// Sums of parts of k: each part keeps its sums in the type of the accumulator, and a second step adds them in a fixed
// order. Excluded are INPLACE, where blocks that take turns by atomic counters add to the output, and OUTPUT_TYPE,
// which rounds the sums of each part to the halves of the output.
constexpr uint32_t kAllowedReductions = kSumsInComputeType;

int data_type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return kFloat16Data;
    case DType::kBFloat16:
      return kBFloat16Data;
    case DType::kFloat64:
      return kFloat64Data;
    default:
      return kFloat32Data;
  }
}

int compute_type_of(const device::ProductCall& call) {
  if (call.dtype == DType::kFloat64) return kComputeFloat64;
  return call.reduced_float32 ? kComputeTf32 : kComputeFloat32;
}

LibraryFailure failure_of(const CublasLt& library, const device::ProductCall& call, const char* function,
                          Result status) {
  const std::string name = library.status_name ? library.status_name(status) : "status";
  return {.function = function,
          .status = name + " (" + std::to_string(status) + ")",
          .given = text_of(call),
          .work = "products",
          .is_of_device = status == kBlasExecutionFailed || status == kBlasInternalError};
}

using Checked = CheckedCalls<CublasLt, device::ProductCall, failure_of>;

// A matrix in row-major memory, which the library reads by columns: as its transpose.
struct Operand {
  int64_t rows, columns;  // in memory
  int64_t row_step;
  int64_t step;  // between matrices of a batch

  // The row length in memory of a single row is arbitrary, and may be less than the row.
  int64_t leading() const { return rows == 1 ? std::max(row_step, columns) : row_step; }
  bool has_separate_rows() const { return leading() >= columns; }
};

struct Operands {
  Operand a, b, c;
  explicit Operands(const device::ProductCall& call)
      : a{call.transpose_a ? call.k : call.m, call.transpose_a ? call.m : call.k, call.lda, call.a_step},
        b{call.transpose_b ? call.n : call.k, call.transpose_b ? call.k : call.n, call.ldb, call.b_step},
        c{call.m, call.n, call.ldc, call.c_step} {}
};

// False for products that our own kernel computes: those without a sum, whose zeros keep their signs there; alpha == 0,
// for which the library does not read A and B, so that NaN would be lost; layouts and sizes that the library's
// interface does not describe.
bool is_supported(const device::ProductCall& call) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const Operands operands(call);
  const bool sizes = std::max({call.m, call.n, call.k, call.batch}) <= kMost &&
                     std::min({call.m, call.n, call.batch}) > 0 && call.k > 1 && call.alpha != 0;
  const bool steps = std::min(call.a_step, call.b_step) >= 0 && (call.batch == 1 || call.c_step > 0);
  return sizes && steps && operands.a.has_separate_rows() && operands.b.has_separate_rows() &&
         operands.c.has_separate_rows();
}

}  // namespace

// The library's operands are ours in the other order: C = A B by rows is C' = B' A' by columns.
class Products::MatmulPlan final : public Plan {
 public:
  explicit MatmulPlan(const CublasLt& library)
      : library_(library),
        descriptor_(library.descriptor_destroy),
        a_(library.layout_destroy),
        b_(library.layout_destroy),
        c_(library.layout_destroy) {}

  // False: the library has no algorithm.
  bool prepare(const device::ProductCall& call, OfDevice& device) {
    const Checked checked(library_, call);
    device_ = &device;
    describe(call, checked);
    Owned<CublasLt::Preference> preference(library_.preference_destroy);
    checked(library_.preference_create, preference.place());
    set_preference(preference.get(), call, checked);
    MatmulChoice choice;
    int found = 0;
    const std::lock_guard lock(device.mutex);
    const Result status = library_.choose(device.handle, descriptor_.get(), b_.get(), a_.get(), c_.get(), c_.get(),
                                          preference.get(), 1, &choice, &found);
    if (status == kBlasNotSupported || (status == kSuccess && (found == 0 || choice.state != kSuccess))) return false;
    if (status != kSuccess) checked.fail(library_.choose.name, status);
    algorithm_ = choice.algorithm;
    workspace_bytes = static_cast<int64_t>(choice.workspace_bytes);
    return true;
  }

  void run(const device::ProductCall& call, void* workspace, StreamHandle stream) const {
    const bool wide = call.dtype == DType::kFloat64;
    const double factors[] = {call.alpha, call.beta};
    const float narrow[] = {static_cast<float>(call.alpha), static_cast<float>(call.beta)};
    const auto scalar = [&](int i) { return wide ? static_cast<const void*>(factors + i) : narrow + i; };
    const std::lock_guard lock(device_->mutex);
    Checked(library_, call)(library_.matmul, device_->handle, descriptor_.get(), scalar(0), call.b, b_.get(), call.a,
                            a_.get(), scalar(1), static_cast<const void*>(call.c), c_.get(), call.c, c_.get(),
                            &algorithm_, workspace, static_cast<size_t>(workspace_bytes), stream);
  }

 private:
  void describe(const device::ProductCall& call, const Checked& checked) {
    const int scale_type = call.dtype == DType::kFloat64 ? kFloat64Data : kFloat32Data;
    checked(library_.descriptor_create, descriptor_.place(), compute_type_of(call), scale_type);
    const int32_t first = call.transpose_b ? kTransposed : kNotTransposed,
                  second = call.transpose_a ? kTransposed : kNotTransposed;
    checked(library_.descriptor_set, descriptor_.get(), kTransposeA, &first, sizeof first);
    checked(library_.descriptor_set, descriptor_.get(), kTransposeB, &second, sizeof second);
    const Operands operands(call);
    describe(operands.a, a_, call, checked);
    describe(operands.b, b_, call, checked);
    describe(operands.c, c_, call, checked);
  }

  void describe(const Operand& operand, Owned<CublasLt::Layout>& layout, const device::ProductCall& call,
                const Checked& checked) const {
    checked(library_.layout_create, layout.place(), data_type_of(call.dtype), static_cast<uint64_t>(operand.columns),
            static_cast<uint64_t>(operand.rows), operand.leading());
    if (call.batch == 1) return;
    const auto count = static_cast<int32_t>(call.batch);
    checked(library_.layout_set, layout.get(), kBatchCount, &count, sizeof count);
    checked(library_.layout_set, layout.get(), kBatchStride, &operand.step, sizeof operand.step);
  }

  void set_preference(CublasLt::Preference preference, const device::ProductCall& call, const Checked& checked) const {
    const auto set = [&](int attribute, auto value) {
      checked(library_.preference_set, preference, attribute, &value, sizeof value);
    };
    set(kMaxWorkspaceBytes, kMostWorkspaceBytes);
    set(kReductionSchemes, kAllowedReductions);
    set(kAlignmentA, static_cast<uint32_t>(alignment_of(call.b)));
    set(kAlignmentB, static_cast<uint32_t>(alignment_of(call.a)));
    set(kAlignmentC, static_cast<uint32_t>(alignment_of(call.c)));
    set(kAlignmentD, static_cast<uint32_t>(alignment_of(call.c)));
  }

  const CublasLt& library_;
  OfDevice* device_ = nullptr;
  Owned<CublasLt::Descriptor> descriptor_;
  Owned<CublasLt::Layout> a_, b_, c_;  // the layouts of our operands
  MatmulAlgorithm algorithm_;
};

std::vector<std::string> cublas_lt_files(const std::string& driver, const std::string& folders, int driver_version) {
  std::vector<int> versions = {12};
  if (driver_version >= 13000) versions.insert(versions.begin(), 13);
  return library_files(kCublasLt, driver, folders, versions);
}

std::unique_ptr<Products> Products::load(const std::vector<std::string>& files, std::string* why_none) {
  std::unique_ptr<Products> products(new Products);
  const std::string file = load_first(kCublasLt, files, products->library_.table(), why_none);
  if (file.empty()) return nullptr;
  products->file_ = file_of(products->library_.version, file);
  return products;
}

std::string Products::version() const {
  const size_t number = library_.version();
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." + std::to_string(number % 100);
}

std::shared_ptr<const Products::Plan> Products::plan(const device::ProductCall& call, int device) {
  if (!is_supported(call)) return nullptr;
  const Plans::Key key{device,
                       static_cast<int64_t>(call.dtype),
                       compute_type_of(call),
                       call.transpose_a,
                       call.transpose_b,
                       call.m,
                       call.n,
                       call.k,
                       call.lda,
                       call.ldb,
                       call.ldc,
                       call.batch,
                       call.a_step,
                       call.b_step,
                       call.c_step,
                       alignment_of(call.a),
                       alignment_of(call.b),
                       alignment_of(call.c)};
  const auto create = [&] {
    CublasLt::Handle handle = nullptr;
    Checked(library_, call)(library_.create, &handle);
    return handle;
  };
  return plans_.get(key, create, [&](OfDevice& of_device) -> std::shared_ptr<const Plan> {
    auto made = std::make_shared<MatmulPlan>(library_);
    if (!made->prepare(call, of_device)) return nullptr;  // the library has no algorithm
    return made;
  });
}

void Products::run(const Plan& plan, const device::ProductCall& call, void* workspace, StreamHandle stream) const {
  static_cast<const MatmulPlan&>(plan).run(call, workspace, stream);
}

void Products::release(int device) noexcept { plans_.release(device, library_.destroy); }

}  // namespace hybridnet::cuda
