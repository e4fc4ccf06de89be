package org.hybridnet;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class AutogradTest {
  @Test
  void gradientsOfOperators() {
    try (NDArray x = NDArray.of(new float[] {1, 2, 3}, 3)) {
      x.attachGrad();
      NDArray y;
      try (Autograd.Scope scope = Autograd.record()) {
        assertTrue(Autograd.isRecording());
        assertTrue(Autograd.isTraining());
        y = x.times(x).times(x);
      }
      assertFalse(Autograd.isRecording());
      y.backward();
      assertArrayEquals(new float[] {3, 12, 27}, x.grad().toFloats());
    }
  }

  @Test
  void gradientsAddUpOrArriveFromOutside() {
    try (NDArray x = NDArray.of(new float[] {1, 2}, 2);
        NDArray arriving = NDArray.of(new float[] {10, 100}, 2)) {
      x.attachGrad("add");
      for (int i = 0; i < 2; i++) {
        NDArray y;
        try (Autograd.Scope scope = Autograd.record(false)) {
          assertFalse(Autograd.isTraining());
          y = x.times(2);
        }
        Autograd.backward(new NDArray[] {y, y}, new NDArray[] {arriving, null}, false, true);
      }
      assertArrayEquals(new float[] {44, 404}, x.grad().toFloats());
    }
  }

  @Test
  void headGradientsOfAnotherTypeAreCast() {
    try (NDArray x = NDArray.of(new float[] {1, 2, 3}, 3);
        NDArray head = NDArray.of(new double[] {1, 0, 3}, 3)) {
      x.attachGrad();
      NDArray y;
      try (Autograd.Scope scope = Autograd.record()) {
        y = x.times(x);
      }
      Autograd.backward(new NDArray[] {y}, new NDArray[] {head}, false, true);
      assertArrayEquals(new float[] {2, 0, 18}, x.grad().toFloats());
    }
  }

  @Test
  void gradientsOfGradients() {
    try (NDArray x = NDArray.of(new double[] {2}, 1)) {
      x.attachGrad();
      NDArray second;
      try (Autograd.Scope scope = Autograd.record()) {
        NDArray y = x.times(x).times(x);
        NDArray first = Autograd.grad(new NDArray[] {y}, new NDArray[] {x}, true)[0];
        assertArrayEquals(new double[] {12}, first.toDoubles());
        second = Autograd.grad(new NDArray[] {first}, new NDArray[] {x}, false)[0];
      }
      assertArrayEquals(new double[] {12}, second.toDoubles());
    }
  }

  @Test
  void scopesNestAndBelongToTheirThread() throws Exception {
    Autograd.Scope scope = Autograd.record();
    try (Autograd.Scope inner = Autograd.pause()) {
      assertFalse(Autograd.isRecording());
      try (Autograd.Scope training = Autograd.trainMode()) {
        assertTrue(Autograd.isTraining());
        assertFalse(Autograd.isRecording());
      }
    }
    try (Autograd.Scope predicting = Autograd.predictMode()) {
      assertTrue(Autograd.isRecording());
      assertFalse(Autograd.isTraining());
    }
    List<Throwable> thrown = new ArrayList<>();
    Thread other =
        new Thread(
            () -> {
              if (Autograd.isRecording()) {
                thrown.add(new AssertionError("another thread records"));
              }
              try {
                scope.close();
              } catch (IllegalStateException failure) {
                thrown.add(failure);
              }
            });
    other.start();
    other.join();
    assertEquals(1, thrown.size());
    assertEquals(IllegalStateException.class, thrown.get(0).getClass());
    assertTrue(Autograd.isRecording());
    scope.close();
    scope.close();
    assertFalse(Autograd.isRecording());
  }

  /** The model of write_models.py learns to predict class i for image i, by plain gradient descent. */
  @Test
  void anExportedModelIsTuned() {
    Map<String, NDArray> stored = NDArray.load(ModelTest.models().resolve("net.params"));
    try (Model model = Model.load(ModelTest.prefix("net"));
        NDArray labels = NDArray.of(new float[] {0, 1, 2, 3, 4}, 5)) {
      Map<String, NDArray> parameters = model.parameters();
      parameters.values().forEach(NDArray::attachGrad);
      float first = 0;
      float last = 0;
      for (int step = 0; step < 200; step++) {
        try (NDArray loss = loss(model, stored.get("in:data"), labels)) {
          loss.backward();
          last = loss.toFloats()[0];
          first = step == 0 ? last : first;
        }
        for (NDArray parameter : parameters.values()) {
          try (NDArray gradient = parameter.grad();
              Operator update = Operator.of("sgd_update", Map.of("lr", 0.5))) {
            update.callInto(new NDArray[] {parameter, gradient}, parameter);
          }
        }
      }
      assertTrue(first > 1 && last < 0.05, first + " -> " + last);
    }
  }

  private static NDArray loss(Model model, NDArray data, NDArray labels) {
    try (Autograd.Scope scope = Autograd.record();
        NDArray scores = model.predict(data)[0];
        NDArray logs = Operator.invoke("log_softmax", Map.of(), scores)[0];
        NDArray picked = Operator.invoke("pick", Map.of(), logs, labels)[0];
        NDArray mean = Operator.invoke("mean", Map.of(), picked)[0]) {
      return mean.unaryMinus();
    }
  }

  @Test
  void gradientsPassThroughALoop() {
    try (Model model = Model.load(ModelTest.models().resolve("decoder-symbol.json"), null);
        NDArray data = NDArray.of(new float[] {0.5f, 1, 2, 0.25f}, 2, 2)) {
      data.attachGrad();
      NDArray[] outputs;
      try (Autograd.Scope scope = Autograd.record()) {
        outputs = model.predict(data);
      }
      outputs[0].backward();
      float steps = outputs[1].toFloats()[0];
      float[] values = data.toFloats();
      float[] gradients = data.grad().toFloats();
      for (int i = 0; i < values.length; i++) {
        double tanh = Math.tanh(values[i]);
        assertEquals(steps * (1 - tanh * tanh), gradients[i], 1e-4 * steps);
      }
    }
  }

  @Test
  void wrongUsesAreErrors() {
    try (NDArray x = NDArray.of(new float[] {1}, 1)) {
      assertThrows(GradientError.class, x::grad);
      assertThrows(GradientError.class, x::backward);
      assertThrows(HybridNetError.class, () -> x.attachGrad("sometimes"));
      assertThrows(ValueError.class, () -> Autograd.backward());
      assertThrows(NullPointerException.class, () -> Autograd.backward((NDArray) null));
      assertThrows(
          ValueError.class, () -> Autograd.backward(new NDArray[] {x}, new NDArray[] {x, x}, false, true));
      assertThrows(HybridNetError.class, () -> Autograd.grad(new NDArray[] {x}, new NDArray[0], false));
    }
  }
}
