// Reads and writes the .params format, see docs/formats.md. Memory is allocated only after a check that the file holds
// that many bytes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/checked_size.h"
#include "base/replace_file.h"
#include "hybridnet/env.h"
#include "hybridnet/ndarray.h"
#include "ndarray/device_work.h"

namespace hybridnet {
namespace {

constexpr uint64_t kListMagic = 0x112;
constexpr uint32_t kV1 = 0xF993FAC8, kV2 = 0xF993FAC9, kV3 = 0xF993FACA;

// True if users other than this one, root and its own group may write the file. Truncating a mapped file crashes the
// process.
bool others_may_write(const struct stat& status) {
  const bool is_owned = status.st_uid == geteuid() || status.st_uid == 0;
  const bool group_is_own = status.st_gid == getegid() || (status.st_mode & S_IWGRP) == 0;
  return !is_owned || !group_is_own || (status.st_mode & S_IWOTH) != 0;
}

// A file in memory, whose pages are shared with other processes until they are written.
class MappedFile {
 public:
  // Null for files that cannot be mapped (pipes, empty files, some file systems) or that others may write.
  static std::shared_ptr<const MappedFile> open(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return nullptr;
    struct stat status {};
    void* data = MAP_FAILED;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 && !others_may_write(status))
      data = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                  file, 0);
    close(file);
    if (data == MAP_FAILED) return nullptr;
    return std::make_shared<const MappedFile>(data, static_cast<size_t>(status.st_size));
  }
  MappedFile(void* data, size_t size) : data_(data), size_(size) {}
  ~MappedFile() { munmap(data_, size_); }
  MappedFile(const MappedFile&) = delete;
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }
  void* at(uint64_t offset) const { return static_cast<char*>(data_) + offset; }

 private:
  void* const data_;
  const size_t size_;
};

// Smaller arrays are copied: they would share most of their pages with their neighbors.
constexpr int64_t kMapFrom = 64 << 10;

