package org.hybridnet;

/** Shapes do not fit an operator, a model or each other. */
public class ShapeError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  ShapeError(String text) {
    super(text);
  }
}
