package org.hybridnet;

/** Element types do not fit an operator, a model or a Java array. */
public class DTypeError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  DTypeError(String text) {
    super(text);
  }
}
