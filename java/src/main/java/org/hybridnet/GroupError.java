package org.hybridnet;

/** Another process of the group died, stopped or disagrees. */
public class GroupError extends HybridNetError {
  private static final long serialVersionUID = 1L;

  GroupError(String text) {
    super(text);
  }
}
