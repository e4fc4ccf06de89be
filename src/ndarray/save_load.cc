// The .params format: see docs/formats.md. Nothing is allocated before the file has shown that it holds that many
// bytes.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/checked_size.h"
#include "hybridnet/ndarray.h"

namespace hybridnet {
namespace {

constexpr uint64_t kListMagic = 0x112;
constexpr uint32_t kV1 = 0xF993FAC8, kV2 = 0xF993FAC9, kV3 = 0xF993FACA;

// Bounded reading from memory or a file; knows where it is for error texts.
class Reader {
 public:
  Reader(std::string_view bytes, std::string what) : bytes_(bytes), total_(bytes.size()), what_(std::move(what)) {}
  Reader(std::FILE* file, uint64_t total, std::string what) : file_(file), total_(total), what_(std::move(what)) {}

  uint64_t remaining() const { return total_ - offset_; }
  void read(void* target, uint64_t count, const char* field) {
    if (count > remaining()) {
      fail(std::string("the file ends inside ") + field, std::to_string(count) + " bytes of " + field,
           std::to_string(remaining()) + " bytes left");
    }
    if (count > 0) {
      if (file_) {
        if (std::fread(target, 1, count, file_) != count) fail(std::string("reading ") + field + " failed", "", "");
      } else {
        std::memcpy(target, bytes_.data() + offset_, count);
      }
    }
    offset_ += count;
  }
  template <typename T>
  T number(const char* field) {
    T value;
    read(&value, sizeof(T), field);
    return value;
  }
  [[noreturn]] void fail(const std::string& message, const std::string& expected, const std::string& given) const {
    ErrorFields e;
    e.input = what_;
    e.message = message + " (at byte " + std::to_string(offset_) + " of " + std::to_string(total_) + ")";
    e.expected = expected;
    e.given = given;
    e.fix = "the file is damaged or is no .params file; save or copy it again";
    throw FormatError(std::move(e));
  }

