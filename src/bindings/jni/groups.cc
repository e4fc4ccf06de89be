// The processes that train together.
#include "jni_support.h"

using namespace hybridnet::jni;

namespace {

// Returns the number that read(&number) writes.
template <typename Read>
jint number_of(JNIEnv* env, const Read& read) {
  int number = 0;
  check(env, read(&number));
  return jint{number};
}

}  // namespace

extern "C" {

JNIEXPORT void JNICALL Java_org_hybridnet_Native_groupJoin(JNIEnv* env, jclass) {
  guarded(env, [&] { check(env, hn_group_join(nullptr)); });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_groupJoinAs(JNIEnv* env, jclass, jint rank, jint size,
                                                             jint virtual_shards, jbyteArray meeting,
                                                             jbyteArray token_file, jbyteArray address,
                                                             jbyteArray engine, jbyteArray name, jdouble timeout) {
  guarded(env, [&] {
    const std::string met = text_of(env, meeting, "meeting"), token = text_of(env, token_file, "tokenFile"),
                      place = text_of(env, address, "address"), library = text_of(env, engine, "engine"),
                      called = text_of(env, name, "name");
    const HnGroupSettings settings = {
        sizeof(HnGroupSettings), rank,           size,   virtual_shards, met.c_str(), token.c_str(), place.c_str(),
        library.c_str(),         called.c_str(), timeout};
    check(env, hn_group_join(&settings));
  });
}

JNIEXPORT jboolean JNICALL Java_org_hybridnet_Native_groupIsJoined(JNIEnv* env, jclass) {
  return guarded(env, [&] { return static_cast<jboolean>(number_of(env, hn_group_is_joined)); });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_groupLeave(JNIEnv* env, jclass, jbyteArray reason) {
  guarded(env, [&] { check(env, hn_group_leave(text_of(env, reason, "reason").c_str())); });
}

JNIEXPORT jint JNICALL Java_org_hybridnet_Native_groupRank(JNIEnv* env, jclass) {
  return guarded(env, [&] { return number_of(env, hn_group_rank); });
}

JNIEXPORT jint JNICALL Java_org_hybridnet_Native_groupSize(JNIEnv* env, jclass) {
  return guarded(env, [&] { return number_of(env, hn_group_size); });
}

JNIEXPORT jint JNICALL Java_org_hybridnet_Native_groupVirtualShards(JNIEnv* env, jclass) {
  return guarded(env, [&] { return number_of(env, hn_group_virtual_shards); });
}

// Returns {first, end}.
JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_groupOwnShards(JNIEnv* env, jclass) {
  return guarded(env, [&] {
    int first = 0, end = 0;
    check(env, hn_group_own_shards(&first, &end));
    return give_longs(env, {first, end});
  });
}

// Returns {calls, bytes sent}.
JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_groupCounters(JNIEnv* env, jclass) {
  return guarded(env, [&] {
    int64_t calls = 0, bytes_sent = 0;
    check(env, hn_group_counters(&calls, &bytes_sent));
    return give_longs(env, {calls, bytes_sent});
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_groupSum(JNIEnv* env, jclass, jobject array, jbyteArray name) {
  return guarded(env, [&] {
    HnArray sum = nullptr;
    check(env, hn_group_sum(array_of(env, array, "the array"), text_of(env, name, "name").c_str(), &sum));
    return give_array(env, sum);
  });
}

// out: may be null.
JNIEXPORT void JNICALL Java_org_hybridnet_Native_groupSumInto(JNIEnv* env, jclass, jobjectArray arrays,
                                                              jobjectArray out, jbyteArray name, jint priority) {
  guarded(env, [&] {
    const std::vector<HnArray> given = arrays_of(env, arrays, "arrays");
    const std::vector<HnArray> targets = out == nullptr ? given : arrays_of(env, out, "out");
    if (targets.size() != given.size())
      throw_error(env, "ValueError",
                  "Group.sumInto: expected " + std::to_string(given.size()) + " arrays in out, got " +
                      std::to_string(targets.size()));
    check(env,
          hn_group_sum_into(given.size(), given.data(), targets.data(), text_of(env, name, "name").c_str(), priority));
  });
}

JNIEXPORT jlongArray JNICALL Java_org_hybridnet_Native_groupGather(JNIEnv* env, jclass, jobject array,
                                                                   jbyteArray name) {
  return guarded(env, [&] {
    HnArray all = nullptr;
    check(env, hn_group_gather(array_of(env, array, "the array"), text_of(env, name, "name").c_str(), &all));
    return give_array(env, all);
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_groupBroadcast(JNIEnv* env, jclass, jobjectArray arrays, jint root,
                                                                jbyteArray name) {
  guarded(env, [&] {
    const std::vector<HnArray> given = arrays_of(env, arrays, "arrays");
    check(env, hn_group_broadcast(given.size(), given.data(), root, text_of(env, name, "name").c_str()));
  });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_groupBarrier(JNIEnv* env, jclass) {
  guarded(env, [&] { check(env, hn_group_barrier()); });
}

JNIEXPORT void JNICALL Java_org_hybridnet_Native_trainerSumOverGroup(JNIEnv* env, jclass, jobject trainer) {
  guarded(env, [&] {
    check(env, hn_trainer_sum_over_group(static_cast<HnTrainer>(handle_of(env, trainer, "the trainer"))));
  });
}

}  // extern "C"
