package org.hybridnet;

/** An argument is of the wrong kind. */
public class TypeError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  TypeError(String text) {
    super(text);
  }
}
