package org.hybridnet;

/** A file is missing, or cannot be read or written. */
public class FileError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  FileError(String text) {
    super(text);
  }
}
