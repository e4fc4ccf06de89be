package org.hybridnet;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/** Finds libhybridnet_jni.so. libhybridnet.so and its dependencies are in the same folder. */
final class NativeLibrary {
  private static final String NAME = "hybridnet_jni";

  private final List<String> tried = new ArrayList<>();

  private NativeLibrary() {}

  static void load() {
    NativeLibrary library = new NativeLibrary();
    if (library.fromProperty() || library.fromJar() || library.fromLibraryPath() || library.fromPip()) {
      return;
    }
    throw new UnsatisfiedLinkError(
        "libhybridnet_jni.so was not found. Tried:\n  "
            + String.join("\n  ", library.tried)
            + "\n  Fix: give the folder that holds it as -Dorg.hybridnet.library.path=FOLDER, use the jar with native"
            + " libraries (tools/dev jar), or `pip install .` where a JDK is installed.");
  }

  /** Loads the library from the folder that the user names. If one is named, no other place is tried. */
  private boolean fromProperty() {
    String folder = System.getProperty("org.hybridnet.library.path");
    if (folder == null) {
      tried.add("-Dorg.hybridnet.library.path: not set");
      return false;
    }
    System.load(Path.of(folder).toAbsolutePath().resolve(System.mapLibraryName(NAME)).toString());
    return true;
  }

  private boolean fromJar() {
    String folder = "natives/" + platform() + "/";
    try (InputStream index = NativeLibrary.class.getResourceAsStream(folder + "files.txt")) {
      if (index == null) {
        tried.add("the jar: it holds no native libraries for " + platform());
        return false;
      }
      Path target = Files.createTempDirectory("hybridnet-");
      target.toFile().deleteOnExit();
      for (String name : new String(index.readAllBytes(), UTF_8).split("\n")) {
        Path file = target.resolve(name);
        file.toFile().deleteOnExit();
        try (InputStream content = NativeLibrary.class.getResourceAsStream(folder + name)) {
          Files.copy(content, file);
        }
      }
      System.load(target.resolve(System.mapLibraryName(NAME)).toString());
      return true;
    } catch (IOException failure) {
      tried.add("the jar: its native libraries could not be unpacked into java.io.tmpdir: " + failure);
      return false;
    }
  }

  private boolean fromLibraryPath() {
    try {
      System.loadLibrary(NAME);
      return true;
    } catch (UnsatisfiedLinkError failure) {
      tried.add("java.library.path: " + failure.getMessage());
      return false;
    }
  }

  /** Asks the Python in -Dorg.hybridnet.python, or python3, for the folder of its package hybridnet. */
  private boolean fromPip() {
    String python = System.getProperty("org.hybridnet.python", "python3");
    String command = python + " -m hybridnet.libinfo --lib";
    try {
      Process process =
          new ProcessBuilder(python, "-m", "hybridnet.libinfo", "--lib")
              .redirectError(ProcessBuilder.Redirect.DISCARD)
              .start();
      process.getOutputStream().close();
      String answer = new String(process.getInputStream().readAllBytes(), UTF_8).strip();
      if (!process.waitFor(30, TimeUnit.SECONDS) || process.exitValue() != 0) {
        tried.add("the pip package: `" + command + "` failed");
        return false;
      }
      Path file = Path.of(answer).resolveSibling(System.mapLibraryName(NAME));
      if (!Files.exists(file)) {
        tried.add("the pip package: it was built without a JDK, there is no " + file);
        return false;
      }
      System.load(file.toString());
      return true;
    } catch (IOException failure) {
      tried.add("the pip package: " + failure.getMessage());
      return false;
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      tried.add("the pip package: interrupted while `" + command + "` ran");
      return false;
    }
  }

  private static String platform() {
    String machine = System.getProperty("os.arch").replace("amd64", "x86_64");
    return System.getProperty("os.name").toLowerCase(Locale.ROOT) + "-" + machine;
  }
}
