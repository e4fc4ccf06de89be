// org.hybridnet.NDArray: transfer of values between Java and arrays, views, files.
#include <cstring>
#include <memory>

#include "bindings/jni/jni_support.h"

namespace hybridnet::jni {
namespace {

// A second handle of an array during a call: its memory stays valid if another thread closes the array.
class Shared {
 public:
  // is_read: sparse arrays are read as dense copies.
  Shared(JNIEnv* env, jobject array, bool is_read = false) {
    const HnArray given = array_of(env, array, "the array");
    const char* storage = "default";
    if (is_read) check(env, hn_array_storage(given, &storage));
    check(env, std::strcmp(storage, "default") == 0 ? hn_array_share(given, &handle_)
                                                    : hn_array_cast_storage(given, "default", &handle_));
  }
  ~Shared() { hn_array_free(handle_); }
  Shared(const Shared&) = delete;
  HnArray get() const { return handle_; }

 private:
  HnArray handle_ = nullptr;
};

// The kinds of Java arrays; Native.java has the same numbers. kBytes means the raw memory of an array of any dtype.
enum JavaArray { kFloats, kDoubles, kInts, kLongs, kBytes };

int dtype_of(int kind) {
  switch (kind) {
    case kFloats:
      return HN_FLOAT32;
    case kDoubles:
      return HN_FLOAT64;
    case kInts:
      return HN_INT32;
    case kLongs:
      return HN_INT64;
    default:
      return -1;
  }
}

// Throws unless the Java array matches the NDArray in element type and in size (for kBytes, in bytes).
void check_fit(JNIEnv* env, HnArray array, int kind, jarray values) {
  if (!values) throw_java(env, "java/lang/NullPointerException", "the Java array of values is null");
  int dtype = 0;
  int64_t size = 0;
  check(env, hn_array_dtype(array, &dtype));
  check(env, hn_array_size(array, &size));
  const int wanted = dtype_of(kind);
  if (wanted >= 0 && wanted != dtype)
    throw_error(env, "DTypeError",
                std::string("NDArray: expected an array of dtype ") + hn_dtype_name(wanted) +
                    " for these values of Java, got " + hn_dtype_name(dtype) +
                    ".\n  Fix: convert it first by asType(DType), or move its memory as byte[].");
  if (wanted < 0) size *= element_size(env, dtype);
  const int64_t length = env->GetArrayLength(values);
  if (length != size)
    throw_error(env, "ValueError",
                "NDArray: expected a Java array of " + std::to_string(size) + (wanted < 0 ? " bytes" : " values") +
                    ", got " + std::to_string(length) + ".\n  Fix: its length must be the number of " +
                    (wanted < 0 ? "bytes" : "elements") + " of the array.");
}

void read_region(JNIEnv* env, int kind, jarray values, void* memory) {
  const jsize length = env->GetArrayLength(values);
  switch (kind) {
    case kFloats:
      return env->GetFloatArrayRegion(static_cast<jfloatArray>(values), 0, length, static_cast<jfloat*>(memory));
    case kDoubles:
      return env->GetDoubleArrayRegion(static_cast<jdoubleArray>(values), 0, length, static_cast<jdouble*>(memory));
    case kInts:
      return env->GetIntArrayRegion(static_cast<jintArray>(values), 0, length, static_cast<jint*>(memory));
    case kLongs:
      return env->GetLongArrayRegion(static_cast<jlongArray>(values), 0, length, static_cast<jlong*>(memory));
    default:
      return env->GetByteArrayRegion(static_cast<jbyteArray>(values), 0, length, static_cast<jbyte*>(memory));
  }
}

void write_region(JNIEnv* env, int kind, jarray values, const void* memory) {
  const jsize length = env->GetArrayLength(values);
  switch (kind) {
    case kFloats:
      return env->SetFloatArrayRegion(static_cast<jfloatArray>(values), 0, length, static_cast<const jfloat*>(memory));
    case kDoubles:
      return env->SetDoubleArrayRegion(static_cast<jdoubleArray>(values), 0, length,
                                       static_cast<const jdouble*>(memory));
    case kInts:
      return env->SetIntArrayRegion(static_cast<jintArray>(values), 0, length, static_cast<const jint*>(memory));
    case kLongs:
      return env->SetLongArrayRegion(static_cast<jlongArray>(values), 0, length, static_cast<const jlong*>(memory));
    default:
      return env->SetByteArrayRegion(static_cast<jbyteArray>(values), 0, length, static_cast<const jbyte*>(memory));
  }
}

size_t bytes_of(JNIEnv* env, HnArray array) {
  int dtype = 0;
  int64_t size = 0;
  check(env, hn_array_dtype(array, &dtype));
  check(env, hn_array_size(array, &size));
  return static_cast<size_t>(size * element_size(env, dtype));
}

// Writes through a copy, not through hn_array_data(): an array with exported memory can have no packed copies any more.
void write_values(JNIEnv* env, HnArray array, int kind, jarray values) {
  const size_t bytes = bytes_of(env, array);
  const std::unique_ptr<char[]> copy(new char[bytes + 1]);
  read_region(env, kind, values, copy.get());
  check_java(env);
  check(env, hn_array_copy_from(array, copy.get(), bytes));
}

// A direct ByteBuffer that is the memory of arrays. Kept from the garbage collector until the last of them is freed.
struct KeptBuffer {
  JavaVM* vm;
  jobject buffer;  // a global reference
};

// Called by any thread, of Java or of the library.
void release_buffer(void* context) {
  const std::unique_ptr<KeptBuffer> kept(static_cast<KeptBuffer*>(context));
  JNIEnv* env = nullptr;
  if (kept->vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_10) == JNI_OK) {
    env->DeleteGlobalRef(kept->buffer);
  } else if (kept->vm->AttachCurrentThreadAsDaemon(reinterpret_cast<void**>(&env), nullptr) == JNI_OK) {
    env->DeleteGlobalRef(kept->buffer);
    kept->vm->DetachCurrentThread();
  }
}

}  // namespace
}  // namespace hybridnet::jni

