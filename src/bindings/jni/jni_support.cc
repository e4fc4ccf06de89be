#include "bindings/jni/jni_support.h"

#include <cstring>
#include <string_view>

namespace hybridnet::jni {
namespace {

struct JavaClasses {
  jclass errors = nullptr;  // org.hybridnet.Errors
  jmethodID make = nullptr;
  jfieldID handle = nullptr;    // NativeObject.handle
  jclass byte_array = nullptr;  // byte[]
};
JavaClasses java;  // written by JNI_OnLoad, before any other function runs

}  // namespace

void find_java_classes(JNIEnv* env) {
  const auto find = [env](const char* name) {
    const jclass local = env->FindClass(name);
    check_java(env);
    const auto global = static_cast<jclass>(env->NewGlobalRef(local));
    env->DeleteLocalRef(local);
    return global;
  };
  java.errors = find("org/hybridnet/Errors");
  java.make = env->GetStaticMethodID(java.errors, "make", "([B[B)Ljava/lang/RuntimeException;");
  check_java(env);
  java.byte_array = find("[B");
  const jclass object = env->FindClass("org/hybridnet/NativeObject");
  check_java(env);
  java.handle = env->GetFieldID(object, "handle", "J");
  check_java(env);
}

void throw_error(JNIEnv* env, const char* kind, const std::string& text) {
  const jbyteArray kind_bytes = give_text(env, kind);
  const jbyteArray text_bytes = give_text(env, text.c_str());
  const jobject made = env->CallStaticObjectMethod(java.errors, java.make, kind_bytes, text_bytes);
  check_java(env);  // if making the exception failed, that failure is pending
  env->Throw(static_cast<jthrowable>(made));
  throw PendingJavaException();
}

void throw_java(JNIEnv* env, const char* java_class, const std::string& text) {
  const jclass found = env->FindClass(java_class);
  if (found) env->ThrowNew(found, text.c_str());
  throw PendingJavaException();
}

void check(JNIEnv* env, int status) {
  if (status == 0) return;
  const std::string kind = hn_last_error_kind(), text = hn_last_error();
  throw_error(env, kind.c_str(), text);
}

void check_java(JNIEnv* env) {
  if (env->ExceptionCheck()) throw PendingJavaException();
}

void* handle_of(JNIEnv* env, jobject object, const char* argument) {
  if (!object) throw_java(env, "java/lang/NullPointerException", std::string(argument) + " is null");
  void* handle = from_java(env->GetLongField(object, java.handle));
  if (!handle)
    throw_java(env, "java/lang/IllegalStateException",
               std::string(argument) +
                   " was closed.\n  Fix: close an object, or leave the block of its try, after its last use.");
  return handle;
}

std::vector<HnArray> arrays_of(JNIEnv* env, jobjectArray objects, const char* argument, bool with_null) {
  if (!objects) throw_java(env, "java/lang/NullPointerException", std::string(argument) + " is null");
  const jsize count = env->GetArrayLength(objects);
  std::vector<HnArray> handles(static_cast<size_t>(count));
  for (jsize i = 0; i < count; ++i) {
    const jobject object = env->GetObjectArrayElement(objects, i);
    if (object || !with_null)
      handles[static_cast<size_t>(i)] =
          static_cast<HnArray>(object && env->GetLongField(object, java.handle) != 0
                                   ? from_java(env->GetLongField(object, java.handle))
                                   : handle_of(env, object, (argument + ("[" + std::to_string(i) + "]")).c_str()));
    env->DeleteLocalRef(object);
  }
  return handles;
}

int64_t element_size(JNIEnv* env, int dtype) {
  size_t size = 0;
  check(env, hn_dtype_size(dtype, &size));
  return static_cast<int64_t>(size);
}

namespace {

int64_t bytes_of(JNIEnv* env, HnArray array) {
  int64_t size = 0;
  int dtype = 0;
  check(env, hn_array_size(array, &size));
  check(env, hn_array_dtype(array, &dtype));
  return size * element_size(env, dtype);
}

// Returns the bytes of the array's memory; for a sparse array the sum over its parts.
int64_t held_bytes(JNIEnv* env, HnArray array) {
  const char* storage = nullptr;
  check(env, hn_array_storage(array, &storage));
  const std::string_view name = storage;
  if (name == "default") return bytes_of(env, array);
  int64_t bytes = 0;
  for (const char* part : {"data", "indices", "indptr"}) {
    HnArray given = nullptr;
    if (name == "row_sparse" && part == std::string_view("indptr")) continue;
    if (hn_array_part(array, part, &given) != 0) continue;  // indices out of bounds: reported when they are used
    bytes += bytes_of(env, given);
    hn_array_free(given);
  }
  return bytes;
}

}  // namespace

jlongArray give_arrays(JNIEnv* env, const HnArray* arrays, size_t count) {
  std::vector<jlong> pairs(2 * count);
  try {
    for (size_t i = 0; i < count; ++i) {
      pairs[2 * i] = to_java(arrays[i]);
      pairs[2 * i + 1] = held_bytes(env, arrays[i]);
    }
    return give_longs(env, pairs);
  } catch (const PendingJavaException&) {
    for (size_t i = 0; i < count; ++i) hn_array_free(arrays[i]);
    throw;
  }
}

std::string text_of(JNIEnv* env, jbyteArray utf8, const char* argument) {
  if (!utf8) throw_java(env, "java/lang/NullPointerException", std::string(argument) + " is null");
  std::string text(static_cast<size_t>(env->GetArrayLength(utf8)), '\0');
  env->GetByteArrayRegion(utf8, 0, static_cast<jsize>(text.size()), reinterpret_cast<jbyte*>(text.data()));
  return text;
}

std::vector<std::string> texts_of(JNIEnv* env, jobjectArray texts, const char* argument) {
  if (!texts) throw_java(env, "java/lang/NullPointerException", std::string(argument) + " is null");
  std::vector<std::string> result;
  const jsize count = env->GetArrayLength(texts);
  for (jsize i = 0; i < count; ++i) {
    const auto text = static_cast<jbyteArray>(env->GetObjectArrayElement(texts, i));
    result.push_back(text_of(env, text, argument));
    env->DeleteLocalRef(text);
  }
  return result;
}

std::vector<const char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

jbyteArray give_text(JNIEnv* env, const char* text) {
  const auto size = static_cast<jsize>(std::strlen(text));
  const jbyteArray bytes = env->NewByteArray(size);
  check_java(env);
  env->SetByteArrayRegion(bytes, 0, size, reinterpret_cast<const jbyte*>(text));
  return bytes;
}

jobjectArray give_texts(JNIEnv* env, const std::vector<std::string>& texts) {
  const jobjectArray result = env->NewObjectArray(static_cast<jsize>(texts.size()), java.byte_array, nullptr);
  check_java(env);
  for (size_t i = 0; i < texts.size(); ++i) {
    const jbyteArray text = give_text(env, texts[i].c_str());
    env->SetObjectArrayElement(result, static_cast<jsize>(i), text);
    env->DeleteLocalRef(text);
  }
  return result;
}

std::vector<int64_t> sizes_of(JNIEnv* env, jlongArray sizes, const char* argument) {
  if (!sizes) throw_java(env, "java/lang/NullPointerException", std::string(argument) + " is null");
  std::vector<int64_t> result(static_cast<size_t>(env->GetArrayLength(sizes)));
  static_assert(sizeof(jlong) == sizeof(int64_t));
  env->GetLongArrayRegion(sizes, 0, static_cast<jsize>(result.size()), reinterpret_cast<jlong*>(result.data()));
  return result;
}

jlongArray give_longs(JNIEnv* env, const std::vector<jlong>& values) {
  const auto count = static_cast<jsize>(values.size());
  const jlongArray result = env->NewLongArray(count);
  check_java(env);
  env->SetLongArrayRegion(result, 0, count, values.data());
  return result;
}

jintArray give_device(JNIEnv* env, int type, int id) {
  const jint numbers[] = {type, id};
  const jintArray result = env->NewIntArray(2);
  check_java(env);
  env->SetIntArrayRegion(result, 0, 2, numbers);
  return result;
}

}  // namespace hybridnet::jni
