// Helpers of the functions behind org.hybridnet.Native: conversion of failures to Java exceptions, and of Java objects
// to handles of c_api.h. The JNI library uses only the C ABI.
#pragma once

#include <jni.h>

#include <exception>
#include <new>
#include <string>
#include <vector>

#include "hybridnet/c_api.h"

namespace hybridnet::jni {

// Thrown when a Java exception is pending: unwinds to guarded(), which returns to Java.
struct PendingJavaException {};

// Throws the library's Java exception class named `kind` (ShapeError, ...) and unwinds.
[[noreturn]] void throw_error(JNIEnv* env, const char* kind, const std::string& text);
// Throws a class of Java itself, such as "java/lang/NullPointerException", and unwinds.
[[noreturn]] void throw_java(JNIEnv* env, const char* java_class, const std::string& text);

// Checks the status of a C ABI call: a failure becomes a Java exception with its class and full text.
void check(JNIEnv* env, int status);
// Checks after a JNI call: unwinds if an exception is pending.
void check_java(JNIEnv* env);

// Runs f for Java. After an exception Java does not read the result.
template <typename F>
auto guarded(JNIEnv* env, F&& f) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (const PendingJavaException&) {
  } catch (const std::exception& error) {
    try {
      throw_error(env, dynamic_cast<const std::bad_alloc*>(&error) ? "OutOfMemoryError" : "HybridNetError",
                  error.what());
    } catch (const PendingJavaException&) {
    }
  }
  return decltype(f())();
}

// Looks up the Java classes, methods and fields for the functions below. Called once.
void find_java_classes(JNIEnv* env);

// Returns the handle of a NativeObject. Throws NullPointerException, or IllegalStateException if it was closed.
void* handle_of(JNIEnv* env, jobject object, const char* argument);
inline HnArray array_of(JNIEnv* env, jobject object, const char* argument) {
  return static_cast<HnArray>(handle_of(env, object, argument));
}
// Returns the handles of an NDArray[]; with_null: elements may be null.
std::vector<HnArray> arrays_of(JNIEnv* env, jobjectArray objects, const char* argument, bool with_null = false);

inline jlong to_java(void* handle) { return static_cast<jlong>(reinterpret_cast<intptr_t>(handle)); }
inline void* from_java(jlong handle) { return reinterpret_cast<void*>(static_cast<intptr_t>(handle)); }

// Returns for each array its handle and the bytes of its memory, which Java sums up. Takes ownership of the handles: if
// it fails, they are freed.
jlongArray give_arrays(JNIEnv* env, const HnArray* arrays, size_t count);
inline jlongArray give_array(JNIEnv* env, HnArray array) { return give_arrays(env, &array, 1); }

// Texts are passed as UTF-8 in byte[], because JNI strings have another encoding.
std::string text_of(JNIEnv* env, jbyteArray utf8, const char* argument);
std::vector<std::string> texts_of(JNIEnv* env, jobjectArray texts, const char* argument);
std::vector<const char*> pointers_to(const std::vector<std::string>& texts);
jbyteArray give_text(JNIEnv* env, const char* text);
jobjectArray give_texts(JNIEnv* env, const std::vector<std::string>& texts);

std::vector<int64_t> sizes_of(JNIEnv* env, jlongArray sizes, const char* argument);
jlongArray give_longs(JNIEnv* env, const std::vector<jlong>& values);
// Returns {type, id} of a device, as Device.java reads them.
jintArray give_device(JNIEnv* env, int type, int id);
// Returns the bytes of an element.
int64_t element_size(JNIEnv* env, int dtype);

}  // namespace hybridnet::jni
