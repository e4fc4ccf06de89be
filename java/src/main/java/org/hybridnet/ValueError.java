package org.hybridnet;

/** An argument has a value that is not allowed. */
public class ValueError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  ValueError(String text) {
    super(text);
  }
}
