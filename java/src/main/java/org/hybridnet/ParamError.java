package org.hybridnet;

/** A parameter of an operator, layer or model is missing, unknown or out of its range. */
public class ParamError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  ParamError(String text) {
    super(text);
  }
}
