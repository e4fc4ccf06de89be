package org.hybridnet;

/** A gradient cannot be computed: not recorded, not differentiable, overwritten in place, or freed. */
public class GradientError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  GradientError(String text) {
    super(text);
  }
}
