package org.hybridnet;

/** A value was asked of an array that has none yet. */
public class TraceError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  TraceError(String text) {
    super(text);
  }
}
