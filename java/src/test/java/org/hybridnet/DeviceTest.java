package org.hybridnet;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Holds with and without a GPU; tests/python/deploy runs programs on one. */
class DeviceTest {
  private static final int MISSING = 999;

  @Test
  void thereIsAGpuOrAReasonWhyNot() {
    assertEquals(Device.numGpus() == 0, !Device.whyNoGpu().isEmpty());
  }

  @Test
  void tf32IsOffUntilItIsAllowed() {
    assertEquals(false, Device.allowTf32(true));
    assertEquals(true, Device.allowTf32(false));
  }

  @Test
  void aDeviceIsNamedAsInAttributes() {
    assertEquals("cpu(0)", Device.cpu().toString());
    assertEquals("gpu(1)", Device.gpu(1).toString());
    NDArray ones = Operator.invoke("_ones", java.util.Map.of("shape", new int[] {2}, "ctx", Device.cpu()))[0];
    assertArrayEquals(new float[] {1, 1}, ones.toFloats());
  }

  @Test
  void aMissingGpuIsNamed() {
    Device missing = Device.gpu(MISSING);
    for (Throwable error :
        new Throwable[] {
          assertThrows(UnsupportedError.class, () -> NDArray.zeros(missing, DType.FLOAT32, 2)),
          assertThrows(UnsupportedError.class, () -> NDArray.zeros(DType.FLOAT32, 2).to(missing)),
          assertThrows(UnsupportedError.class, missing::memory),
          assertThrows(UnsupportedError.class, () -> Model.load(ModelTest.prefix("net")).to(missing))
        }) {
      assertTrue(error.getMessage().contains("gpu(" + MISSING + ")"), error.getMessage());
    }
    assertThrows(UnsupportedError.class, () -> Device.cpu().memory());
    assertThrows(ValueError.class, () -> NDArray.zeros(Device.gpu(-1), DType.FLOAT32, 2));
  }

  @Test
  void anArrayThatIsThereAlreadyIsShared() {
    NDArray array = NDArray.zeros(DType.FLOAT32, 2);
    try (NDArray same = array.to(Device.cpu())) {
      array.copyFrom(new float[] {3, 4});
      assertArrayEquals(new float[] {3, 4}, same.toFloats());
      assertEquals(Device.cpu(), same.device());
    }
    assertFalse(array.isClosed());
  }

  @Test
  void aModelThatCouldNotBeMovedRunsWhereItWas() {
    try (Model model = Model.load(ModelTest.prefix("net"))) {
      float[] before = model.predict(new float[64], 1, 1, 8, 8);
      assertThrows(UnsupportedError.class, () -> model.to(Device.gpu(MISSING)));
      assertEquals(Device.cpu(), model.device());
      assertArrayEquals(before, model.to(Device.cpu()).predict(new float[64], 1, 1, 8, 8));
    }
  }
}