 private:
  std::string_view bytes_;
  std::FILE* file_ = nullptr;
  uint64_t offset_ = 0, total_;
  std::string what_;
};

template <typename Dim>
Shape read_dims(Reader& r, int64_t ndim) {
  if (ndim < 0 || ndim > kMaxDims)
    r.fail("impossible number of dimensions", "0 to " + std::to_string(kMaxDims), std::to_string(ndim));
  Shape shape = Shape::unknown(static_cast<int>(ndim));
  int64_t elements = 1;
  for (int i = 0; i < ndim; ++i) {
    const int64_t dim = static_cast<int64_t>(r.number<Dim>("a shape"));
    if (dim < 0) r.fail("a negative size in a shape", "a size >= 0", std::to_string(dim));
    shape[i] = dim;
    if (__builtin_mul_overflow(elements, dim == 0 ? 1 : dim, &elements) || elements > kMaxElements)
      r.fail("an array larger than any memory", "at most 2**56 elements, sizes of 0 left out", "shape " + shape.str());
  }
  return shape;
}

Shape read_shape(Reader& r) {
  const int32_t ndim = r.number<int32_t>("a shape's rank");
  return read_dims<int64_t>(r, ndim);
}

DType read_dtype(Reader& r) {
  const int32_t code = r.number<int32_t>("a dtype code");
  if (!dtype_valid_code(code)) r.fail("unknown dtype code", "0 to 7 or 12", std::to_string(code));
  return static_cast<DType>(code);
}

NDArray read_data(Reader& r, const TensorSpec& spec) {
  int64_t bytes;
  if (__builtin_mul_overflow(spec.shape.size(), dtype_size(spec.dtype), &bytes) ||
      static_cast<uint64_t>(bytes) > r.remaining()) {
    r.fail("the file ends inside an array's data", spec.str() + " needs more bytes",
           std::to_string(r.remaining()) + " bytes left");
  }
  NDArray array = NDArray::empty(spec);
  r.read(array.data(), static_cast<uint64_t>(bytes), "an array's data");
  return array;
}

void read_device(Reader& r) {  // where the array lived when it was saved: of no use here
  r.number<int32_t>("a device");
  r.number<int32_t>("a device");
}

template <typename F>
void for_each_index(Reader& r, const NDArray& indices, int64_t bound, F&& f) {
  const auto* values = static_cast<const int64_t*>(indices.data());
  for (int64_t i = 0; i < indices.size(); ++i) {
    if (values[i] < 0 || values[i] >= bound)
      r.fail("an index of a sparse array is out of bounds", "0 to " + std::to_string(bound - 1),
             std::to_string(values[i]));
    f(i, values[i]);
  }
}

NDArray zeros_checked(Reader& r, const TensorSpec& spec) {
  // A sparse array may claim a dense size far beyond the file's: bounded so that a small file cannot take all memory.
  constexpr int64_t kDenseLimit = int64_t{1} << 36;
  int64_t bytes;
  if (__builtin_mul_overflow(spec.shape.size(), dtype_size(spec.dtype), &bytes) || bytes > kDenseLimit)
    r.fail("the dense form of a sparse array is too large", "at most 64 GiB", spec.str());
  NDArray dense = NDArray::empty(spec);
  if (bytes > 0) std::memset(dense.data(), 0, static_cast<size_t>(bytes));
  return dense;
}

NDArray dense_from_row_sparse(Reader& r, const SparseParts& parts, const Shape& shape) {
  const NDArray& indices = parts.aux[0];
  if (shape.ndim() < 1 || indices.dtype() != DType::kInt64 || parts.data.ndim() != shape.ndim() ||
      parts.data.shape()[0] != indices.size() ||
      parts.data.shape().size(1, shape.ndim()) != shape.size(1, shape.ndim())) {
    r.fail("the parts of a row_sparse array do not fit together", "data (n, ...), int64 indices (n,)",
           parts.data.spec().str() + ", " + indices.spec().str());
  }
  NDArray dense = zeros_checked(r, {shape, parts.data.dtype()});
  const int64_t row = shape.size(1, shape.ndim()) * dtype_size(parts.data.dtype());
  for_each_index(r, indices, shape[0], [&](int64_t i, int64_t target) {
    std::memcpy(static_cast<char*>(dense.data()) + target * row, static_cast<char*>(parts.data.data()) + i * row,
                static_cast<size_t>(row));
  });
  return dense;
}

NDArray dense_from_csr(Reader& r, const SparseParts& parts, const Shape& shape) {
  const NDArray& indptr = parts.aux[0];
  const NDArray& indices = parts.aux[1];
  if (shape.ndim() != 2 || indptr.dtype() != DType::kInt64 || indices.dtype() != DType::kInt64 ||
      indptr.size() - 1 != shape[0] || parts.data.size() != indices.size()) {
    r.fail("the parts of a csr array do not fit together", "indptr (rows + 1,), indices and data of one length",
           indptr.spec().str() + ", " + indices.spec().str() + ", " + parts.data.spec().str());
  }
  NDArray dense = zeros_checked(r, {shape, parts.data.dtype()});
  const int64_t item = dtype_size(parts.data.dtype());
  const auto* starts = static_cast<const int64_t*>(indptr.data());
  if (starts[0] != 0) r.fail("indptr of a csr array does not begin with 0", "0", std::to_string(starts[0]));
  for (int64_t row = 0; row < shape[0]; ++row)
    if (starts[row] < 0 || starts[row] > starts[row + 1] || starts[row + 1] > indices.size())
      r.fail("indptr of a csr array is not ascending within its data", "", std::to_string(starts[row + 1]));
  int64_t row = 0;
  for_each_index(r, indices, shape[1], [&](int64_t i, int64_t column) {
    while (row < shape[0] && i >= starts[row + 1]) ++row;
    if (row >= shape[0]) return;
    std::memcpy(static_cast<char*>(dense.data()) + (row * shape[1] + column) * item,
                static_cast<char*>(parts.data.data()) + i * item, static_cast<size_t>(item));
  });
  return dense;
}

struct Record {
  NDArray array;
  std::unique_ptr<SparseParts> sparse;
};

Record read_sparse(Reader& r, int32_t storage_type) {
  auto parts = std::make_unique<SparseParts>();
  const int num_aux = storage_type;  // row_sparse has one index array, csr two
  parts->storage_type = storage_type == 1 ? "row_sparse" : "csr";
  const Shape storage_shape = read_shape(r);
  const Shape shape = read_shape(r);
  read_device(r);
  const DType dtype = read_dtype(r);
  std::vector<TensorSpec> aux(static_cast<size_t>(num_aux));
  for (TensorSpec& s : aux) {
    s.dtype = read_dtype(r);
    s.shape = read_shape(r);
  }
  parts->data = read_data(r, {storage_shape, dtype});
  for (const TensorSpec& s : aux) parts->aux.push_back(read_data(r, s));
  Record record;
  record.array = storage_type == 1 ? dense_from_row_sparse(r, *parts, shape) : dense_from_csr(r, *parts, shape);
  record.sparse = std::move(parts);
  return record;
}

Record read_record(Reader& r) {
  Record record;
  const uint32_t magic = r.number<uint32_t>("an array's magic number");
  if (magic == kV2 || magic == kV3) {
    const int32_t storage_type = r.number<int32_t>("a storage type");
    if (storage_type < 0 || storage_type > 2)
      r.fail("unknown storage type", "0 (dense), 1 (row_sparse) or 2 (csr)", std::to_string(storage_type));
    if (storage_type != 0) return read_sparse(r, storage_type);
    const Shape shape = read_shape(r);
    if (magic == kV2 && shape.ndim() == 0) return record;  // an array without value
    read_device(r);
    const DType dtype = read_dtype(r);
    record.array = read_data(r, {shape, dtype});
    return record;
  }
  const Shape shape = magic == kV1 ? read_shape(r) : read_dims<uint32_t>(r, magic);
  if (shape.ndim() == 0) return record;
  read_device(r);
  const DType dtype = read_dtype(r);
  record.array = read_data(r, {shape, dtype});
  return record;
}

LoadedArrays read_all(Reader& r) {
  LoadedArrays loaded;
  if (const uint64_t magic = r.number<uint64_t>("the file's magic number"); magic != kListMagic)
    r.fail("this is no .params file: wrong magic number", "0x112", std::to_string(magic));
  r.number<uint64_t>("the reserved word");
  const uint64_t count = r.number<uint64_t>("the number of arrays");
  if (count > r.remaining() / 8) r.fail("more arrays than the file can hold", "", std::to_string(count));
  for (uint64_t i = 0; i < count; ++i) {
    Record record = read_record(r);
    loaded.arrays.push_back(std::move(record.array));
    loaded.sparse.push_back(std::move(record.sparse));
  }
  const uint64_t names = r.number<uint64_t>("the number of names");
  if (names != 0 && names != count)
    r.fail("the number of names is neither 0 nor the number of arrays", std::to_string(count), std::to_string(names));
  loaded.named = names != 0;
  for (uint64_t i = 0; i < names; ++i) {
    const uint64_t length = r.number<uint64_t>("a name's length");
    if (length > r.remaining()) r.fail("a name is longer than the file", "", std::to_string(length));
    std::string name(length, '\0');
    r.read(name.data(), length, "a name");
    loaded.names.push_back(std::move(name));
  }
  return loaded;
}

[[noreturn]] void file_error(const std::string& path, const char* doing, const char* fix) {
  throw FileError(
      {.input = path, .message = std::string("cannot ") + doing + " the file: " + std::strerror(errno), .fix = fix});
}

class Writer {
 public:
  explicit Writer(std::string* bytes) : bytes_(bytes) {}
  explicit Writer(std::FILE* file) : file_(file) {}
  void write(const void* data, size_t count) {
    if (count == 0) return;
    if (bytes_) {
      bytes_->append(static_cast<const char*>(data), count);
    } else {
      ok_ &= std::fwrite(data, 1, count, file_) == count;
    }
  }
  template <typename T>
  void number(T value) {
    write(&value, sizeof(T));
  }
  bool ok() const { return ok_; }

