package org.hybridnet;

/** The engine that runs operators was used in a way that it does not allow. */
public class EngineError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  EngineError(String text) {
    super(text);
  }
}
