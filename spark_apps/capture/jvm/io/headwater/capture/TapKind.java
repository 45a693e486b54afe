package io.headwater.capture;

/** What stands on the dependent side of the edges that a tap writes. */
public enum TapKind {
  /** A group of records, named by the hash of its key: its members are the row's tokens. */
  GROUP,
  /** An input record named by its declared key: the one member of the group that stands for it. */
  KEYED_INPUT,
  /** An output record named by its place among the rows of its file. */
  ROWS,
  /** An output record named by the byte offset of its line. */
  LINES,
  /** An output record named by its declared key. */
  KEYED
}
