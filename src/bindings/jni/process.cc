// Initialization in a Java process, and org.hybridnet.HybridNet.
#include "bindings/jni/jni_support.h"

using namespace hybridnet::jni;  // the functions below are Java methods: their names contain the class

extern "C" {

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) {
  JNIEnv* env = nullptr;
  if (vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_10) != JNI_OK) return JNI_ERR;
  return guarded(env, [&] {
    if (hn_abi_version() < HN_ABI_VERSION)
      throw_java(env, "java/lang/UnsatisfiedLinkError",
                 "libhybridnet.so has ABI version " + std::to_string(hn_abi_version()) +
                     ", libhybridnet_jni.so needs " + std::to_string(HN_ABI_VERSION) +
                     ".\n  Fix: use the two libraries of one build.");
    find_java_classes(env);
    return jint{JNI_VERSION_10};
  });
}

JNIEXPORT jbyteArray JNICALL Java_org_hybridnet_Native_version(JNIEnv* env, jclass) {
  return guarded(env, [&] { return give_text(env, hn_version()); });
}

JNIEXPORT jbyteArray JNICALL Java_org_hybridnet_Native_isa(JNIEnv* env, jclass) {
  return guarded(env, [&] { return give_text(env, hn_isa()); });
}

JNIEXPORT jbyteArray JNICALL Java_org_hybridnet_Native_engineType(JNIEnv* env, jclass) {
  return guarded(env, [&] {
    const char* type = nullptr;
    check(env, hn_engine_type(&type));
    return give_text(env, type);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_waitAll(JNIEnv* env, jclass) {
  guarded(env, [&] { check(env, hn_wait_all()); });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_shutdown(JNIEnv* env, jclass) {
  guarded(env, [&] { check(env, hn_shutdown()); });
}

JNIEXPORT jint JNICALL Java_org_hybridnet_Native_numThreads(JNIEnv* env, jclass) {
  return guarded(env, [&] {
    int cores = 0;
    check(env, hn_num_threads(&cores));
    return jint{cores};
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_setNumThreads(JNIEnv* env, jclass, jint cores) {
  guarded(env, [&] { check(env, hn_set_num_threads(cores)); });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_pinThread(JNIEnv* env, jclass, jintArray cores) {
  guarded(env, [&] {
    std::vector<int> numbers(static_cast<size_t>(env->GetArrayLength(cores)));
    static_assert(sizeof(jint) == sizeof(int));
    env->GetIntArrayRegion(cores, 0, static_cast<jsize>(numbers.size()), numbers.data());
    check(env, hn_pin_thread(numbers.size(), numbers.data()));
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_seed(JNIEnv* env, jclass, jlong seed) {
  guarded(env, [&] { check(env, hn_seed(static_cast<uint64_t>(seed))); });
}

JNIEXPORT jint JNICALL Java_org_hybridnet_Native_numGpus(JNIEnv* env, jclass) {
  return guarded(env, [&] {
    int count = 0;
    check(env, hn_num_gpus(&count));
    return jint{count};
  });
}

JNIEXPORT jbyteArray JNICALL Java_org_hybridnet_Native_whyNoGpu(JNIEnv* env, jclass) {
  return guarded(env, [&] {
    const char* reason = nullptr;
    check(env, hn_why_no_gpu(&reason));
    return give_text(env, reason);
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_gpuMemory(JNIEnv* env, jclass, jint device) {
  return guarded(env, [&] {
    int64_t free_bytes = 0, total_bytes = 0;
    check(env, hn_gpu_memory(device, &free_bytes, &total_bytes));
    return give_longs(env, {free_bytes, total_bytes});
  });
}

JNIEXPORT jboolean JNICALL Java_org_hybridnet_Native_allowTf32(JNIEnv* env, jclass, jboolean allow) {
  return guarded(env, [&] {
    int before = 0;
    check(env, hn_allow_tf32(allow, &before));
    return static_cast<jboolean>(before);
  });
}

JNIEXPORT jboolean JNICALL Java_org_hybridnet_Native_setNumpyShapes(JNIEnv* env, jclass, jboolean on) {
  return guarded(env, [&] {
    int before = 0;
    check(env, hn_set_np_shape(on, &before));
    return static_cast<jboolean>(before);
  });
}

JNIEXPORT jboolean JNICALL Java_org_hybridnet_Native_hasNumpyShapes(JNIEnv* env, jclass) {
  return guarded(env, [&] {
    int on = 0;
    check(env, hn_is_np_shape(&on));
    return static_cast<jboolean>(on);
  });
}

}  // extern "C"
