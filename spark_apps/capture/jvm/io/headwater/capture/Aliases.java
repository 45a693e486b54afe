package io.headwater.capture;

/**
 * Short names for the groups that a task meets again and again, in a table of fixed size.
 *
 * <p>A group's own name is a long keyed hash. From its second row on it gets an alias, a part of the group that is
 * gathered by this writer alone; one edge tells that the alias is a member of its group. A group that is met once costs
 * nothing more than its row, and one that another has pushed out of its place is met for the first time again.
 */
final class Aliases {
  private static final int SLOTS = 1 << 14;
  static final int NONE = -1;

  private final long[] pairs = new long[SLOTS * 2];
  /** Of each slot: zero where it is empty, one where its group was met once, else two more than its alias. */
  private final int[] met = new int[SLOTS];
  private int next;
  private boolean fresh;

  /** The alias of a group, or NONE where it has none yet. */
  int of(long a, long b) {
    long mixed = (a ^ Long.rotateLeft(b, 32)) * 0x9E3779B97F4A7C15L;
    int slot = (int) (mixed >>> 50);
    fresh = false;
    if (met[slot] != 0 && pairs[slot * 2] == a && pairs[slot * 2 + 1] == b) {
      if (met[slot] == 1) {
        met[slot] = 2 + next++;
        fresh = true;
      }
      return met[slot] - 2;
    }
    pairs[slot * 2] = a;
    pairs[slot * 2 + 1] = b;
    met[slot] = 1;
    return NONE;
  }

  /** Whether the alias that was told last is new, so that its group must be told. */
  boolean isFresh() {
    return fresh;
  }
}
