package org.hybridnet;

/** Memory outside Java's heap is exhausted. */
public class OutOfMemoryError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  OutOfMemoryError(String text) {
    super(text);
  }
}
