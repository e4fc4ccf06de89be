// org.hybridnet.Model, Session and Batcher.
#include "bindings/jni/jni_support.h"

namespace hybridnet::jni {
namespace {

HnModel model_of(JNIEnv* env, jobject model) { return static_cast<HnModel>(handle_of(env, model, "the model")); }

using Count = int (*)(HnModel, size_t*);
using Name = int (*)(HnModel, size_t, const char**);

jobjectArray give_names(JNIEnv* env, jobject model, Count count_of, Name name_of) {
  const HnModel handle = model_of(env, model);
  size_t count = 0;
  check(env, count_of(handle, &count));
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    check(env, name_of(handle, i, &name));
    names.emplace_back(name);
  }
  return give_texts(env, names);
}

// Specs are passed to Java as {dtype, ndim, sizes...}, one after the other.
void append_spec(std::vector<jlong>& numbers, const HnTensorSpec& spec) {
  numbers.push_back(spec.dtype);
  numbers.push_back(spec.ndim);
  for (int i = 0; i < spec.ndim; ++i) numbers.push_back(spec.shape[i]);
}

template <typename SpecOf>
jlongArray give_specs(JNIEnv* env, HnModel model, Count count_of, const SpecOf& spec_of) {
  size_t count = 0;
  check(env, count_of(model, &count));
  std::vector<jlong> numbers;
  for (size_t i = 0; i < count; ++i) {
    HnTensorSpec spec{};
    check(env, spec_of(model, i, &spec));
    append_spec(numbers, spec);
  }
  return give_longs(env, numbers);
}

std::vector<HnTensorSpec> specs_of(JNIEnv* env, jlongArray numbers) {
  const auto given = sizes_of(env, numbers, "specs");
  std::vector<HnTensorSpec> specs;
  for (size_t at = 0; at + 1 < given.size();) {
    HnTensorSpec spec{};
    spec.dtype = static_cast<int>(given[at]);
    const int64_t ndim = given[at + 1];
    if (ndim > HN_MAX_NDIM)
      throw_error(env, "ShapeError",
                  "TensorSpec: expected at most " + std::to_string(HN_MAX_NDIM) + " axes, got " + std::to_string(ndim));
    spec.ndim = static_cast<int>(ndim);
    at += 2;
    for (int64_t i = 0; i < ndim; ++i) spec.shape[i] = given[at++];
    specs.push_back(spec);
  }
  return specs;
}

}  // namespace
}  // namespace hybridnet::jni

using namespace hybridnet::jni;  // the functions below are Java methods: their names contain the class

