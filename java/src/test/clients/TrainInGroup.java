import java.nio.file.Path;
import java.util.Map;
import org.hybridnet.Autograd;
import org.hybridnet.Group;
import org.hybridnet.GroupError;
import org.hybridnet.Model;
import org.hybridnet.NDArray;
import org.hybridnet.Operator;
import org.hybridnet.Trainer;

/**
 * One process of a group that trains a model, like tests/cpp/clients/train_in_group.cc: {@code java
 * TrainInGroup.java PREFIX CASE STEPS RESULT [FAULT STEP]}. FAULT: "throw", "halt" or "exit".
 */
public final class TrainInGroup {
  private TrainInGroup() {}

  static void fail(String fault) {
    switch (fault) {
      case "throw" -> throw new IllegalStateException("a wrong shape\nin two lines");
      case "halt" -> Runtime.getRuntime().halt(3);
      case "exit" -> System.exit(0);
      default -> {}
    }
  }

  static NDArray part(NDArray rows) {
    long count = rows.shape()[0] / Group.size();
    return rows.slice(Group.rank() * count, (Group.rank() + 1) * count);
  }

  static void train(String[] words) {
    String fault = words.length > 4 ? words[4] : "";
    int faultStep = words.length > 4 ? Integer.parseInt(words[5]) : -1;
    Map<String, NDArray> given = NDArray.load(Path.of(words[1]));
    try (Model model = Model.load(words[0]);
        Trainer trainer = new Trainer(model, "sgd", Map.of("learning_rate", 0.5, "momentum", 0.9)).sumOverGroup()) {
      NDArray data = part(given.get("data"));
      NDArray label = part(given.get("label"));
      for (int step = 0; step < Integer.parseInt(words[2]); step++) {
        if (step == faultStep) {
          fail(fault);
        }
        NDArray loss;
        try (Autograd.Scope recording = Autograd.record()) {
          NDArray logs = Operator.invoke("log_softmax", Map.of(), model.predict(data))[0];
          loss = Operator.invoke("pick", Map.of(), logs, label)[0].unaryMinus();
        }
        loss.backward();
        trainer.step(given.get("data").shape()[0]);
      }
      NDArray.save(Path.of(words[3] + "." + Group.rank()), model.parameters());
    }
  }

  public static void main(String[] words) throws Exception {
    try {
      Group.run(() -> train(words));
    } catch (GroupError error) {
      System.out.println("GroupError: " + error.getMessage());
      System.exit(7);
    }
    System.out.println("done");
  }
}
