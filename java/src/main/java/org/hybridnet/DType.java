package org.hybridnet;

import java.util.Locale;

/** The element type of an array. */
public enum DType {
  /** 32-bit floating point: {@code float}. */
  FLOAT32(0, 4),
  /** 64-bit floating point: {@code double}. */
  FLOAT64(1, 8),
  /** 16-bit floating point of IEEE 754; Java sees its bytes. */
  FLOAT16(2, 2),
  /** 8-bit integer from 0 to 255; Java sees it as {@code byte}. */
  UINT8(3, 1),
  /** 32-bit integer: {@code int}. */
  INT32(4, 4),
  /** 8-bit integer: {@code byte}. */
  INT8(5, 1),
  /** 64-bit integer: {@code long}. */
  INT64(6, 8),
  /** One byte, 0 or 1. */
  BOOL(7, 1),
  /** The upper half of a FLOAT32; Java sees its bytes. */
  BFLOAT16(12, 2);

  private final int code;
  private final int bytes;

  DType(int code, int bytes) {
    this.code = code;
    this.bytes = bytes;
  }

  /**
   * The code of the type in files and in the C interface.
   *
   * @return the code, a value of {@code enum HnDType}
   */
  public int code() {
    return code;
  }

  /**
   * The size of one element.
   *
   * @return bytes per element
   */
  public int bytes() {
    return bytes;
  }

  /** The name in attributes of operators, such as {@code float32}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }

  static DType ofCode(int code) {
    for (DType dtype : values()) {
      if (dtype.code == code) {
        return dtype;
      }
    }
    throw new DTypeError("expected a code of DType, got " + code);
  }
}