extern "C" {

JNIEXPORT jlong JNICALL Java_org_hybridnet_Native_modelLoad(JNIEnv* env, jclass, jbyteArray symbol, jbyteArray params) {
  return guarded(env, [&] {
    const std::string symbol_path = text_of(env, symbol, "symbol");
    const std::string params_path = params ? text_of(env, params, "params") : std::string();
    HnModel out = nullptr;
    check(env, hn_model_load(symbol_path.c_str(), params ? params_path.c_str() : nullptr, &out));
    return to_java(out);
  });
}

JNIEXPORT jlong JNICALL Java_org_hybridnet_Native_modelLoadFromMemory(JNIEnv* env, jclass, jbyteArray json,
                                                                      jbyteArray params) {
  return guarded(env, [&] {
    const std::string symbol = text_of(env, json, "json");
    const std::string values = params ? text_of(env, params, "params") : std::string();
    HnModel out = nullptr;
    check(env, hn_model_load_from_memory(symbol.data(), symbol.size(), params ? values.data() : nullptr, values.size(),
                                         &out));
    return to_java(out);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_modelFree(JNIEnv*, jclass, jlong handle) {
  hn_model_free(static_cast<HnModel>(from_java(handle)));
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_modelSave(JNIEnv* env, jclass, jobject model, jbyteArray symbol,
                                                           jbyteArray params) {
  guarded(env, [&] {
    check(env, hn_model_save(model_of(env, model), text_of(env, symbol, "symbol").c_str(),
                             text_of(env, params, "params").c_str()));
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_modelToDevice(JNIEnv* env, jclass, jobject model, jint device_type,
                                                               jint device) {
  guarded(env, [&] { check(env, hn_model_to_device(model_of(env, model), device_type, device)); });
}

JNIEXPORT jintArray JNICALL Java_org_hybridnet_Native_modelDevice(JNIEnv* env, jclass, jobject model) {
  return guarded(env, [&] {
    int type = 0, id = 0;
    check(env, hn_model_device(model_of(env, model), &type, &id));
    return give_device(env, type, id);
  });
}

JNIEXPORT jobjectArray JNICALL Java_org_hybridnet_Native_modelInputNames(JNIEnv* env, jclass, jobject model) {
  return guarded(env, [&] { return give_names(env, model, hn_model_num_inputs, hn_model_input_name); });
}

JNIEXPORT jobjectArray JNICALL Java_org_hybridnet_Native_modelOutputNames(JNIEnv* env, jclass, jobject model) {
  return guarded(env, [&] { return give_names(env, model, hn_model_num_outputs, hn_model_output_name); });
}

JNIEXPORT jobjectArray JNICALL Java_org_hybridnet_Native_modelParameterNames(JNIEnv* env, jclass, jobject model) {
  return guarded(env, [&] { return give_names(env, model, hn_model_num_parameters, hn_model_parameter_name); });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_modelInputSpecs(JNIEnv* env, jclass, jobject model) {
  return guarded(env, [&] { return give_specs(env, model_of(env, model), hn_model_num_inputs, hn_model_input_spec); });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_modelParameterSpecs(JNIEnv* env, jclass, jobject model) {
  return guarded(
      env, [&] { return give_specs(env, model_of(env, model), hn_model_num_parameters, hn_model_parameter_spec); });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_modelStates(JNIEnv* env, jclass, jobject model) {
  return guarded(env, [&] {
    const HnModel handle = model_of(env, model);
    size_t count = 0;
    check(env, hn_model_num_parameters(handle, &count));
    std::vector<jlong> states;
    for (size_t i = 0; i < count; ++i) {
      int is_state = 0;
      check(env, hn_model_parameter_is_state(handle, i, &is_state));
      if (is_state) states.push_back(static_cast<jlong>(i));
    }
    return give_longs(env, states);
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_modelParameter(JNIEnv* env, jclass, jobject model, jint index) {
  return guarded(env, [&] {
    HnArray out = nullptr;
    check(env, hn_model_parameter(model_of(env, model), static_cast<size_t>(index), &out));
    return give_array(env, out);
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_modelInfer(JNIEnv* env, jclass, jobject model,
                                                                  jlongArray inputs) {
  return guarded(env, [&] {
    const HnModel handle = model_of(env, model);
    const auto given = specs_of(env, inputs);
    size_t count = 0;
    check(env, hn_model_num_outputs(handle, &count));
    std::vector<HnTensorSpec> outputs(count);
    check(env, hn_model_infer(handle, given.size(), given.data(), count, outputs.data()));
    std::vector<jlong> numbers;
    for (const HnTensorSpec& spec : outputs) append_spec(numbers, spec);
    return give_longs(env, numbers);
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_modelRun(JNIEnv* env, jclass, jobject model,
                                                                jobjectArray inputs) {
  return guarded(env, [&] {
    const HnModel handle = model_of(env, model);
    const auto arrays = arrays_of(env, inputs, "inputs");
    size_t count = 0;
    check(env, hn_model_num_outputs(handle, &count));
    std::vector<HnArray> outputs(count);
    check(env, hn_model_run(handle, arrays.size(), arrays.data(), count, outputs.data()));
    return give_arrays(env, outputs.data(), count);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_modelRunInto(JNIEnv* env, jclass, jobject model, jobjectArray inputs,
                                                              jobjectArray outputs) {
  guarded(env, [&] {
    const auto in = arrays_of(env, inputs, "inputs");
    const auto out = arrays_of(env, outputs, "outputs");
    check(env, hn_model_run_into(model_of(env, model), in.size(), in.data(), out.size(), out.data()));
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_modelSetRemat(JNIEnv* env, jclass, jobject model, jbyteArray remat) {
  guarded(env, [&] { check(env, hn_model_set_remat(model_of(env, model), text_of(env, remat, "remat").c_str())); });
}

JNIEXPORT jbyteArray JNICALL Java_org_hybridnet_Native_modelPlanText(JNIEnv* env, jclass, jobject model) {
  return guarded(env, [&] {
    const char* text = nullptr;
    check(env, hn_model_plan_text(model_of(env, model), &text));
    return give_text(env, text);
  });
}

JNIEXPORT jlong JNICALL Java_org_hybridnet_Native_sessionCreate(JNIEnv* env, jclass, jobject model, jobjectArray inputs,
                                                                jobjectArray outputs) {
  return guarded(env, [&] {
    const HnModel handle = model_of(env, model);
    const auto in = arrays_of(env, inputs, "inputs");
    const auto out = outputs ? arrays_of(env, outputs, "outputs") : std::vector<HnArray>();
    const HnArray none = nullptr;
    const HnArray* given = out.empty() ? &none : out.data();  // an empty list is not NULL, which requests new arrays
    HnSession session = nullptr;
    check(env, hn_session_create(handle, in.size(), in.data(), out.size(), outputs ? given : nullptr, &session));
    return to_java(session);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_sessionFree(JNIEnv*, jclass, jlong handle) {
  hn_session_free(static_cast<HnSession>(from_java(handle)));
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_sessionOutput(JNIEnv* env, jclass, jobject session, jint index) {
  return guarded(env, [&] {
    HnArray out = nullptr;
    check(env, hn_session_output(static_cast<HnSession>(handle_of(env, session, "the session")),
                                 static_cast<size_t>(index), &out));
    return give_array(env, out);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_sessionRun(JNIEnv* env, jclass, jobject session) {
  guarded(env, [&] { check(env, hn_session_run(static_cast<HnSession>(handle_of(env, session, "the session")))); });
}

JNIEXPORT jlong JNICALL Java_org_hybridnet_Native_batcherCreate(JNIEnv* env, jclass, jobject model, jlongArray inputs,
                                                                jlong max_rows, jlong max_wait_us, jlong max_waiting,
                                                                jlong calls) {
  return guarded(env, [&] {
    const auto given = specs_of(env, inputs);
    const HnBatcherOptions options = {sizeof(HnBatcherOptions), max_rows, max_wait_us, max_waiting, calls};
    HnBatcher batcher = nullptr;
    check(env, hn_batcher_create(model_of(env, model), given.size(), given.empty() ? nullptr : given.data(), &options,
                                 &batcher));
    return to_java(batcher);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_batcherFree(JNIEnv*, jclass, jlong handle) {
  hn_batcher_free(static_cast<HnBatcher>(from_java(handle)));
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_batcherRun(JNIEnv* env, jclass, jobject batcher,
                                                                  jobjectArray inputs, jint num_outputs) {
  return guarded(env, [&] {
    const auto arrays = arrays_of(env, inputs, "inputs");
    std::vector<HnArray> outputs(static_cast<size_t>(num_outputs));
    check(env, hn_batcher_run(static_cast<HnBatcher>(handle_of(env, batcher, "the batcher")), arrays.size(),
                              arrays.data(), outputs.size(), outputs.data()));
    return give_arrays(env, outputs.data(), outputs.size());
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_batcherClose(JNIEnv* env, jclass, jobject batcher) {
  guarded(env, [&] { check(env, hn_batcher_close(static_cast<HnBatcher>(handle_of(env, batcher, "the batcher")))); });
}

}  // extern "C"
