package org.hybridnet;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * The functions of libhybridnet_jni.so (src/bindings/jni). Java objects are passed instead of their
 * handles, so that they are alive while native code uses the handles. Each array is returned as
 * {handle, bytes of its memory}. Texts are UTF-8.
 */
final class Native {
  static {
    NativeLibrary.load();
    try {
      Runtime.getRuntime().addShutdownHook(new Thread(Native::shutdown, "hybridnet-shutdown"));
    } catch (IllegalStateException ending) {
      // A hook of the program uses the library first: it waits for its results itself.
    }
  }

  /** Kinds of Java arrays, with the same numbers as in arrays.cc. */
  static final int FLOATS = 0;

  static final int DOUBLES = 1;
  static final int INTS = 2;
  static final int LONGS = 3;
  static final int BYTES = 4;

  private Native() {}

  static byte[] utf8(String text) {
    Objects.requireNonNull(text, "a name or text is null");
    if (text.indexOf('\0') >= 0) {
      throw new ValueError("expected a text without the character 0, got one with it: " + text.replace("\0", "\\0"));
    }
    return text.getBytes(UTF_8);
  }

  static String[] texts(byte[][] utf8) {
    String[] texts = new String[utf8.length];
    for (int i = 0; i < utf8.length; i++) {
      texts[i] = new String(utf8[i], UTF_8);
    }
    return texts;
  }

  // process.cc
  static native byte[] version();

  static native byte[] isa();

  static native byte[] engineType();

  static native void waitAll();

  static native void shutdown();

  static native int numThreads();

  static native void setNumThreads(int cores);

  static native void pinThread(int[] cores);

  static native void seed(long seed);

  static native int numGpus();

  static native byte[] whyNoGpu();

  static native long[] gpuMemory(int device);

  static native boolean allowTf32(boolean allow);

  static native boolean setNumpyShapes(boolean on);

  static native boolean hasNumpyShapes();

  // arrays.cc
  static native long[] arrayCreate(int deviceType, int device, long[] shape, int dtype);

  static native long[] arrayFrom(Object values, int kind, long[] shape, int dtype);

  static native long[] arrayWrap(ByteBuffer buffer, long offset, long length, long[] shape, int dtype);

  static native void arrayFree(long handle);

  static native long[] arrayShare(NDArray array);

  static native long[] arrayCopy(NDArray array);

  static native long[] arrayDetach(NDArray array);

  static native long[] arrayReshape(NDArray array, long[] shape);

  static native long[] arraySlice(NDArray array, long begin, long end);

  static native long[] arrayShape(NDArray array);

  static native int arrayDType(NDArray array);

  static native int[] arrayDevice(NDArray array);

  static native long[] arrayCopyToDevice(NDArray array, int deviceType, int device);

  static native long[] arraySparse(byte[] storage, long[] shape, NDArray data, NDArray indices, NDArray indptr);

  static native byte[] arrayStorage(NDArray array);

  static native long[] arrayPart(NDArray array, byte[] part);

  static native long[] arrayCastStorage(NDArray array, byte[] storage);

  static native long arraySize(NDArray array);

  static native void arrayWait(NDArray array);

  static native ByteBuffer arrayBuffer(long handle);

  static native void arrayRead(NDArray array, Object target, int kind);

  static native void arrayWrite(NDArray array, Object source, int kind);

  static native Object[] arraysLoad(byte[] path);

  static native void arraysSave(byte[] path, NDArray[] arrays, byte[][] names);

  // operators.cc
  static native byte[][] operatorNames();

  static native long operatorPrepare(byte[] name, byte[][] keys, byte[][] values);

  static native void operatorFree(long handle);

  static native int operatorNumOutputs(Operator operator, int inputs);

  static native long[] operatorCall(Operator operator, NDArray[] inputs);

  static native void operatorCallInto(Operator operator, NDArray[] inputs, NDArray[] outputs);

  static native long[] invoke(byte[] name, byte[][] keys, byte[][] values, NDArray[] inputs);

  static native boolean setRecording(boolean on);

  static native boolean setTraining(boolean on);

