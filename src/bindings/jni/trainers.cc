// Trainers.
#include "jni_support.h"

using namespace hybridnet::jni;

namespace {

HnTrainer trainer_of(JNIEnv* env, jobject trainer) {
  return static_cast<HnTrainer>(handle_of(env, trainer, "the trainer"));
}

}  // namespace

extern "C" {

JNIEXPORT jobjectArray JNICALL Java_org_hybridnet_Native_optimizerNames(JNIEnv* env, jclass) {
  return guarded(env, [&] {
    size_t count = 0;
    check(env, hn_optimizer_count(&count));
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
      const char* name = nullptr;
      check(env, hn_optimizer_name(i, &name));
      names.emplace_back(name);
    }
    return give_texts(env, names);
  });
}

JNIEXPORT jlong JNICALL Java_org_hybridnet_Native_trainerCreate(JNIEnv* env, jclass, jobjectArray names,
                                                                jobjectArray parameters, jbyteArray optimizer,
                                                                jobjectArray keys, jobjectArray values) {
  return guarded(env, [&] {
    const std::vector<HnArray> arrays = arrays_of(env, parameters, "parameters");
    const std::vector<std::string> called = texts_of(env, names, "names"), k = texts_of(env, keys, "keys"),
                                   v = texts_of(env, values, "values");
    HnTrainer trainer = nullptr;
    check(env, hn_trainer_create(arrays.size(), pointers_to(called).data(), arrays.data(),
                                 text_of(env, optimizer, "optimizer").c_str(), k.size(), pointers_to(k).data(),
                                 pointers_to(v).data(), &trainer));
    return to_java(trainer);
  });
}

JNIEXPORT jlong JNICALL Java_org_hybridnet_Native_trainerCreateForModel(JNIEnv* env, jclass, jobject model,
                                                                        jbyteArray optimizer, jobjectArray keys,
                                                                        jobjectArray values) {
  return guarded(env, [&] {
    const std::vector<std::string> k = texts_of(env, keys, "keys"), v = texts_of(env, values, "values");
    HnTrainer trainer = nullptr;
    check(env, hn_trainer_create_for_model(static_cast<HnModel>(handle_of(env, model, "the model")),
                                           text_of(env, optimizer, "optimizer").c_str(), k.size(),
                                           pointers_to(k).data(), pointers_to(v).data(), &trainer));
    return to_java(trainer);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_trainerFree(JNIEnv*, jclass, jlong handle) {
  hn_trainer_free(static_cast<HnTrainer>(from_java(handle)));
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_trainerStep(JNIEnv* env, jclass, jobject trainer, jdouble batch_size,
                                                             jboolean ignore_stale_grad) {
  guarded(env, [&] { check(env, hn_trainer_step(trainer_of(env, trainer), batch_size, ignore_stale_grad)); });
}

JNIEXPORT jlong JNICALL Java_org_hybridnet_Native_trainerNumUpdates(JNIEnv* env, jclass, jobject trainer) {
  return guarded(env, [&] {
    int64_t count = 0;
    check(env, hn_trainer_num_updates(trainer_of(env, trainer), &count));
    return static_cast<jlong>(count);
  });
}

JNIEXPORT jdouble JNICALL Java_org_hybridnet_Native_trainerLearningRate(JNIEnv* env, jclass, jobject trainer) {
  return guarded(env, [&] {
    double rate = 0;
    check(env, hn_trainer_learning_rate(trainer_of(env, trainer), &rate));
    return static_cast<jdouble>(rate);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_trainerSetLearningRate(JNIEnv* env, jclass, jobject trainer,
                                                                        jdouble rate) {
  guarded(env, [&] { check(env, hn_trainer_set_learning_rate(trainer_of(env, trainer), rate)); });
}

// schedule: may be null.
JNIEXPORT void JNICALL Java_org_hybridnet_Native_trainerSetSchedule(JNIEnv* env, jclass, jobject trainer,
                                                                    jbyteArray schedule, jobjectArray keys,
                                                                    jobjectArray values) {
  guarded(env, [&] {
    const HnTrainer handle = trainer_of(env, trainer);
    if (schedule == nullptr) {
      check(env, hn_trainer_set_schedule(handle, nullptr, 0, nullptr, nullptr));
      return;
    }
    const std::vector<std::string> k = texts_of(env, keys, "keys"), v = texts_of(env, values, "values");
    check(env, hn_trainer_set_schedule(handle, text_of(env, schedule, "schedule").c_str(), k.size(),
                                       pointers_to(k).data(), pointers_to(v).data()));
  });
}

JNIEXPORT jbyteArray JNICALL Java_org_hybridnet_Native_trainerSetting(JNIEnv* env, jclass, jobject trainer,
                                                                      jbyteArray name) {
  return guarded(env, [&] {
    const char* text = nullptr;
    check(env, hn_trainer_setting(trainer_of(env, trainer), text_of(env, name, "name").c_str(), &text));
    return give_text(env, text);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_trainerSetSetting(JNIEnv* env, jclass, jobject trainer,
                                                                   jbyteArray name, jbyteArray value) {
  guarded(env, [&] {
    check(env, hn_trainer_set_setting(trainer_of(env, trainer), text_of(env, name, "name").c_str(),
                                      text_of(env, value, "value").c_str()));
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_trainerSetMultipliers(JNIEnv* env, jclass, jobject trainer,
                                                                       jbyteArray parameter, jdouble lr_mult,
                                                                       jdouble wd_mult) {
  guarded(env, [&] {
    check(env, hn_trainer_set_multipliers(trainer_of(env, trainer), text_of(env, parameter, "parameter").c_str(),
                                          lr_mult, wd_mult));
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_trainerSaveStates(JNIEnv* env, jclass, jobject trainer,
                                                                   jbyteArray path) {
  guarded(env,
          [&] { check(env, hn_trainer_save_states(trainer_of(env, trainer), text_of(env, path, "path").c_str())); });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_trainerLoadStates(JNIEnv* env, jclass, jobject trainer,
                                                                   jbyteArray path) {
  guarded(env,
          [&] { check(env, hn_trainer_load_states(trainer_of(env, trainer), text_of(env, path, "path").c_str())); });
}

}  // extern "C"