using namespace hybridnet::jni;  // the functions below are Java methods: their names contain the class
extern "C" {

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_arrayCreate(JNIEnv* env, jclass, jint device_type, jint device,
                                                                   jlongArray shape, jint dtype) {
  return guarded(env, [&] {
    const auto sizes = sizes_of(env, shape, "shape");
    HnArray out = nullptr;
    check(env,
          hn_array_create_on(device_type, device, sizes.data(), static_cast<int>(sizes.size()), dtype, nullptr, &out));
    return give_array(env, out);
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_arrayFrom(JNIEnv* env, jclass, jarray values, jint kind,
                                                                 jlongArray shape, jint dtype) {
  return guarded(env, [&] {
    const auto sizes = sizes_of(env, shape, "shape");
    if (!values) throw_java(env, "java/lang/NullPointerException", "values is null");
    HnArray out = nullptr;
    check(env, hn_array_create(sizes.data(), static_cast<int>(sizes.size()), dtype, nullptr, &out));
    try {
      check_fit(env, out, kind, values);
      write_values(env, out, kind, values);
    } catch (...) {
      hn_array_free(out);
      throw;
    }
    return give_array(env, out);
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_arrayWrap(JNIEnv* env, jclass, jobject buffer, jlong offset,
                                                                 jlong length, jlongArray shape, jint dtype) {
  return guarded(env, [&] {
    const auto sizes = sizes_of(env, shape, "shape");
    int64_t bytes = element_size(env, dtype);
    bool fits = true;
    for (const int64_t size : sizes) fits = fits && size >= 0 && !__builtin_mul_overflow(bytes, size, &bytes);
    if (!fits || bytes != length)
      throw_error(env, "ValueError",
                  "NDArray.wrap: expected a buffer whose remaining bytes are those of the array" +
                      (fits ? ", " + std::to_string(bytes) : std::string()) + ", got " + std::to_string(length) + ".");
    auto* address = static_cast<char*>(env->GetDirectBufferAddress(buffer));
    if (!address && bytes > 0) throw_error(env, "ValueError", "NDArray.wrap: the buffer has no memory of its own.");
    JavaVM* vm = nullptr;
    env->GetJavaVM(&vm);
    auto kept = std::make_unique<KeptBuffer>(KeptBuffer{vm, env->NewGlobalRef(buffer)});
    HnArray out = nullptr;
    const int status = hn_array_wrap(address + offset, sizes.data(), static_cast<int>(sizes.size()), dtype,
                                     release_buffer, kept.get(), &out);
    if (status != 0) {
      env->DeleteGlobalRef(kept->buffer);
      check(env, status);
    }
    kept.release();
    return give_array(env, out);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_arrayFree(JNIEnv*, jclass, jlong handle) {
  hn_array_free(static_cast<HnArray>(from_java(handle)));
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_arrayShare(JNIEnv* env, jclass, jobject array) {
  return guarded(env, [&] {
    HnArray out = nullptr;
    check(env, hn_array_share(array_of(env, array, "the array"), &out));
    return give_array(env, out);
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_arrayCopy(JNIEnv* env, jclass, jobject array) {
  return guarded(env, [&] {
    HnArray out = nullptr;
    check(env, hn_array_copy(array_of(env, array, "the array"), &out));
    return give_array(env, out);
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_arrayCopyToDevice(JNIEnv* env, jclass, jobject array,
                                                                         jint device_type, jint device) {
  return guarded(env, [&] {
    HnArray out = nullptr;
    check(env, hn_array_copy_to_device(array_of(env, array, "the array"), device_type, device, &out));
    return give_array(env, out);
  });
}

JNIEXPORT jintArray JNICALL Java_org_hybridnet_Native_arrayDevice(JNIEnv* env, jclass, jobject array) {
  return guarded(env, [&] {
    int type = 0, id = 0;
    check(env, hn_array_device(array_of(env, array, "the array"), &type, &id));
    return give_device(env, type, id);
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_arrayDetach(JNIEnv* env, jclass, jobject array) {
  return guarded(env, [&] {
    HnArray out = nullptr;
    check(env, hn_array_detach(array_of(env, array, "the array"), &out));
    return give_array(env, out);
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_arrayReshape(JNIEnv* env, jclass, jobject array,
                                                                    jlongArray shape) {
  return guarded(env, [&] {
    const auto sizes = sizes_of(env, shape, "shape");
    HnArray out = nullptr;
    check(env, hn_array_reshape(array_of(env, array, "the array"), sizes.data(), static_cast<int>(sizes.size()), &out));
    return give_array(env, out);
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_arraySlice(JNIEnv* env, jclass, jobject array, jlong begin,
                                                                  jlong end) {
  return guarded(env, [&] {
    HnArray out = nullptr;
    check(env, hn_array_slice(array_of(env, array, "the array"), begin, end, &out));
    return give_array(env, out);
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_arrayShape(JNIEnv* env, jclass, jobject array) {
  return guarded(env, [&] {
    const Shared shared(env, array);
    int ndim = 0;
    const int64_t* sizes = nullptr;
    check(env, hn_array_ndim(shared.get(), &ndim));
    check(env, hn_array_shape(shared.get(), &sizes));
    return give_longs(env, std::vector<jlong>(sizes, sizes + ndim));
  });
}

JNIEXPORT jint JNICALL Java_org_hybridnet_Native_arrayDType(JNIEnv* env, jclass, jobject array) {
  return guarded(env, [&] {
    int dtype = 0;
    check(env, hn_array_dtype(array_of(env, array, "the array"), &dtype));
    return jint{dtype};
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_arraySparse(JNIEnv* env, jclass, jbyteArray storage,
                                                                   jlongArray shape, jobject data, jobject indices,
                                                                   jobject indptr) {
  return guarded(env, [&] {
    const auto sizes = sizes_of(env, shape, "shape");
    HnArray out = nullptr;
    check(env,
          hn_array_create_sparse(text_of(env, storage, "storage").c_str(), sizes.data(), static_cast<int>(sizes.size()),
                                 array_of(env, data, "data"), array_of(env, indices, "indices"),
                                 indptr ? array_of(env, indptr, "indptr") : nullptr, &out));
    return give_array(env, out);
  });
}

JNIEXPORT jbyteArray JNICALL Java_org_hybridnet_Native_arrayStorage(JNIEnv* env, jclass, jobject array) {
  return guarded(env, [&] {
    const char* storage = nullptr;
    check(env, hn_array_storage(array_of(env, array, "the array"), &storage));
    return give_text(env, storage);
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_arrayPart(JNIEnv* env, jclass, jobject array, jbyteArray part) {
  return guarded(env, [&] {
    HnArray out = nullptr;
    check(env, hn_array_part(array_of(env, array, "the array"), text_of(env, part, "part").c_str(), &out));
    return give_array(env, out);
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_arrayCastStorage(JNIEnv* env, jclass, jobject array,
                                                                        jbyteArray storage) {
  return guarded(env, [&] {
    HnArray out = nullptr;
    check(env,
          hn_array_cast_storage(array_of(env, array, "the array"), text_of(env, storage, "storage").c_str(), &out));
    return give_array(env, out);
  });
}

JNIEXPORT jlong JNICALL Java_org_hybridnet_Native_arraySize(JNIEnv* env, jclass, jobject array) {
  return guarded(env, [&] {
    int64_t size = 0;
    check(env, hn_array_size(array_of(env, array, "the array"), &size));
    return static_cast<jlong>(size);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_arrayWait(JNIEnv* env, jclass, jobject array) {
  guarded(env, [&] { check(env, hn_array_wait(array_of(env, array, "the array"))); });
}

// Returns the memory of the array as a buffer. Java keeps the handle as long as the buffer lives.
JNIEXPORT jobject JNICALL Java_org_hybridnet_Native_arrayBuffer(JNIEnv* env, jclass, jlong handle) {
  return guarded(env, [&] {
    const auto array = static_cast<HnArray>(from_java(handle));
    const void* memory = nullptr;
    int64_t size = 0;
    int dtype = 0;
    check(env, hn_array_data(array, &memory));
    check(env, hn_array_size(array, &size));
    check(env, hn_array_dtype(array, &dtype));
    size *= element_size(env, dtype);
    if (size > INT32_MAX)
      throw_error(env, "ValueError",
                  "NDArray.buffer: expected an array of at most 2147483647 bytes, as much as a ByteBuffer holds, got " +
                      std::to_string(size) + ".\n  Fix: take the buffers of slices of it.");
    static char none = 0;  // JNI requires an address also for a buffer of 0 bytes
    return env->NewDirectByteBuffer(size > 0 ? const_cast<void*>(memory) : &none, size);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_arrayRead(JNIEnv* env, jclass, jobject array, jarray target,
                                                           jint kind) {
  guarded(env, [&] {
    const Shared shared(env, array, true);
    check_fit(env, shared.get(), kind, target);
    const size_t bytes = bytes_of(env, shared.get());
    const std::unique_ptr<char[]> copy(new char[bytes + 1]);
    check(env, hn_array_copy_to(shared.get(), copy.get(), bytes));
    write_region(env, kind, target, copy.get());
    check_java(env);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_arrayWrite(JNIEnv* env, jclass, jobject array, jarray source,
                                                            jint kind) {
  guarded(env, [&] {
    const Shared shared(env, array);
    check_fit(env, shared.get(), kind, source);
    write_values(env, shared.get(), kind, source);
  });
}

// Returns {handles and bytes of the arrays, their names or null}.
JNIEXPORT jobjectArray JNICALL Java_org_hybridnet_Native_arraysLoad(JNIEnv* env, jclass, jbyteArray path) {
  return guarded(env, [&] {
    const std::string file = text_of(env, path, "path");
    const jclass object = env->FindClass("java/lang/Object");
    check_java(env);
    const jobjectArray result = env->NewObjectArray(2, object, nullptr);
    check_java(env);
    size_t count = 0;
    HnArray* arrays = nullptr;
    const char** names = nullptr;
    check(env, hn_arrays_load(file.c_str(), &count, &arrays, &names));
    const std::vector<HnArray> taken(arrays, arrays + count);
    const std::vector<std::string> texts =
        names ? std::vector<std::string>(names, names + count) : std::vector<std::string>();
    const bool named = names != nullptr;
    for (size_t i = 0; i < count; ++i) arrays[i] = nullptr;
    hn_arrays_free(count, arrays, names);
    env->SetObjectArrayElement(result, 0, give_arrays(env, taken.data(), taken.size()));
    if (named) env->SetObjectArrayElement(result, 1, give_texts(env, texts));
    return result;
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_arraysSave(JNIEnv* env, jclass, jbyteArray path, jobjectArray arrays,
                                                            jobjectArray names) {
  guarded(env, [&] {
    const std::string file = text_of(env, path, "path");
    const auto handles = arrays_of(env, arrays, "arrays");
    const auto texts = names ? texts_of(env, names, "names") : std::vector<std::string>();
    const auto pointers = pointers_to(texts);
    check(env, hn_arrays_save(file.c_str(), handles.size(), handles.data(), names ? pointers.data() : nullptr));
  });
}

}  // extern "C"
