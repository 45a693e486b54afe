package io.headwater.capture;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.util.Arrays;

/** The positions in the ids of one rewritten file's records, as `provenance_store/lake/places.py` writes them. */
public final class Places implements Serializable {
  private static final long serialVersionUID = 1L;

  private final long[] starts;
  private final long[] originals;

  /** From the pairs of a places file, which Python has found sound. */
  public Places(byte[] pairs) {
    LongBuffer longs = ByteBuffer.wrap(pairs).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
    starts = new long[longs.remaining() / 2];
    originals = new long[starts.length];
    for (int i = 0; i < starts.length; i++) {
      starts[i] = longs.get();
      originals[i] = longs.get();
    }
  }

  /** The position in its id of the record that stands here. */
  long original(long position) {
    int found = Arrays.binarySearch(starts, position);
    int segment = found < 0 ? -found - 2 : found;
    // The last pair is the file's end.
    if (segment < 0 || segment == starts.length - 1 || originals[segment] < 0) {
      throw new IllegalStateException(
          "a record begins at position " + position + ", where by the file's places none does: the file was changed"
              + " without its places, or its purge has not finished");
    }
    return originals[segment] + (position - starts[segment]);
  }
}
