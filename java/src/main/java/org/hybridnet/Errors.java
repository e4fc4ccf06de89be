package org.hybridnet;

import static java.nio.charset.StandardCharsets.UTF_8;

/** Makes the exceptions for failures in native code. */
final class Errors {
  private Errors() {}

  /** Returns the exception for a kind of hn_last_error_kind(); called by the native library. */
  static RuntimeException make(byte[] kind, byte[] utf8) {
    String text = new String(utf8, UTF_8);
    return switch (new String(kind, UTF_8)) {
      case "ParamError" -> new ParamError(text);
      case "ShapeError" -> new ShapeError(text);
      case "DTypeError" -> new DTypeError(text);
      case "TypeError" -> new TypeError(text);
      case "ValueError" -> new ValueError(text);
      case "IndexError" -> new IndexError(text);
      case "FormatError" -> new FormatError(text);
      case "FileError" -> new FileError(text);
      case "GradientError" -> new GradientError(text);
      case "TraceError" -> new TraceError(text);
      case "DeferredInitializationError" -> new DeferredInitializationError(text);
      case "EngineError" -> new EngineError(text);
      case "GroupError" -> new GroupError(text);
      case "UnsupportedError" -> new UnsupportedError(text);
      case "OutOfMemoryError", "OutOfMemory" -> new OutOfMemoryError(text);
      default -> new HybridNetError(text);
    };
  }
}