 private:
  std::string* bytes_ = nullptr;
  std::FILE* file_ = nullptr;
  bool ok_ = true;
};

void write_all(Writer& w, const std::vector<NDArray>& arrays, const std::vector<std::string>& names, bool numpy_shape) {
  w.number<uint64_t>(kListMagic);
  w.number<uint64_t>(0);
  w.number<uint64_t>(arrays.size());
  for (const NDArray& a : arrays) {
    a.wait_to_read();
    const bool needs_v3 = a.ndim() == 0 || a.size() == 0;  // V2 would read a scalar as "no value"
    w.number<uint32_t>(numpy_shape || needs_v3 ? kV3 : kV2);
    w.number<int32_t>(0);
    w.number<int32_t>(a.ndim());
    for (int64_t d : a.shape()) w.number<int64_t>(d);
    w.number<int32_t>(1);  // cpu(0): readers without the original device would have to guess otherwise
    w.number<int32_t>(0);
    w.number<int32_t>(static_cast<int32_t>(a.dtype()));
    w.write(a.data(), static_cast<size_t>(a.bytes()));
  }
  w.number<uint64_t>(names.size());
  for (const std::string& name : names) {
    w.number<uint64_t>(name.size());
    w.write(name.data(), name.size());
  }
}

void check_arguments(const std::vector<NDArray>& arrays, const std::vector<std::string>& names) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (!arrays[i])
      throw TypeError({.input = "arrays[" + std::to_string(i) + "]", .expected = "an array", .given = "none"});
  }
  if (!names.empty() && names.size() != arrays.size()) {
    throw ValueError({.input = "names",
                      .expected = std::to_string(arrays.size()) + " names, one per array, or none",
                      .given = std::to_string(names.size())});
  }
}

