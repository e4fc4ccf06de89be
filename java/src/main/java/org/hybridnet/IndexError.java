package org.hybridnet;

/** An index is out of bounds. */
public class IndexError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  IndexError(String text) {
    super(text);
  }
}