  static native boolean isRecording();

  static native boolean isTraining();

  static native void attachGrad(NDArray array, byte[] gradReq, byte[] storage);

  static native long[] grad(NDArray array);

  static native void backward(NDArray[] heads, NDArray[] headGrads, boolean retainGraph, boolean trainMode);

  static native long[] gradients(
      NDArray[] heads, NDArray[] variables, boolean retainGraph, boolean createGraph, boolean trainMode);

  // models.cc
  static native long modelLoad(byte[] symbolPath, byte[] paramsPath);

  static native long modelLoadFromMemory(byte[] json, byte[] params);

  static native void modelFree(long handle);

  static native void modelSave(Model model, byte[] symbolPath, byte[] paramsPath);

  static native byte[][] modelInputNames(Model model);

  static native byte[][] modelOutputNames(Model model);

  static native byte[][] modelParameterNames(Model model);

  static native long[] modelInputSpecs(Model model);

  static native long[] modelParameterSpecs(Model model);

  static native long[] modelStates(Model model);

  static native long[] modelParameter(Model model, int index);

  static native void modelToDevice(Model model, int deviceType, int device);

  static native int[] modelDevice(Model model);

  static native long[] modelInfer(Model model, long[] inputs);

  static native long[] modelRun(Model model, NDArray[] inputs);

  static native void modelRunInto(Model model, NDArray[] inputs, NDArray[] outputs);

  static native void modelSetRemat(Model model, byte[] remat);

  static native byte[] modelPlanText(Model model);

  static native long sessionCreate(Model model, NDArray[] inputs, NDArray[] outputs);

  static native void sessionFree(long handle);

  static native long[] sessionOutput(Session session, int index);

  static native void sessionRun(Session session);

  static native long batcherCreate(
      Model model, long[] inputs, long maxRows, long maxWaitMicros, long maxWaiting, long calls);

  static native void batcherFree(long handle);

  static native long[] batcherRun(Batcher batcher, NDArray[] inputs, int outputs);

  static native void batcherClose(Batcher batcher);

  // trainers.cc
  static native byte[][] optimizerNames();

  static native long trainerCreate(
      byte[][] names, NDArray[] parameters, byte[] optimizer, byte[][] keys, byte[][] values);

  static native long trainerCreateForModel(Model model, byte[] optimizer, byte[][] keys, byte[][] values);

  static native void trainerFree(long handle);

  static native void trainerStep(Trainer trainer, double batchSize, boolean ignoreStaleGrad);

  static native long trainerNumUpdates(Trainer trainer);

  static native double trainerLearningRate(Trainer trainer);

  static native void trainerSetLearningRate(Trainer trainer, double rate);

  static native void trainerSetSchedule(Trainer trainer, byte[] schedule, byte[][] keys, byte[][] values);

  static native byte[] trainerSetting(Trainer trainer, byte[] name);

  static native void trainerSetSetting(Trainer trainer, byte[] name, byte[] value);

  static native void trainerSetMultipliers(Trainer trainer, byte[] parameter, double lrMult, double wdMult);

  static native void trainerSaveStates(Trainer trainer, byte[] path);

  static native void trainerLoadStates(Trainer trainer, byte[] path);

  // groups.cc
  static native void groupJoin();

  static native void groupJoinAs(
      int rank,
      int size,
      int virtualShards,
      byte[] meeting,
      byte[] tokenFile,
      byte[] address,
      byte[] engine,
      byte[] name,
      double timeout);

  static native boolean groupIsJoined();

  static native void groupLeave(byte[] reason);

  static native int groupRank();

  static native int groupSize();

  static native int groupVirtualShards();

  static native long[] groupOwnShards();

  static native long[] groupCounters();

  static native long[] groupSum(NDArray array, byte[] name);

  static native void groupSumInto(NDArray[] arrays, NDArray[] out, byte[] name, int priority);

  static native long[] groupGather(NDArray array, byte[] name);

  static native void groupBroadcast(NDArray[] arrays, int root, byte[] name);

  static native void groupBarrier();

  static native void trainerSumOverGroup(Trainer trainer);
}
