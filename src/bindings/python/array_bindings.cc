// Creation of arrays, conversion from and to NumPy, views, files.
#include <pybind11/numpy.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "array_arithmetic.h"
#include "casters.h"
#include "control_bodies.h"
#include "hybridnet/imperative.h"
#include "hybridnet/ndarray.h"
#include "hybridnet/sparse.h"
#include "imperative/observed_reads.h"
#include "imperative/tape.h"
#include "ndarray/watched_array.h"

namespace hybridnet::python {
namespace {

constexpr int64_t kHoldGilBelow = 1 << 20;  // bytes; longer copies let other Python threads run

Device device_of(int type, int id) { return {static_cast<DeviceType>(type), id}; }

NDArray require(const NDArray& array, const char* what) {
  if (!array) raise(ErrorKind::kType, {.input = what, .expected = "an NDArray", .given = "None"});
  return array;
}

py::object make_numpy(const NDArray& array) {
  std::vector<py::ssize_t> shape(array.shape().begin(), array.shape().end());
  const py::dtype dtype = py::dtype::from_args(py::reinterpret_borrow<py::object>(numpy_type(array.dtype())));
  return py::array(dtype, std::move(shape));
}

// Called with no argument when values are read while this thread traces a block; set once, by hybridnet._tracing.
PyObject* value_read_hook = nullptr;

py::object asnumpy(const NDArray& source) {
  NDArray array = require(source, "array");
  if (trace_state().active && value_read_hook != nullptr) {
    const py::handle hook(value_read_hook);
    hook();
    if (observed_reads != nullptr) observe_reads({&source, 1});
  }
  if (array.is_sparse()) {
    ReleaseGil release(true);
    array = to_dense(array);
  }
  wait_interruptibly(array);
  py::object result = make_numpy(array);
  void* target = py::reinterpret_borrow<py::array>(result).mutable_data();
  if (array.bytes() < kHoldGilBelow) {
    array.copy_to(target);
  } else {
    ReleaseGil release(false);
    array.copy_to(target);
  }
  return result;
}

Shape shape_of(const py::array& source) {
  return Shape(
      std::span<const int64_t>(reinterpret_cast<const int64_t*>(source.shape()), static_cast<size_t>(source.ndim())));
}

// Returns the memory of a NumPy array. Raises unless it is C-contiguous and has the shape and dtype of `spec`.
const void* bytes_for(const TensorSpec& spec, const py::array& source) {
  if (!(source.flags() & py::array::c_style) || source.itemsize() != dtype_size(spec.dtype) ||
      !(shape_of(source) == spec.shape))
    raise(ErrorKind::kValue, {.message = "the NumPy array must be C-contiguous, of the array's dtype and shape"});
  return source.data();
}

void copy_from_numpy(const NDArray& target, const py::array& source) {
  const void* data = bytes_for(require(target, "target").spec(), source);
  check_write_in_body(target);
  check_recorded_write(target);
  note_overwrite(target);
  if (target.bytes() < kHoldGilBelow && target.var().idle()) {
    target.copy_from(data);
  } else {
    ReleaseGil release(true);
    target.copy_from(data);
  }
}

// Replaces a copy of `source` into `target`: `target` takes the memory of `source`. Returns false if that could be
// observed (another array shares either memory, or work on it is pending), or if specs, devices or offsets differ.
bool adopt(const NDArray& target, const NDArray& source) {
  if (target.is_sparse() || source.is_sparse() || target.is_pending() || source.is_pending()) return false;
  ArrayImpl& to = *target.impl();
  const ArrayImpl& from = *source.impl();
  if (to.spec != from.spec || !(target.device() == source.device()) || to.offset != 0 || from.offset != 0) return false;
  Chunk &old = *to.chunk, &given = *from.chunk;
  if (to.ref_count() != 1 || old.ref_count() != 1 || given.ref_count() != 1) return false;
  if (old.original || given.original || old.history || given.history || !old.var.idle() || !given.var.idle())
    return false;
  given.overwrites.store(old.overwrites.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  to.chunk = from.chunk;
  return true;
}

NDArray from_numpy_copy(const py::array& source, DType dtype, int device_type, int device_id) {
  NDArray array = NDArray::empty(shape_of(source), dtype, device_of(device_type, device_id));
  copy_from_numpy(array, source);
  return array;
}

// Shares the memory of a NumPy array, which is kept alive as long as the result and its views.
NDArray from_numpy_shared(const py::array& source, DType dtype) {
  const TensorSpec spec{shape_of(source), dtype};
  void* data = const_cast<void*>(bytes_for(spec, source));
  PyObject* owner = source.inc_ref().ptr();
  const auto release = [owner] {
    if (!Py_IsInitialized()) return;
    AcquireGil gil;
    Py_DECREF(owner);
  };
  return NDArray::from_memory(data, spec, release);
}

// Returns the shape for Reshape's codes (0, -1, -2, -3, -4) on this array, by the operator's inference rule.
Shape resolve_reshape(const NDArray& array, const Shape& codes, bool reverse) {
  const Op& op = op_registry().at("Reshape");
  const ParamsPtr params = op.schema->parse(
      std::vector<std::pair<std::string, AttrValue>>{{"shape", AttrValue(codes)}, {"reverse", AttrValue(reverse)}},
      op.name);
  TensorSpec in = array.spec(), out;
  InferContext context(op, {&in, 1}, {&out, 1});
  op.infer(params->data(), context);
  return out.shape;
}

py::object text_of_name(const std::string& bytes) {
  PyObject* text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), nullptr);
  if (text != nullptr) return py::reinterpret_steal<py::object>(text);
  PyErr_Clear();
  raise(ErrorKind::kFormat,
        {.message = "a name in the file is not UTF-8 text", .fix = "the file is damaged; save or copy it again"});
}

py::tuple load(const std::function<LoadedArrays()>& read) {
  LoadedArrays loaded;
  {
    ReleaseGil release(false);
    loaded = read();
  }
  py::list names;
  for (const std::string& name : loaded.names) names.append(text_of_name(name));
  return py::make_tuple(loaded.named, names, loaded.arrays);
}

void bind_classes(py::module_& m) {
  m.def(
      "register_array_class", [](const py::object& cls, bool numpy) { register_array_class(cls.ptr(), numpy); },
      py::arg("cls"), py::arg("numpy") = false, "Makes cls the class of op results.");
  m.def(
      "set_array_converter", [](const py::object& f, bool numpy) { set_array_converter(f.ptr(), numpy); }, py::arg("f"),
      py::arg("numpy") = false);
  m.def(
      "binary",
      [](int kind, const py::object& left, const py::object& right, const py::object& out) {
        if (kind < 0 || kind >= kBinaryCount) raise(ErrorKind::kIndex, {.message = "no such binary operator"});
        if (!is_array(left.ptr())) expect_array(right.ptr(), "right");
        if (!out.is_none()) expect_array(out.ptr(), "out");
        PyObject* result =
            binary_operation(static_cast<Binary>(kind), left.ptr(), right.ptr(), out.is_none() ? nullptr : out.ptr());
        if (result == nullptr) throw py::error_already_set();
        return py::reinterpret_steal<py::object>(result);
      },
      py::arg("kind"), py::arg("left"), py::arg("right"), py::arg("out") = py::none());
}

void bind_views(py::module_& m) {
  m.def(
      "reshaped",
      [](const py::object& a, const Shape& shape) {
        const NDArray& array = expect_array(a.ptr(), "array");
        return wrap_like(as_view(array, array.reshaped(shape)), a);
      },
      "View of another shape over the same memory.");
  m.def(
      "sliced",
      [](const py::object& a, int64_t begin, int64_t end) {
        const NDArray& array = expect_array(a.ptr(), "array");
        return wrap_like(as_view(array, array.sliced(begin, end)), a);
      },
      "View of rows [begin, end).");
  m.def(
      "at",
      [](const py::object& a, int64_t i) {
        const NDArray& array = expect_array(a.ptr(), "array");
        return wrap_like(as_view(array, array.at(i)), a);
      },
      "View of row i.");
  m.def(
      "detached", [](const py::object& a) { return wrap_like(as_detached(expect_array(a.ptr(), "array")), a); },
      "The same memory without history.");
  m.def(
      "retyped",
      [](const py::object& a, const py::object& cls) {
        NDArray array = expect_array(a.ptr(), "array");
        if (!PyType_Check(cls.ptr()) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls.ptr()), array_base_type))
          raise(ErrorKind::kType,
                {.input = "cls", .expected = "a subclass of NDArrayBase", .given = short_repr(cls.ptr())});
        // Two objects of the program are one array: the memory cannot be donated with one of them.
        watch_overwrites(*array.impl()->chunk);
        PyObject* result = wrap_array_as(std::move(array), reinterpret_cast<PyTypeObject*>(cls.ptr()));
        if (result == nullptr) throw py::error_already_set();
        return py::reinterpret_steal<py::object>(result);
      },
      "The same array (memory and history) as an object of cls.");
  m.def(
      "shares_memory",
      [](const NDArray& a, const NDArray& b) {
        if (require(a, "a").is_sparse() || require(b, "b").is_sparse()) return a == b;
        const int64_t begin = std::max(a.impl()->offset, b.impl()->offset);
        return a.shares_memory(b) && begin < std::min(a.impl()->offset + a.bytes(), b.impl()->offset + b.bytes());
      },
      "Whether some element is one of both arrays; sparse arrays share memory with themselves alone.");
  m.def(
      "is_same_place",
      [](const NDArray& a, const NDArray& b) {
        return require(a, "a").shares_memory(require(b, "b")) && a.impl()->offset == b.impl()->offset &&
               a.spec() == b.spec();
      },
      "Whether both arrays show the same elements in the same shape.");
  m.def("resolve_reshape", [](const NDArray& a, const Shape& codes, bool reverse) {
    return resolve_reshape(require(a, "array"), codes, reverse);
  });
  m.def(
      "overwrites",
      [](const NDArray& a) {
        Chunk& chunk = *require(a, "array").impl()->chunk;
        watch_overwrites(chunk);
        return chunk.overwrites.load(std::memory_order_relaxed);
      },
      "Counts writes into existing memory when they are pushed: tells whether a value that was kept is gone.");
  py::class_<WatchedArray>(m, "WatchedArray",
                           "An array as it is now, to ask later whether its values may be others. Memory that code "
                           "outside of the library can write is compared with a copy.")
      .def(py::init([](const NDArray& a) {
        const NDArray array = require(a, "array");
        const py::gil_scoped_release released;
        return std::make_unique<WatchedArray>(array, WatchedArray::Compared::kAll);
      }))
      .def("holds", &WatchedArray::holds, py::call_guard<py::gil_scoped_release>(),
           "Whether the array cannot have been written since.");
  m.def(
      "overwritten_at",
      [](const NDArray& a) {
        const Chunk& chunk = *require(a, "array").impl()->chunk;
        const SourceLocation where{chunk.overwrite_file.load(std::memory_order_relaxed),
                                   chunk.overwrite_line.load(std::memory_order_relaxed)};
        return where.known() ? where.str() : std::string("an unknown line");
      },
      "The line of the last write pushed since overwrites() was called.");
  m.def(
      "memory_id", [](const NDArray& a) { return require(a, "array").impl()->chunk->id; },
      "Number of the array's memory: views share it. Memory that this thread allocates later has a larger number.");
  m.def("next_memory_id", &detail::next_chunk_id, "Larger than those of all memory that this thread has allocated.");
  m.def(
      "version", [](const NDArray& a) { return require(a, "array").var().version(); },
      "Counts writes to the memory of the array.");
}

