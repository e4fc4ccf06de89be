package org.hybridnet;

/** A file or text does not have the expected format: it is damaged, or of another kind. */
public class FormatError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  FormatError(String text) {
    super(text);
  }
}
