package org.hybridnet;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.junit.jupiter.api.Test;

/** A group of one process; tests/python/group/test_languages.py has those of several. */
class GroupTest {
  @Test
  void aProcessAloneHasItsPlace() {
    Group.join();
    assertTrue(Group.isJoined());
    assertEquals(0, Group.rank());
    assertEquals(1, Group.size());
    assertEquals(1, Group.virtualShards());
    assertEquals(new Group.Shards(0, 1), Group.ownShards());
    Group.barrier();
    assertTrue(Group.counters().calls() >= 1);
  }

  @Test
  void sumsOfOneProcessAreTheArrays() {
    float[] values = {1, 2, 3};
    try (NDArray x = NDArray.of(values, 3);
        NDArray y = NDArray.zeros(DType.FLOAT32, 3);
        NDArray sum = Group.sum(x, "x");
        NDArray all = Group.gather(x, "")) {
      assertArrayEquals(values, sum.toFloats());
      assertArrayEquals(new long[] {1, 3}, all.shape());
      Group.sumInto(new NDArray[] {x}, new NDArray[] {y}, "x", 0);
      assertArrayEquals(values, y.toFloats());
      Group.sumInto("both", x, y);
      Group.broadcast(0, "both", x, y);
      assertArrayEquals(values, x.toFloats());
      assertThrows(ValueError.class, () -> Group.broadcast(1, "", x));
      assertThrows(ValueError.class, () -> Group.sumInto(new NDArray[] {x}, new NDArray[0], "", 0));
      try (NDArray other = NDArray.zeros(DType.FLOAT64, 3)) {
        assertThrows(DTypeError.class, () -> Group.sumInto("", x, other));
      }
    }
  }

  @Test
  void aTrainerThatSumsOverOneProcessTrainsAsWithout() {
    try (NDArray weight = NDArray.of(new float[] {1}, 1);
        Trainer trainer = new Trainer(Map.of("weight", weight), "sgd", Map.of("learning_rate", 1)).sumOverGroup()) {
      try (Autograd.Scope scope = Autograd.record()) {
        weight.times(3).backward();
      }
      trainer.step(3);
      assertArrayEquals(new float[] {0}, weight.toFloats());
    }
  }

  @Test
  void wrongSettingsAreErrors() {
    assertThrows(ValueError.class, () -> Group.join(new Group.Settings(1, 1, "", "")));
    assertThrows(ValueError.class, () -> Group.join(new Group.Settings(0, 2, "nowhere", "")));
    assertThrows(FileError.class, () -> Group.join(new Group.Settings(0, 2, "folder:/nowhere", "/nowhere/token")));
    assertThrows(NullPointerException.class, () -> Group.join(new Group.Settings(0, 2, null, "")));
  }

  @Test
  void runPassesExceptionsOn() {
    IllegalStateException thrown = new IllegalStateException();
    assertSame(
        thrown,
        assertThrows(
            IllegalStateException.class,
            () ->
                Group.run(
                    () -> {
                      throw thrown;
                    })));
  }
}
