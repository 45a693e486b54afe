package io.headwater.capture;

import java.util.Map;

/** Where one writer's messages go. */
interface MessageSink {
  /** Hands a message over; fails for an earlier one that failed, where the run's policy says so. */
  void send(Map<String, byte[]> headers, byte[] value);

  /** Waits until every message is confirmed; fails if one was not, where the run's policy says so. */
  void close();

  /** The attempt is discarded: releases everything and leaves no receipt. */
  void abort();
}
