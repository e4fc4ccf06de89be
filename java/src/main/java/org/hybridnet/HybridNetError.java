package org.hybridnet;

/**
 * A failure in HybridNet. The message contains the operator, node or argument, the expected and the
 * given value, and a fix. Subclasses have the same names as in Python and C++.
 *
 * <p>An operator or model may report a failure later than its call, when its result is read.
 */
public class HybridNetError extends RuntimeException {
  private static final long serialVersionUID = 1L;

  HybridNetError(String text) {
    super(text);
  }
}
