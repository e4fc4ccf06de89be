package org.hybridnet;

import java.lang.reflect.Array;
import java.util.Collection;
import java.util.Map;
import java.util.Objects;
import java.util.StringJoiner;

/** Attributes of operators as texts, the form in {@code -symbol.json} files. */
final class Attributes {
  final byte[][] keys;
  final byte[][] values;

  Attributes(Map<String, ?> attributes) {
    Objects.requireNonNull(attributes, "attributes is null; an operator without any takes Map.of()");
    keys = new byte[attributes.size()][];
    values = new byte[attributes.size()][];
    int at = 0;
    for (Map.Entry<String, ?> attribute : attributes.entrySet()) {
      keys[at] = Native.utf8(attribute.getKey());
      values[at++] = Native.utf8(text(attribute.getValue()));
    }
  }

  /** Returns the value as "2", "0.5", "True", "(2, 2)", "relu", "float32" or "None". */
  static String text(Object value) {
    if (value == null) {
      return "None";
    }
    if (value instanceof Boolean flag) {
      return flag ? "True" : "False";
    }
    if (value instanceof Number number) {
      return number(number);
    }
    if (value instanceof Collection<?> values) {
      return tuple(values.toArray());
    }
    return value.getClass().isArray() ? tuple(value) : value.toString();
  }

  private static String number(Number number) {
    double value = number.doubleValue();
    if (Double.isNaN(value)) {
      return "nan";
    }
    return Double.isInfinite(value) ? (value > 0 ? "inf" : "-inf") : number.toString();
  }

  private static String tuple(Object array) {
    int length = Array.getLength(array);
    StringJoiner texts = new StringJoiner(", ", "(", length == 1 ? ",)" : ")");
    for (int i = 0; i < length; i++) {
      texts.add(text(Array.get(array, i)));
    }
    return texts.toString();
  }
}