// Bounded reading from memory or a file; keeps the position for error texts.
class Reader {
 public:
  Reader(std::shared_ptr<const MappedFile> mapping, std::string what) : Reader(mapping->bytes(), std::move(what)) {
    mapping_ = std::move(mapping);
  }
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
  // The next values as a part of the mapped file; a null handle if they are small, not aligned, or not mapped.
  NDArray mapped(const TensorSpec& spec) {
    const int64_t bytes = spec.bytes();
    if (!mapping_ || bytes < kMapFrom || offset_ % static_cast<uint64_t>(dtype_size(spec.dtype)) != 0) return {};
    void* const data = mapping_->at(offset_);
    offset_ += static_cast<uint64_t>(bytes);
    return NDArray::mapped(data, spec, mapping_);
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
  std::shared_ptr<const MappedFile> mapping_;
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

// may_map: false for parts of sparse arrays, which are copied so that checked indices cannot change.
NDArray read_data(Reader& r, const TensorSpec& spec, bool may_map) {
  int64_t bytes;
  if (__builtin_mul_overflow(spec.shape.size(), dtype_size(spec.dtype), &bytes) ||
      static_cast<uint64_t>(bytes) > r.remaining()) {
    r.fail("the file ends inside an array's data", spec.str() + " needs more bytes",
           std::to_string(r.remaining()) + " bytes left");
  }
  if (may_map) {
    if (NDArray part = r.mapped(spec)) return part;
  }
  NDArray array = NDArray::empty(spec);
  r.read(array.data(), static_cast<uint64_t>(bytes), "an array's data");
  return array;
}

void read_device(Reader& r) {  // skips the device of the array when it was saved
  r.number<int32_t>("a device");
  r.number<int32_t>("a device");
}

void check_indices(Reader& r, const NDArray& indices, int64_t bound) {
  const auto* values = static_cast<const int64_t*>(indices.data());
  for (int64_t i = 0; i < indices.size(); ++i) {
    if (values[i] < 0 || values[i] >= bound)
      r.fail("an index of a sparse array is out of bounds", "0 to " + std::to_string(bound - 1),
             std::to_string(values[i]));
  }
}

void check_row_sparse(Reader& r, const SparseStorage& parts, const Shape& shape) {
  if (shape.ndim() < 1 || parts.indices.dtype() != DType::kInt64 || parts.data.ndim() != shape.ndim() ||
      parts.data.shape()[0] != parts.indices.size() ||
      parts.data.shape().size(1, shape.ndim()) != shape.size(1, shape.ndim())) {
    r.fail("the parts of a row_sparse array do not fit together", "data (n, ...), int64 indices (n,)",
           parts.data.spec().str() + ", " + parts.indices.spec().str());
  }
  check_indices(r, parts.indices, shape[0]);
}

void check_csr(Reader& r, const SparseStorage& parts, const Shape& shape) {
  const NDArray &indptr = parts.indptr, &indices = parts.indices;
  if (shape.ndim() != 2 || indptr.dtype() != DType::kInt64 || indices.dtype() != DType::kInt64 ||
      indptr.size() - 1 != shape[0] || parts.data.size() != indices.size()) {
    r.fail("the parts of a csr array do not fit together", "indptr (rows + 1,), indices and data of one length",
           indptr.spec().str() + ", " + indices.spec().str() + ", " + parts.data.spec().str());
  }
  const auto* starts = static_cast<const int64_t*>(indptr.data());
  if (starts[0] != 0) r.fail("indptr of a csr array does not begin with 0", "0", std::to_string(starts[0]));
  for (int64_t row = 0; row < shape[0]; ++row)
    if (starts[row] < 0 || starts[row] > starts[row + 1] || starts[row + 1] > indices.size())
      r.fail("indptr of a csr array is not ascending within its data", "", std::to_string(starts[row + 1]));
  check_indices(r, indices, shape[1]);
}

NDArray read_sparse(Reader& r, StorageType type) {
  const Shape storage_shape = read_shape(r);
  const Shape shape = read_shape(r);
  read_device(r);
  const DType dtype = read_dtype(r);
  std::vector<TensorSpec> aux(type == StorageType::kCsr ? 2 : 1);  // csr: indptr, indices; row_sparse: indices
  for (TensorSpec& s : aux) {
    s.dtype = read_dtype(r);
    s.shape = read_shape(r);
  }
  const NDArray data = read_data(r, {storage_shape, dtype}, false);
  std::vector<NDArray> index;
  for (const TensorSpec& s : aux) index.push_back(read_data(r, s, false));
  Ref<SparseStorage> parts = make_ref<SparseStorage>(type, data, index.back());
  if (type == StorageType::kCsr) {
    parts->indptr = index.front();
    check_csr(r, *parts, shape);
  } else {
    check_row_sparse(r, *parts, shape);
  }
  return NDArray::sparse({shape, dtype}, Ref<Object>(parts.get()));
}

// Returns a null handle for a record without value.
NDArray read_record(Reader& r) {
  const uint32_t magic = r.number<uint32_t>("an array's magic number");
  if (magic == kV2 || magic == kV3) {
    const int32_t storage_type = r.number<int32_t>("a storage type");
    if (storage_type < 0 || storage_type > 2)
      r.fail("unknown storage type", "0 (dense), 1 (row_sparse) or 2 (csr)", std::to_string(storage_type));
    if (storage_type != 0) return read_sparse(r, static_cast<StorageType>(storage_type));
    const Shape shape = read_shape(r);
    if (magic == kV2 && shape.ndim() == 0) return {};  // an array without value
    read_device(r);
    const DType dtype = read_dtype(r);
    return read_data(r, {shape, dtype}, true);
  }
  const Shape shape = magic == kV1 ? read_shape(r) : read_dims<uint32_t>(r, magic);
  if (shape.ndim() == 0) return {};
  read_device(r);
  const DType dtype = read_dtype(r);
  return read_data(r, {shape, dtype}, true);
}

LoadedArrays read_all(Reader& r) {
  LoadedArrays loaded;
  if (const uint64_t magic = r.number<uint64_t>("the file's magic number"); magic != kListMagic)
    r.fail("this is no .params file: wrong magic number", "0x112", std::to_string(magic));
  r.number<uint64_t>("the reserved word");
  const uint64_t count = r.number<uint64_t>("the number of arrays");
  if (count > r.remaining() / 8) r.fail("more arrays than the file can hold", "", std::to_string(count));
  for (uint64_t i = 0; i < count; ++i) {
    loaded.arrays.push_back(read_record(r));
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

void write_shape(Writer& w, const Shape& shape) {
  w.number<int32_t>(shape.ndim());
  for (int64_t d : shape) w.number<int64_t>(d);
}

void write_device(Writer& w) {  // cpu(0): readers without the original device would have to guess otherwise
  w.number<int32_t>(1);
  w.number<int32_t>(0);
}

void write_dtype(Writer& w, DType dtype) { w.number<int32_t>(static_cast<int32_t>(dtype)); }

void write_values(Writer& w, const NDArray& a) { w.write(a.data(), static_cast<size_t>(a.bytes())); }

// MXNet reads sparse records of V2 only.
void write_sparse(Writer& w, const NDArray& a) {
  const SparseStorage& parts = sparse_storage(a);
  std::vector<NDArray> aux;
  if (parts.type == StorageType::kCsr) aux.push_back(parts.indptr);
  aux.push_back(parts.indices);
  parts.data.wait_to_read();
  w.number<uint32_t>(kV2);
  w.number<int32_t>(static_cast<int32_t>(parts.type));
  write_shape(w, parts.data.shape());
  write_shape(w, a.shape());
  write_device(w);
  write_dtype(w, a.dtype());
  for (const NDArray& index : aux) {
    index.wait_to_read();
    write_dtype(w, index.dtype());
    write_shape(w, index.shape());
  }
  write_values(w, parts.data);
  for (const NDArray& index : aux) write_values(w, index);
}

void write_dense(Writer& w, const NDArray& given, bool numpy_shape) {
  const NDArray a = on_cpu(given);
  a.wait_for_values();
  const PinnedMemory pinned(a);
  const bool needs_v3 = a.ndim() == 0 || a.size() == 0;  // V2 would read a scalar as "no value"
  w.number<uint32_t>(numpy_shape || needs_v3 ? kV3 : kV2);
  w.number<int32_t>(static_cast<int32_t>(StorageType::kDefault));
  write_shape(w, a.shape());
  write_device(w);
  write_dtype(w, a.dtype());
  write_values(w, a);
}

void write_all(Writer& w, const std::vector<NDArray>& arrays, const std::vector<std::string>& names, bool numpy_shape) {
  w.number<uint64_t>(kListMagic);
  w.number<uint64_t>(0);
  w.number<uint64_t>(arrays.size());
  for (const NDArray& a : arrays) {
    if (a.is_sparse())
      write_sparse(w, a);
    else
      write_dense(w, a, numpy_shape);
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

LoadedArrays load_arrays(const std::string& path, bool mapped) {
  if (mapped && environment().map_params) {
    if (std::shared_ptr<const MappedFile> mapping = MappedFile::open(path)) {
      Reader reader(std::move(mapping), path);
      return read_all(reader);
    }
  }
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) throw_file_error(path, "open", "check the path and the working directory");
  if (std::fseek(file.get(), 0, SEEK_END) != 0) throw_file_error(path, "read", "name a regular file");
  const long size = std::ftell(file.get());
  if (size < 0 || std::fseek(file.get(), 0, SEEK_SET) != 0) throw_file_error(path, "read", "name a regular file");
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
  replace_file(path, [&](std::FILE* file) {
    Writer writer(file);
    write_all(writer, arrays, names, numpy_shape);
    return writer.ok();
  });
}

}  // namespace hybridnet
