package org.hybridnet;

/** A parameter is used before its shape is known. */
public class DeferredInitializationError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  DeferredInitializationError(String text) {
    super(text);
  }
}
