// org.hybridnet.Operator and Autograd.
#include "bindings/jni/jni_support.h"

namespace hybridnet::jni {
namespace {

constexpr size_t kUsualOutputs = 8;  // operators with more outputs are called a second time

struct Attributes {
  Attributes(JNIEnv* env, jobjectArray k, jobjectArray v)
      : keys(texts_of(env, k, "keys")), values(texts_of(env, v, "values")) {}
  const std::vector<std::string> keys, values;
  const std::vector<const char*> key_pointers = pointers_to(keys), value_pointers = pointers_to(values);
};

// Returns the results of call(count, outputs), which sets *count to the number of results also if there are more than
// `outputs` can hold.
template <typename Call>
jlongArray results(JNIEnv* env, const Call& call) {
  std::vector<HnArray> outputs(kUsualOutputs);
  size_t count = outputs.size();
  int status = call(&count, outputs.data());
  if (status != 0 && count > outputs.size()) {
    outputs.resize(count);
    status = call(&count, outputs.data());
  }
  check(env, status);
  return give_arrays(env, outputs.data(), count);
}

int autograd_mode(JNIEnv* env, int (*set)(int, int*), jboolean on) {
  int before = 0;
  check(env, set(on, &before));
  return before;
}

}  // namespace
}  // namespace hybridnet::jni

using namespace hybridnet::jni;  // the functions below are Java methods: their names contain the class

extern "C" {

JNIEXPORT jobjectArray JNICALL Java_org_hybridnet_Native_operatorNames(JNIEnv* env, jclass) {
  return guarded(env, [&] {
    size_t count = 0;
    check(env, hn_op_count(&count));
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
      const char* name = nullptr;
      check(env, hn_op_name(i, &name));
      names.emplace_back(name);
    }
    return give_texts(env, names);
  });
}

JNIEXPORT jlong JNICALL Java_org_hybridnet_Native_operatorPrepare(JNIEnv* env, jclass, jbyteArray name,
                                                                  jobjectArray keys, jobjectArray values) {
  return guarded(env, [&] {
    const Attributes attributes(env, keys, values);
    HnOp out = nullptr;
    check(env, hn_op_prepare(text_of(env, name, "name").c_str(), attributes.keys.size(), attributes.key_pointers.data(),
                             attributes.value_pointers.data(), &out));
    return to_java(out);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_operatorFree(JNIEnv*, jclass, jlong handle) {
  hn_op_free(static_cast<HnOp>(from_java(handle)));
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_operatorCall(JNIEnv* env, jclass, jobject op,
                                                                    jobjectArray inputs) {
  return guarded(env, [&] {
    const auto arrays = arrays_of(env, inputs, "inputs");
    const auto handle = static_cast<HnOp>(handle_of(env, op, "the operator"));
    return results(env, [&](size_t* count, HnArray* outputs) {
      return hn_op_call(handle, arrays.size(), arrays.data(), count, outputs);
    });
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_operatorCallInto(JNIEnv* env, jclass, jobject op, jobjectArray inputs,
                                                                  jobjectArray outputs) {
  guarded(env, [&] {
    const auto in = arrays_of(env, inputs, "inputs");
    const auto out = arrays_of(env, outputs, "outputs");
    check(env, hn_op_call_into(static_cast<HnOp>(handle_of(env, op, "the operator")), in.size(), in.data(), out.size(),
                               out.data()));
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_invoke(JNIEnv* env, jclass, jbyteArray name, jobjectArray keys,
                                                              jobjectArray values, jobjectArray inputs) {
  return guarded(env, [&] {
    const Attributes attributes(env, keys, values);
    const auto arrays = arrays_of(env, inputs, "inputs");
    const std::string op = text_of(env, name, "name");
    return results(env, [&](size_t* count, HnArray* outputs) {
      return hn_invoke(op.c_str(), attributes.keys.size(), attributes.key_pointers.data(),
                       attributes.value_pointers.data(), arrays.size(), arrays.data(), count, outputs);
    });
  });
}

JNIEXPORT jint JNICALL Java_org_hybridnet_Native_operatorNumOutputs(JNIEnv* env, jclass, jobject op, jint inputs) {
  return guarded(env, [&] {
    size_t count = 0;
    check(env, hn_op_num_outputs(static_cast<HnOp>(handle_of(env, op, "the operator")), static_cast<size_t>(inputs),
                                 &count));
    return static_cast<jint>(count);
  });
}

JNIEXPORT jboolean JNICALL Java_org_hybridnet_Native_setRecording(JNIEnv* env, jclass, jboolean on) {
  return guarded(env, [&] { return static_cast<jboolean>(autograd_mode(env, hn_autograd_set_recording, on)); });
}

JNIEXPORT jboolean JNICALL Java_org_hybridnet_Native_setTraining(JNIEnv* env, jclass, jboolean on) {
  return guarded(env, [&] { return static_cast<jboolean>(autograd_mode(env, hn_autograd_set_training, on)); });
}

JNIEXPORT jboolean JNICALL Java_org_hybridnet_Native_isRecording(JNIEnv* env, jclass) {
  return guarded(env, [&] {
    int on = 0;
    check(env, hn_autograd_is_recording(&on));
    return static_cast<jboolean>(on);
  });
}

JNIEXPORT jboolean JNICALL Java_org_hybridnet_Native_isTraining(JNIEnv* env, jclass) {
  return guarded(env, [&] {
    int on = 0;
    check(env, hn_autograd_is_training(&on));
    return static_cast<jboolean>(on);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_attachGrad(JNIEnv* env, jclass, jobject array, jbyteArray grad_req,
                                                            jbyteArray storage) {
  guarded(env, [&] {
    check(env, hn_array_attach_grad_in(array_of(env, array, "the array"), text_of(env, grad_req, "gradReq").c_str(),
                                       text_of(env, storage, "storage").c_str()));
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_grad(JNIEnv* env, jclass, jobject array) {
  return guarded(env, [&] {
    HnArray out = nullptr;
    check(env, hn_array_grad(array_of(env, array, "the array"), &out));
    return give_array(env, out);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_backward(JNIEnv* env, jclass, jobjectArray heads,
                                                          jobjectArray head_grads, jboolean retain, jboolean train) {
  guarded(env, [&] {
    const auto of = arrays_of(env, heads, "heads");
    const auto arriving = head_grads ? arrays_of(env, head_grads, "headGrads", true) : std::vector<HnArray>();
    if (head_grads && arriving.size() != of.size())
      throw_error(env, "ValueError",
                  "Autograd.backward: expected one gradient per head, " + std::to_string(of.size()) + ", got " +
                      std::to_string(arriving.size()) + ".\n  Fix: null stands for a gradient of ones.");
    check(env, hn_autograd_backward(of.size(), of.data(), head_grads ? arriving.data() : nullptr, retain, train));
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_gradients(JNIEnv* env, jclass, jobjectArray heads,
                                                                 jobjectArray variables, jboolean retain,
                                                                 jboolean create, jboolean train) {
  return guarded(env, [&] {
    const auto of = arrays_of(env, heads, "heads");
    const auto by = arrays_of(env, variables, "variables");
    std::vector<HnArray> out(by.size());
    check(env,
          hn_autograd_grad(of.size(), of.data(), nullptr, by.size(), by.data(), retain, create, train, out.data()));
    return give_arrays(env, out.data(), out.size());
  });
}

}  // extern "C"