void bind_files(py::module_& m) {
  m.def(
      "load", [](const std::string& path, bool mapped) { return load([&] { return load_arrays(path, mapped); }); },
      py::arg("path"), py::arg("mapped") = false);
  m.def("load_from_buffer", [](const py::bytes& bytes, const std::string& what) {
    const std::string_view view(bytes);
    return load([&] { return load_arrays_from_buffer(view, what); });
  });
  m.def("save", [](const std::string& path, const std::vector<NDArray>& arrays, const std::vector<std::string>& names,
                   bool numpy_shape) {
    ReleaseGil release(false);
    save_arrays(path, arrays, names, numpy_shape);
  });
  m.def("save_to_buffer",
        [](const std::vector<NDArray>& arrays, const std::vector<std::string>& names, bool numpy_shape) {
          std::string bytes;
          {
            ReleaseGil release(false);
            bytes = save_arrays_to_buffer(arrays, names, numpy_shape);
          }
          return py::bytes(bytes);
        });
}

}  // namespace

void bind_arrays(py::module_& m) {
  bind_classes(m);
  m.def("empty", [](const Shape& shape, DType dtype, int device_type, int device_id) {
    for (const int64_t dim : shape)
      if (dim < 0)
        raise(ErrorKind::kShape, {.input = "shape", .expected = "sizes of at least 0", .given = shape.str()});
    if (!shape.rank_known() || dtype == DType::kUnknown)
      raise(ErrorKind::kType,
            {.input = shape.rank_known() ? "dtype" : "shape", .expected = "a value", .given = "None"});
    return NDArray::empty(shape, dtype, device_of(device_type, device_id));
  });
  m.def(
      "deferred_zeros",
      [](const NDArray& like) { return NDArray::deferred_zeros(require(like, "array").spec(), like.device()); },
      "Zeros of the shape and type of an array of a CPU, that take no memory until they are read or written.");
  m.def("asnumpy", &asnumpy);
  m.def(
      "set_value_read_hook", [](const py::object& hook) { value_read_hook = hook.inc_ref().ptr(); },
      "hook() is called when values of an array are read while the thread traces a block.");
  m.def("take_over",
        [](const py::object& a, const NDArray& other) { expect_array(a.ptr(), "array") = require(other, "other"); });
  m.def(
      "adopt",
      [](const py::object& target, const py::object& source) {
        return adopt(expect_array(target.ptr(), "target"), expect_array(source.ptr(), "source"));
      },
      "Gives an array that nothing else shows the memory of another one, which must not be used afterwards; False "
      "where "
      "it cannot.");
  m.def("copy_from_numpy", &copy_from_numpy);
  m.def("from_numpy_copy", &from_numpy_copy);
  m.def("from_numpy_shared", &from_numpy_shared);
  m.def("note_given_out", [](const NDArray& a) { note_given_out(require(a, "array")); });
  m.def("wait_all", &wait_all_interruptibly);
  m.def("dtype_code", [](DType dtype) { return static_cast<int>(dtype); });
  m.def("dtype_name", [](DType dtype) { return std::string(dtype_name(dtype)); });
  bind_views(m);
  bind_files(m);
}

}  // namespace hybridnet::python
