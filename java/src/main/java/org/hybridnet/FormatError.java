package org.hybridnet;

/** A file or text is not what its format promises: it is damaged, or of another kind. */
public class FormatError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  FormatError(String text) {
    super(text);
  }
}
