package org.hybridnet;

/** The value of an array was read that does not have one yet. */
public class TraceError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  TraceError(String text) {
    super(text);
  }
}
