package org.hybridnet;

/** Invalid use of the engine that runs operators. */
public class EngineError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  EngineError(String text) {
    super(text);
  }
}