struct FileCloser {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

}  // namespace

LoadedArrays load_arrays_from_buffer(std::string_view bytes, const std::string& what) {
  Reader reader(bytes, what);
  return read_all(reader);
}

LoadedArrays load_arrays(const std::string& path) {
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) file_error(path, "open", "check the path and the working directory");
  if (std::fseek(file.get(), 0, SEEK_END) != 0) file_error(path, "read", "name a regular file");
  const long size = std::ftell(file.get());
  if (size < 0 || std::fseek(file.get(), 0, SEEK_SET) != 0) file_error(path, "read", "name a regular file");
  Reader reader(file.get(), static_cast<uint64_t>(size), path);
  return read_all(reader);
}

std::string save_arrays_to_buffer(const std::vector<NDArray>& arrays, const std::vector<std::string>& names,
                                  bool numpy_shape) {
  check_arguments(arrays, names);
  std::string bytes;
  Writer writer(&bytes);
  write_all(writer, arrays, names, numpy_shape);
  return bytes;
}

void save_arrays(const std::string& path, const std::vector<NDArray>& arrays, const std::vector<std::string>& names,
                 bool numpy_shape) {
  check_arguments(arrays, names);
  // Written beside the target and renamed at the end: a failure in the middle leaves the old file as it was.
  const std::string part = path + ".part";
  File file(std::fopen(part.c_str(), "wb"));
  if (!file) file_error(path, "write", "check that the folder exists and may be written");
  Writer writer(file.get());
  write_all(writer, arrays, names, numpy_shape);
  const bool flushed = std::fflush(file.get()) == 0;
  file.reset();
  if (!writer.ok() || !flushed || std::rename(part.c_str(), path.c_str()) != 0) {
    const int why = errno;
    std::remove(part.c_str());
    errno = why;
    file_error(path, "write", "check the free space of the disk");
  }
}

}  // namespace hybridnet
