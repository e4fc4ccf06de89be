package org.hybridnet;

/** A valid request that is not available on this device, for this dtype, or in this build. */
public class UnsupportedError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  UnsupportedError(String text) {
    super(text);
  }
}
