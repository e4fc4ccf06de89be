package org.hybridnet;

/**
 * A failure in HybridNet. The message names the operator, the node or the argument, what was
 * expected, what was given and how to fix it. Subclasses are named as in Python and C++.
 *
 * <p>An operator or model may report a failure later than its call, when its result is read.
 */
public class HybridNetError extends RuntimeException {
  private static final long serialVersionUID = 1L;

  HybridNetError(String text) {
    super(text);
  }
}
