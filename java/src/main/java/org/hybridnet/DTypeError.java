package org.hybridnet;

/** Element types do not fit an operator, a model or the values of Java. */
public class DTypeError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  DTypeError(String text) {
    super(text);
  }
}
