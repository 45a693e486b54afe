package io.headwater.capture;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * A buffer that edges are written into, millions a second: short pieces go in as whole words, numbers without a loop.
 *
 * <p>Words are written beyond the end of what counts, so whoever fills it leaves {@link #SLACK} bytes of room.
 */
final class Bytes {
  static final int SLACK = 64;
  private static final VarHandle WORDS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final long ASCII_ZEROS = 0x3030303030303030L;
  private static final long EIGHT_DIGITS = 100_000_000L;
  private static final byte[] DIGITS = ascii("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");

  byte[] array;
  int size;

  Bytes(int capacity) {
    array = new byte[capacity + SLACK];
  }

  /** A constant that is written again and again. */
  static final class Piece {
    private final long[] words;
    private final int length;

    Piece(String text) {
      byte[] bytes = ascii(text);
      length = bytes.length;
      byte[] padded = java.util.Arrays.copyOf(bytes, (length + 7) / 8 * 8);
      words = new long[padded.length / 8];
      for (int i = 0; i < words.length; i++) {
        words[i] = (long) WORDS.get(padded, i * 8);
      }
    }
  }

  void put(Piece piece) {
    int at = size;
    for (long word : piece.words) {
      WORDS.set(array, at, word);
      at += 8;
    }
    size += piece.length;
  }

  /** Up to eight bytes, the first in the lowest place. */
  void putWord(long word, int length) {
    WORDS.set(array, size, word);
    size += length;
  }

  void put(Bytes other) {
    if (other.size <= SLACK / 2) {
      for (int at = 0; at < other.size; at += 8) {
        WORDS.set(array, size + at, (long) WORDS.get(other.array, at));
      }
    } else {
      System.arraycopy(other.array, 0, array, size, other.size);
    }
    size += other.size;
  }

  void put(byte[] bytes) {
    System.arraycopy(bytes, 0, array, size, bytes.length);
    size += bytes.length;
  }

  /** A number that is not negative, in decimal. */
  void putNumber(long number) {
    if (number < EIGHT_DIGITS) {
      long digits = eightDigits(number);
      int leading = digits == 0 ? 7 : Long.numberOfTrailingZeros(digits) >>> 3;
      WORDS.set(array, size, (digits | ASCII_ZEROS) >>> (leading * 8));
      size += 8 - leading;
    } else {
      putNumber(number / EIGHT_DIGITS);
      WORDS.set(array, size, eightDigits(number % EIGHT_DIGITS) | ASCII_ZEROS);
      size += 8;
    }
  }

  /** The eight digits of a number, a byte each, the first in the lowest: halved into lanes, all lanes at once. */
  private static long eightDigits(long number) {
    long fours = number / 10_000 | (number % 10_000) << 32;
    long hundreds = (fours * 10_486 >>> 20) & 0x0000007F0000007FL; // exact below ten thousand
    long pairs = hundreds | (fours - hundreds * 100) << 16;
    long tens = (pairs * 103 >>> 10) & 0x000F000F000F000FL; // exact below one hundred
    return tens | (pairs - tens * 10) << 8;
  }

  /** 128 bits in 22 letters. */
  void putHash(long high, long low) {
    int i = size;
    for (int shift = 58; shift >= 4; shift -= 6) {
      array[i++] = DIGITS[(int) (high >>> shift) & 63];
    }
    array[i++] = DIGITS[(int) ((high & 15) << 2 | low >>> 62)];
    for (int shift = 56; shift >= 2; shift -= 6) {
      array[i++] = DIGITS[(int) (low >>> shift) & 63];
    }
    array[i++] = DIGITS[(int) (low & 3) << 4];
    size = i;
  }

  static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }
}
